"""Published memories with scalar gates against their papers' recurrences, token by token."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import logsigmoid, softplus

from sojourn.memory import (
    FastWeightMemory,
    FixedRetention,
    Heads,
    NextValue,
    NormalisedStep,
    SelectiveStep,
    Tokens,
)

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
    rate, ridge = linear_gates(core, x, ["write_rate.bias", "ridge_bias"])
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
        rate, ridge = linear_gates(core, x, ["write_rate.bias", "ridge_bias"])
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


def test_one_write_per_token_is_delta_net(tools):
    changes = {"rule__write_rate__largest": 2.0, "readout__gate": "none"}
    product = randomised(tools, "delta_product", writes_per_token=1, **changes)
    delta = randomised(tools, "delta_net", **changes)
    delta.load_state_dict(product.state_dict())
    x = torch.randn(2, 9, WIDTH, dtype=torch.float64)
    y, state = product(x, product.init_state(2))
    y_delta, state_delta = delta(x, delta.init_state(2))
    assert torch.equal(y, y_delta)
    tools.assert_same_state(state, state_delta, tolerance=0.0)


def test_two_writes_make_a_rotation(tools):
    """Two reflections do, which no single write with rate <= 2 can."""
    core = tools.build("delta_product", width=WIDTH, num_heads=1, key_width=2, value_width=2)
    first, second = torch.tensor([1.0, 0.0]), torch.tensor([math.cos(0.3), math.sin(0.3)])
    key = torch.stack([first, second]).view(1, 1, 2, 2)
    tokens = Tokens(torch.eye(2)[:1].view(1, 1, 1, 2), key, torch.zeros(1, 1, 2, 2))
    gates = core.rule(torch.full((1, 1, 2), 100.0), tokens)
    state = {"weights": torch.eye(2).view(1, 1, 2, 2)}
    _, after = core.solver(tokens, gates, state, None, None)
    cos, sin = math.cos(0.6), math.sin(0.6)
    expected = torch.tensor([[cos, sin], [-sin, cos]])
    torch.testing.assert_close(after["weights"][0, 0], expected)


@pytest.mark.parametrize("name", ["longhorn", "delta_product", "falcon1"])
def test_writes_without_values_never_grow_the_weights(tools, name):
    core = randomised(tools, name)
    with torch.no_grad():
        core.projection.weight[: core.views.num_features].mul_(3.0)
    x = torch.randn(2, 30, WIDTH, dtype=torch.float64)
    state = core.init_state(2)
    norm = state["weights"].norm(dim=(-2, -1))
    for t in range(30):
        for_views, for_rule, _ = core.projection(x[:, t : t + 1]).split(core.feature_sizes, -1)
        leaves = dict(state.items())
        tokens, moved = core.views(for_views, leaves, None, None)
        tokens = tokens._replace(value=torch.zeros_like(tokens.value))
        _, solved = core.solver(tokens, core.rule(for_rule, tokens), leaves, None, None)
        state = leaves | moved | solved
        shrunk = state["weights"].norm(dim=(-2, -1))
        assert (shrunk <= norm + 1e-12).all()
        norm = shrunk


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("kind", ["identical tokens", "zero tokens", "saturated gates"])
def test_degenerate_inputs_are_finite_in_float32(tools, name, kind):
    core = tools.build(name, **SIZES)
    x = torch.randn(2, 40, WIDTH)
    if kind == "identical tokens":
        x = x[:, :1].expand(-1, 40, -1)
    elif kind == "zero tokens":
        x = torch.zeros_like(x)
    else:
        size = core.feature_sizes[0]
        with torch.no_grad():
            core.projection.weight[size : size + core.feature_sizes[1]].mul_(1e4)
    x = x.clone().requires_grad_()
    y, state = core(x, core.init_state(2))
    assert y.isfinite().all()
    assert all(leaf.isfinite().all() for leaf in tools.flatten(state).values())
    gradients = torch.autograd.grad(y.square().sum(), [x, *core.parameters()])
    assert all(g.isfinite().all() for g in gradients)


def test_fixed_retention_has_log_spaced_half_lives_and_nothing_to_learn():
    gate = FixedRetention(Heads(width=8, num_heads=3, key_width=4, value_width=3), 20, 80)
    log_retention = gate(torch.zeros(2, 5, 0))
    assert log_retention.shape == (2, 5, 3) and not list(gate.parameters())
    half_lives = torch.tensor([20.0, 40.0, 80.0])
    torch.testing.assert_close((log_retention[1, 4] * half_lives).exp(), torch.full((3,), 0.5))


def test_ridge_and_time_step_start_at_log_spaced_half_lives():
    heads = Heads(width=8, num_heads=4, key_width=4, value_width=3)
    token = Tokens(*(torch.full((1, 1, 4, size), 0.5) for size in (4, 4, 3)))
    for rule in (NormalisedStep(heads), SelectiveStep(heads)):
        log_retention = rule(torch.zeros(1, 1, rule.num_features), token).log_retention[0, 0]
        torch.testing.assert_close(
            -math.log(2) / log_retention, torch.tensor([16.0, 32.0, 64.0, 128.0]), rtol=1e-3, atol=0
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda h: NormalisedStep(h, shortest=0.5), "shortest half-life must be longer for write"),
        (lambda h: SelectiveStep(h, time_step=20.0), "largest time step must be at least 20.0"),
        (
            lambda h: NormalisedStep(Heads(8, 2, 4, 4, writes_per_token=2)),
            "a normalised step makes one write per token, got writes_per_token 2; use 1",
        ),
        (lambda h: Heads(8, 2, 4, 4, writes_per_token=0), "writes_per_token must be at least 1"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make(Heads(width=8, num_heads=2, key_width=4, value_width=4))
    assert "\n" not in str(error.value)
