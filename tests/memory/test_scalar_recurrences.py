"""Published memories with scalar gates against their papers' recurrences, token by token."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import logsigmoid, softplus

from sojourn.memory import FastWeightMemory, NextValue

BATCH, STEPS, WIDTH, HEADS, KEY, VALUE = 3, 15, 6, 2, 4, 3
SIZES = {"width": WIDTH, "key_width": KEY, "value_width": VALUE}


def randomised(tools, name: str, **changes) -> FastWeightMemory:
    core = tools.build(name, **(SIZES | {"solver__chunk_size": 4} | changes)).double()
    tools.randomise(core)
    return core


def linear_gates(core, features, names):
    """The biased features of each gate in `names`, in the order of the projection's columns."""
    biases = [dict(core.rule.named_parameters())[name] for name in names]
    parts = torch.split(features, [bias.numel() for bias in biases], dim=-1)
    return [part + bias for part, bias in zip(parts, biases, strict=True)]


def retnet(core, state, q, k, v, x):
    w = core.rule.retention.log_retention.exp()[:, None, None] * state["W"]
    w = w + v[:, :, None] * k[:, None, :]
    return {"W": w}, torch.einsum("hvk,hk->hv", w, q)


def mamba2(core, state, q, k, v, x):
    (step,) = linear_gates(core, x, ["bias"])
    step = softplus(step)[:, None, None]
    decay = torch.exp(-core.rule.log_rate.exp()[:, None, None] * step)
    w = decay * state["W"] + step * v[:, :, None] * k[:, None, :]
    return {"W": w}, torch.einsum("hvk,hk->hv", w, q) + core.solver.strength * v


def longhorn(core, state, q, k, v, x):
    """The minimiser of |W - W_old|_F^2 + b |W k - v|^2 by solving its normal equations."""
    (rate,) = linear_gates(core, x, ["step.write_rate.bias"])
    rate = torch.sigmoid(rate)[:, None, None]
    right = state["W"] + rate * v[:, :, None] * k[:, None, :]
    left = torch.eye(KEY, dtype=k.dtype) + rate * k[:, :, None] * k[:, None, :]
    w = torch.linalg.solve(left, right.mT).mT
    return {"W": w}, torch.einsum("hvk,hk->hv", w, q)


def falcon1(core, state, q, k, v, x):
    rate, ridge = linear_gates(core, x, ["step.write_rate.bias", "step.ridge_bias"])
    w, previous = state["W"], state.get("key")
    if previous is not None:
        ridge = softplus(ridge)
        step = torch.sigmoid(rate) / (previous.square().sum(-1) + ridge + 1e-6)
        error = v - torch.einsum("hvk,hk->hv", w, previous)
        kept = (1 - step * ridge)[:, None, None] * w
        w = kept + step[:, None, None] * error[:, :, None] * previous[:, None, :]
    return {"W": w, "key": k}, torch.einsum("hvk,hk->hv", w, q)


def falcon1a(core, state, q, k, v, x):
    """The inner-product objective: what the memory already says is not taken off."""
    moved, _ = falcon1(core, state, q, k, v, x)
    if "key" in state:
        rate, ridge = linear_gates(core, x, ["step.write_rate.bias", "step.ridge_bias"])
        step = torch.sigmoid(rate) / (state["key"].square().sum(-1) + softplus(ridge) + 1e-6)
        said = torch.einsum("hvk,hk->hv", state["W"], state["key"])
        moved["W"] = moved["W"] + torch.einsum("h,hv,hk->hvk", step, said, state["key"])
    return moved, torch.einsum("hvk,hk->hv", moved["W"], q)


def with_momentum(core, state, q, k, v, x):
    names = ["step.retention.bias", "step.write_rate.bias", "momentum.bias"]
    learned_gain = core.rule.gain.num_features > 0
    retention, rate, momentum, *gain = linear_gates(
        core, x, [*names, "gain.bias"] if learned_gain else names
    )
    a, m = (logsigmoid(-one).exp()[:, None, None] for one in (retention, momentum))
    error = v - torch.einsum("hvk,hk->hv", state["W"], k)
    step = torch.sigmoid(rate)[:, None, None] * error[:, :, None] * k[:, None, :]
    moving = m * state.get("M", 0.0) + step
    gained = torch.sigmoid(gain[0])[:, None, None] * moving if learned_gain else moving
    w = a * state["W"] + gained
    return {"W": w, "M": moving}, torch.einsum("hvk,hk->hv", w, q)


def delta_product(core, state, q, k, v, x):
    names = ["write_rate.bias"]
    w = state["W"]
    if core.rule.retention.num_features:
        retention, rates = linear_gates(core, x, ["retention.bias", *names])
        w = logsigmoid(-retention).exp()[:, None, None] * w
    else:
        (rates,) = linear_gates(core, x, names)
    for i in range(2):
        rows = slice(i * HEADS, (i + 1) * HEADS)
        rate, key, value = 2 * torch.sigmoid(rates[rows]), k[rows], v[rows]
        householder = torch.eye(KEY, dtype=k.dtype) - rate[:, None, None] * (
            key[:, :, None] * key[:, None, :]
        )
        w = w @ householder + rate[:, None, None] * value[:, :, None] * key[:, None, :]
    return {"W": w}, torch.einsum("hvk,hk->hv", w, q)


WRITES = {
    "retnet": retnet,
    "mamba2": mamba2,
    "longhorn": longhorn,
    "falcon1": falcon1,
    "titans_linear": with_momentum,
    "momentum_delta": with_momentum,
    "delta_product": delta_product,
}


def slow_memory(core, write, x, reset, mask):
    """The reads of every row by a loop over tokens; views and readout are the core's own."""
    for_views, for_rule, for_readout = core.projection(x).split(core.feature_sizes, dim=-1)
    views = core.views.views if isinstance(core.views, NextValue) else core.views
    tokens, _ = views(for_views, dict(core.init_state(BATCH).items()), reset, mask)
    (initial,) = (p for n, p in core.solver.named_parameters() if n.endswith("initial_weights"))
    rows = []
    for b in range(BATCH):
        state, reads = {"W": initial}, []
        for t in range(STEPS):
            if reset[b, t]:
                state = {"W": initial}
            token = [view[b, t] for view in tokens]
            if mask[b, t]:
                state, read = write(core, state, *token, for_rule[b, t])
            else:
                read = torch.einsum("hvk,hk->hv", state["W"], token[0])
                if write is mamba2:
                    read = read + core.solver.strength * token[2]
            reads.append(read)
        rows.append(torch.stack(reads))
    return core.readout(torch.stack(rows), for_readout)


def piece(name: str) -> dict[str, object]:
    return {"_target_": f"sojourn.memory.{name}", "_partial_": True}


VARIANTS = [
    *((name, write, {}) for name, write in WRITES.items()),
    ("falcon1", falcon1a, {"objective": piece("DotProduct")}),
    ("delta_product", delta_product, {"rule__retention": piece("RetentionGate")}),
]


@pytest.mark.parametrize(("name", "write", "changes"), VARIANTS)
def test_memory_equals_its_papers_recurrence(tools, name, write, changes):
    core = randomised(tools, name, **changes)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    reset, mask = torch.rand(BATCH, STEPS) < 0.15, torch.rand(BATCH, STEPS) < 0.8
    reset[0, 0] = reset[1, 4] = reset[1, 5] = True
    parameters = [p for p in core.parameters() if p.requires_grad]
    results = []
    for y in (
        core(x, core.init_state(BATCH), reset, mask)[0],
        slow_memory(core, write, x, reset, mask),
    ):
        results.append([y, *torch.autograd.grad(y.tanh().square().sum(), parameters)])
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-10)


def test_retnet_reads_depend_on_distances_only(tools):
    """o_t = sum_j a^(t-j) Re(q_t conj(k_j) e^(i angle (t-j))) v_j, in complex numbers."""
    core = randomised(tools, "retnet", views__conv_width=1)
    with torch.no_grad():
        core.solver.initial_weights.zero_()
    x = torch.randn(1, STEPS, WIDTH, dtype=torch.float64)
    features, _, _ = core.projection(x).split(core.feature_sizes, dim=-1)
    state = dict(core.init_state(1).items())
    rotated, _ = core.views(features, state, None, None)
    reads, _ = core.solver(rotated, core.rule(features[..., :0], rotated), state, None, None)
    core.views.positions = "none"
    plain, _ = core.views(features, state, None, None)
    angles = 10_000.0 ** -(torch.arange(KEY // 2) / (KEY // 2)).double()
    query, key = (torch.complex(*view[0].chunk(2, dim=-1)) for view in plain[:2])
    retention = core.rule.retention.log_retention.exp()
    for t in range(STEPS):
        expected = torch.zeros(HEADS, VALUE, dtype=torch.float64)
        for j in range(t + 1):
            turn = torch.polar(torch.ones_like(angles), angles * (t - j))
            score = (query[t] * key[j].conj() * turn).real.sum(-1) * retention ** (t - j)
            expected = expected + score[:, None] * plain.value[0, j]
        torch.testing.assert_close(reads[0, t], expected, rtol=1e-10, atol=1e-12)
