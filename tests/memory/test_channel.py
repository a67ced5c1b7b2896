"""Channel-gated memories against their equations, written token by token and row by row."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn

from sojourn.memory import (
    ChannelDelta,
    ChannelGatedMemory,
    Edits,
    ExactChannel,
    Gates,
    GeneralisedDelta,
    Heads,
    SelectiveDelta,
    SnapshotChannel,
    SquaredError,
    SymmetricErase,
    Tokens,
)
from sojourn.memory.channel_decay import ChannelDecay
from sojourn.memory.storage import Routing

BATCH, STEPS, WIDTH = 3, 13, 6
CORES = ["gla", "kda", "gdn2", "comba", "rwkv7", "memt"]
SMALL = {"num_heads": 2, "key_width": 4, "value_width": 3, "rule__num_experts": 3}


def token_of_gla(rule, gates, w, q, k, v):
    w = w * gates["retention"].exp() + torch.outer(v, k)
    return w, w @ q


def token_of_kda(rule, gates, w, q, k, v):
    w = w * gates["retention"].exp()
    w = w + gates["write_rate"] * torch.outer(v - w @ k, k)
    return w, w @ q


def token_of_gdn2(rule, gates, w, q, k, v):
    w = w * gates["retention"].exp()
    w = w - torch.outer(w @ (gates["erase_rate"] * k), k) + torch.outer(gates["write_rate"] * v, k)
    return w, w @ q


def token_of_comba(rule, gates, w, q, k, v):
    d, rate = torch.sigmoid(rule["feedback"]), gates["write_rate"]
    w = gates["retention"].exp() * w + rate * torch.outer(v - w @ (d * k), k)
    return w, w @ (q - rule["correction"] * d * k * len(k) ** -0.5)


def token_of_rwkv7(rule, gates, w, q, k, v):
    a = gates["erase_rate"]
    c = k * rule["erase_scale"]
    c = c / (c.square().sum() + 1e-6).sqrt()
    h = k * (1 + rule["write_mixing"] * (a - 1))
    transition = torch.diag(gates["retention"].exp()) - torch.outer(c, a * c)
    w = w @ transition + torch.outer(v, h)
    return w, w @ q + (q * rule["bonus"]) @ h * v


def token_of_memt(rule, gates, w, q, k, v):
    """`w` `[E, V, K]`; the read is that of the weights given by the caller, not of the new ones."""
    written = gates["write_routing"].exp()
    experts = []
    for e in range(len(w)):
        u = (gates["erase_rate"].exp() * written[e]).sqrt() * k
        kept = w[e] * gates["retention"][e].exp()
        kept = kept @ (torch.eye(len(k), dtype=w.dtype) - torch.outer(u, u))
        experts.append(kept + written[e] * torch.outer(gates["write_rate"] * v, u))
    read = sum(p * one @ q for p, one in zip(gates["read_routing"].exp(), w, strict=True))
    return torch.stack(experts), read


TOKEN = {
    "gla": token_of_gla,
    "kda": token_of_kda,
    "gdn2": token_of_gdn2,
    "comba": token_of_comba,
    "rwkv7": token_of_rwkv7,
}


def slow_memory(core, name, x, weights, reset, mask, commit, snapshot):
    """Outputs, final weights and final snapshot of a loop over rows, heads and tokens."""
    for_views, for_rule, for_readout = core.projection(x).split(core.feature_sizes, dim=-1)
    window = core.init_state(BATCH)["conv_window"]
    tokens, _ = core.views(for_views, {"conv_window": window}, reset, mask)
    heads = core.rule.heads.num_heads
    gates = core.rule.gate_values(for_rule)
    if name == "memt":
        gates["retention"] = gates["retention"].unflatten(2, (heads, -1))
        weights, snapshot = (one.unflatten(1, (heads, -1)) for one in (weights, snapshot))
    own = dict(core.rule.named_parameters(recurse=False))
    start = core.solver.initial_weights.view(weights.shape[1:])
    reads = torch.zeros_like(tokens.value)
    finals, snapshots = [], []
    for b in range(BATCH):
        for h in range(heads):
            w, s = weights[b, h], None if snapshot is None else snapshot[b, h]
            for t in range(STEPS):
                if reset[b, t]:
                    w, s = start[h], None if s is None else start[h]
                parts = (
                    {n: p[h] for n, p in own.items()},
                    {n: g[b, t, h] for n, g in gates.items()},
                )
                view = [one[b, t, h] for one in tokens]
                if name == "memt":
                    written, _ = token_of_memt(*parts, w, *view)
                    read = token_of_memt(*parts, s, *view)[1]
                else:
                    written, read = TOKEN[name](*parts, w, *view)
                    if not mask[b, t]:
                        bonus = read - written @ view[0] if name == "rwkv7" else 0.0
                        query = view[0] if name != "comba" else _corrected(*parts, *view[:2])
                        read = w @ query + bonus
                w = written if mask[b, t] else w
                s = w if commit[b, t] and mask[b, t] else s
                reads[b, t, h] = read
            finals.append(w)
            snapshots.append(s)
    final = torch.stack(finals).view(BATCH, -1, *finals[0].shape[-2:])
    y = core.readout(reads, for_readout)
    return y, final, None if snapshot is None else torch.stack(snapshots).view_as(final)


def _corrected(rule, gates, q, k):
    return q - rule["correction"] * torch.sigmoid(rule["feedback"]) * k * len(k) ** -0.5


@pytest.mark.parametrize(("chunk_size", "block_size"), [(1, 1), (4, 2), (7, 3), (64, 4), (64, 16)])
@pytest.mark.parametrize("name", CORES)
def test_cores_equal_their_published_recurrence(tools, name, chunk_size, block_size):
    sizes = {"solver__chunk_size": chunk_size, "solver__block_size": block_size}
    core = tools.build(name, width=WIDTH, **SMALL, **sizes).double()
    tools.randomise(core)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64, requires_grad=True)
    reset, mask = torch.rand(BATCH, STEPS) < 0.15, torch.rand(BATCH, STEPS) < 0.8
    reset[0, 0] = reset[1, 6:8] = True
    commit = torch.rand(BATCH, STEPS) < 0.3
    # A masked commit that no other hides.
    reset[2], mask[2, 3:5], commit[2] = False, torch.tensor([True, False]), False
    commit[2, 4] = True
    state = core.init_state(BATCH)
    leaves = {
        leaf: torch.randn(state[leaf].shape, dtype=torch.float64, requires_grad=True)
        for leaf in ("weights", "snapshot")
        if leaf in set(state.keys())
    }
    for leaf, value in leaves.items():
        state[leaf] = value
    y, after = core(x, state, reset, mask, commit)
    slow = slow_memory(
        core, name, x, leaves["weights"], reset, mask, commit, leaves.get("snapshot")
    )
    results = [(y, after["weights"], after.get("snapshot")), slow]
    sources = [x, *leaves.values(), *core.parameters()]
    for index, outcome in enumerate(results):
        tensors = [one for one in outcome if one is not None]
        loss = sum(one.sin().sum() for one in tensors)
        results[index] = [*tensors, *torch.autograd.grad(loss, sources)]
    for fast, truth in zip(*results, strict=True):
        torch.testing.assert_close(fast, truth, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", CORES)
def test_chunk_and_block_sizes_never_change_the_memory(tools, name):
    x = torch.randn(2, 37, WIDTH, dtype=torch.float64)
    flags = [torch.rand(2, 37) < share for share in (0.1, 0.9, 0.2)]
    results = []
    for chunk_size, block_size in ((1, 16), (5, 2), (16, 16), (16, 5), (37, 8), (64, 64)):
        torch.manual_seed(0)
        sizes = {"solver__chunk_size": chunk_size, "solver__block_size": block_size}
        core = tools.build(name, width=WIDTH, **SMALL, **sizes).double()
        results.append(core(x, core.init_state(2), *flags))
    for y, state in results[1:]:
        torch.testing.assert_close(y, results[0][0], rtol=1e-10, atol=1e-12)
        tools.assert_same_state(state, results[0][1])


def make_edits(steps, dtype=torch.float64, key=4, value=3) -> Edits:
    def normal(size):
        return torch.randn(2, steps, 2, size, dtype=dtype)

    write = nn.functional.normalize(normal(key), dim=-1)
    retention = nn.functional.logsigmoid(normal(key))
    return Edits(normal(key), torch.rand_like(write) * write, write, normal(value), retention)


GATES = {
    "open": lambda like: torch.zeros_like(like),
    "nearly open": lambda like: torch.full_like(like, -1e-8),
    "-5": lambda like: torch.full_like(like, -5.0),
    "-50": lambda like: torch.full_like(like, -50.0),
    "mixed": lambda like: -50 * torch.randint(0, 2, like.shape) * torch.rand_like(like),
    "closed": lambda like: torch.full_like(like, -1e30),
}
TOKENS = {
    "random": lambda edits: edits,
    "identical keys": lambda edits: edits._replace(
        write=torch.ones_like(edits.write) / 2, erase=torch.ones_like(edits.write) / 2
    ),
    "zeros": lambda edits: edits._replace(
        **{n: torch.zeros_like(one) for n, one in edits._asdict().items() if n != "log_retention"}
    ),
}


@pytest.mark.parametrize("solver_kind", [ExactChannel, SnapshotChannel])
@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("gate", GATES)
def test_extreme_gates_and_tokens_in_float32(gate, tokens, solver_kind):
    steps = 70
    heads = Heads(width=8, num_heads=2, key_width=4, value_width=3)
    solver = solver_kind(ChannelDelta(heads), chunk_size=32, block_size=8)
    edits = TOKENS[tokens](make_edits(steps, torch.float32))
    edits = edits._replace(log_retention=GATES[gate](edits.log_retention))
    edits = Edits(*(one.requires_grad_() for one in edits))
    state = {n: torch.randn_like(leaf) for n, leaf in solver.init_state(2).items()}
    reset, commit = torch.rand(2, steps) < 0.05, torch.rand(2, steps) < 0.2
    reads, after = solver(edits, state, reset, None, commit)
    loss = reads.square().mean() + after["weights"].square().mean()
    for gradient in torch.autograd.grad(loss, [*edits, solver.initial_weights], allow_unused=True):
        assert gradient is None or gradient.isfinite().all()
    doubles = Edits(*(one.double() for one in edits))
    state = {n: leaf.double() for n, leaf in state.items()}
    solver.double()
    for t in range(steps):
        one = Edits(*(view[:, t : t + 1] for view in doubles))
        start = solver.init_state(2)
        state = {
            n: torch.where(reset[:, t].view(-1, 1, 1, 1), start[n], leaf)
            for n, leaf in state.items()
        }
        read, state = solver(one, state, None, None, commit[:, t : t + 1])
        torch.testing.assert_close(reads[:, t].double(), read[:, 0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(after["weights"].double(), state["weights"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("strength", [0.5, 2.0, 5.0, 20.0])
def test_blocks_keep_float32_accuracy(strength):
    retention = -strength * torch.rand(2, 64, 6)
    rows, keys = torch.randn(2, 64, 1, 6), torch.randn(2, 64, 6)
    scores = []
    for dtype, block_size in ((torch.float32, 4), (torch.float64, 64)):
        decay = ChannelDecay(retention.to(dtype), None, block_size)
        near = decay.near_keys(keys.to(dtype))
        place = decay.after_write()
        scores.append(decay.scores(place, rows.to(dtype), keys.to(dtype), near))
    low, high = scores
    assert (low - high).abs().max() < 2e-6


def pure_erases(rule_kind, steps=200):
    """Norms of the weights under erases without values or decay, at most adverse keys and rates."""
    heads = Heads(width=8, num_heads=1, key_width=2, value_width=2)
    rule = rule_kind(heads).double()
    solver = ExactChannel(rule).double()
    angles = torch.tensor([0.6435, -0.6435 + torch.pi / 2], dtype=torch.float64)
    norms = []
    weights = torch.eye(2, dtype=torch.float64).view(1, 1, 2, 2)
    for t in range(steps):
        angle = angles[t % 2] * (-1) ** t
        key = torch.stack([angle.cos(), angle.sin()]).view(1, 1, 1, 2)
        rate = torch.eye(2, dtype=torch.float64)[t % 2]
        zero = torch.zeros_like(key)
        if rule_kind is SelectiveDelta:
            edits = Edits(zero, rate * key, key, zero, zero)
        elif rule_kind is SymmetricErase:
            edits = Edits(zero, rate.sqrt() * key, rate.sqrt() * key, zero, zero)
        else:
            both = (torch.cat([key, zero], 1), torch.cat([rate * key, zero], 1))
            zeros = torch.zeros(1, 2, 1, 2, dtype=torch.float64)
            edits = Edits(zeros, *both, zeros, zeros)
        _, state = solver(edits, {"weights": weights}, None, None, None)
        weights = state["weights"]
        norms.append(torch.linalg.matrix_norm(weights[0, 0], 2))
    return torch.stack(norms)


@pytest.mark.parametrize(
    "rule_kind",
    [
        SymmetricErase,
        pytest.param(
            SelectiveDelta,
            marks=pytest.mark.xfail(
                strict=True, raises=AssertionError, reason="I - k (b * k)^T is not a contraction"
            ),
        ),
        pytest.param(
            GeneralisedDelta,
            marks=pytest.mark.xfail(
                strict=True, raises=AssertionError, reason="I - c (a * c)^T is not a contraction"
            ),
        ),
    ],
)
def test_erasing_never_lengthens_the_weights(rule_kind):
    norms = pure_erases(rule_kind)
    assert (norms[1:] <= norms[:-1] + 1e-12).all()


@pytest.mark.parametrize("name", ["kda", "memt"])
def test_symmetric_cores_never_grow_without_values(tools, name):
    core = tools.build(name, width=WIDTH, **SMALL).double()
    tools.randomise(core)
    state = core.init_state(2)
    norm = state["weights"].norm(dim=(-2, -1))
    core.views.value_map = torch.zeros_like
    for _ in range(40):
        _, state = core(3 * torch.randn(2, 1, WIDTH, dtype=torch.float64), state)
        shrunk = state["weights"].norm(dim=(-2, -1))
        assert (shrunk <= norm + 1e-12).all()
        norm = shrunk


def solve(rule, edits, chunk_size=4):
    solver = ExactChannel(rule, chunk_size).double()
    state = {"weights": torch.ones(2, 2, 3, 4, dtype=torch.float64)}
    reads, after = solver(edits, state, None, None, None)
    return reads, after["weights"]


def test_selective_delta_with_one_rate_is_kda():
    heads = Heads(width=8, num_heads=2, key_width=4, value_width=3)
    edits = make_edits(11)
    rate = torch.rand(2, 11, 2, 1, dtype=torch.float64)
    tokens = Tokens(edits.query, edits.write, edits.value)
    kda = ChannelDelta(heads)
    kda.gate_values = lambda _: {"retention": edits.log_retention, "write_rate": rate[..., 0]}
    gdn2 = SelectiveDelta(heads)
    gdn2.gate_values = lambda _: {
        "retention": edits.log_retention,
        "erase_rate": rate.expand(-1, -1, -1, 4),
        "write_rate": rate.expand(-1, -1, -1, 3),
    }
    for one, two in zip(
        solve(kda, kda(None, tokens)), solve(gdn2, gdn2(None, tokens)), strict=True
    ):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


def test_symmetric_erase_with_one_rate_is_kda_with_scaled_values():
    heads = Heads(width=8, num_heads=2, key_width=4, value_width=3)
    edits = make_edits(11)
    rate = torch.rand(2, 11, 2, 1, dtype=torch.float64)
    tokens = Tokens(edits.query, edits.write, edits.value)
    kda = ChannelDelta(heads)
    kda.gate_values = lambda _: {"retention": edits.log_retention, "write_rate": rate[..., 0]}
    stable = SymmetricErase(heads, num_experts=1)
    stable.gate_values = lambda _: {
        "retention": edits.log_retention,
        "erase_rate": rate.log().expand(-1, -1, -1, 4),
        "write_rate": rate.sqrt().expand(-1, -1, -1, 3),
    }
    for one, two in zip(
        solve(kda, kda(None, tokens)), solve(stable, stable(None, tokens)), strict=True
    ):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "taken_at"), [("kda", "decayed"), ("comba", "previous"), ("gla", "none")]
)
def test_one_retention_per_head_is_the_scalar_solver(tools, name, taken_at):
    """KDA is Gated DeltaNet, Comba with d = 1 and D = 0 too (erasing first), GLA a RetNet."""
    heads = {"width": WIDTH, "num_heads": 2, "key_width": 4, "value_width": 3}
    channel = tools.build(name, **heads, rule__correction=0.0).double()
    scalar = tools.build("gated_delta_net" if name != "gla" else "linear_attention", **heads)
    scalar.double()
    if name == "comba":
        nn.init.constant_(channel.rule.feedback, 1e3)
    if taken_at != "none":
        scalar.solver.objective = SquaredError(scalar.rule.heads, taken_at)
    x = torch.randn(2, 19, WIDTH, dtype=torch.float64)
    features = channel.projection(x).split(channel.feature_sizes, dim=-1)
    window = {"conv_window": channel.init_state(2)["conv_window"]}
    tokens, _ = channel.views(features[0], window, None, None)
    rate = torch.rand(2, 19, 2, dtype=torch.float64)
    log_retention = -torch.rand(2, 19, 2, dtype=torch.float64)
    if name == "gla":
        rate = torch.ones_like(rate)
    wide = log_retention if name == "comba" else log_retention.unsqueeze(-1).expand(-1, -1, -1, 4)
    channel.rule.gate_values = lambda _: {"retention": wide, "write_rate": rate}
    weights = torch.randn(2, 2, 3, 4, dtype=torch.float64)
    truth = scalar.solver(tokens, Gates(log_retention, rate), {"weights": weights}, None, None)
    edits = channel.rule(features[1], tokens)
    fast = channel.solver(edits, {"weights": weights}, None, None, None)
    torch.testing.assert_close(fast[0], truth[0], rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(fast[1]["weights"], truth[1]["weights"], rtol=1e-11, atol=1e-12)


def test_committing_every_token_reads_one_write_behind():
    heads = Heads(width=8, num_heads=2, key_width=4, value_width=3)
    edits = make_edits(11)
    state = {n: torch.randn(2, 2, 3, 4, dtype=torch.float64) for n in ("weights", "snapshot")}
    rule = ChannelDelta(heads)
    solver, live = SnapshotChannel(rule, 4).double(), ExactChannel(rule, 4).double()
    always = torch.ones(2, 11, dtype=torch.bool)
    reads, after = solver(edits, state, None, None, always)
    shifted = edits._replace(query=edits.query.roll(-1, dims=1))
    behind, _ = live(shifted, {"weights": state["weights"]}, None, None, None)
    torch.testing.assert_close(reads[:, 1:], behind[:, :-1], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(after["snapshot"], after["weights"], rtol=1e-12, atol=1e-12)


def test_a_snapshot_stays_until_it_is_committed(tools):
    core = tools.build("memt", width=WIDTH, **SMALL).double()
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    _, after = core(x, core.init_state(BATCH))
    assert torch.equal(after["snapshot"], core.init_state(BATCH)["snapshot"])
    assert not torch.equal(after["weights"], core.init_state(BATCH)["weights"])
    commit = torch.zeros(BATCH, STEPS, dtype=torch.bool)
    commit[1, 5] = True
    _, after = core(x, core.init_state(BATCH), commit=commit)
    _, half = core(x[:, :6], core.init_state(BATCH))
    torch.testing.assert_close(after["snapshot"][1], half["weights"][1], rtol=1e-12, atol=1e-14)
    assert not after["snapshot"][[0, 2]].any()


@pytest.mark.parametrize("sizes", [[STEPS], [1] * STEPS, [3, 1, 4, 5]])
def test_bad_writes_show_before_they_are_committed(tools, sizes):
    core = tools.build("memt", width=WIDTH, **SMALL)
    x = torch.randn(BATCH, STEPS, WIDTH)
    x[1, 4] = torch.nan
    y, after = tools.run_in_parts(core, x, core.init_state(BATCH), {}, sizes)
    assert y[1, 4:].isnan().all()
    assert y[1, :4].isfinite().all() and y[[0, 2]].isfinite().all()
    assert after["weights"][1].isnan().all()


def test_routings_sum_to_one_and_one_expert_has_none():
    heads = Heads(width=8, num_heads=2, key_width=4, value_width=3)
    routing = Routing(heads, 5)
    weights = routing(torch.randn(2, 3, routing.num_features)).exp()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 2))
    assert set(SymmetricErase(heads, num_experts=1).gates) == {
        "retention",
        "erase_rate",
        "write_rate",
    }


@pytest.mark.parametrize("name", [name for name in CORES if name != "comba"])
def test_half_lives_are_log_spaced_over_channels(tools, name):
    core = tools.build(name, width=WIDTH, num_heads=2, key_width=4, rule__num_experts=1)
    half_lives = core.rule.gates["retention"].half_lives().flatten()
    torch.testing.assert_close(half_lives[[0, -1]], torch.tensor([16.0, 128.0]), rtol=1e-4, atol=0)
    steps = half_lives.log().diff()
    torch.testing.assert_close(steps, steps.mean().expand(7), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(SymmetricErase, num_experts=0), "num_experts must be at least 1, got 0; use 1"),
        (lambda heads: ExactChannel(ChannelDelta(heads), 0), "chunk_size must be at least 1"),
        (lambda heads: ExactChannel(ChannelDelta(heads), 4, 0), "block_size must be at least 1"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(Heads(width=8, num_heads=2, key_width=4, value_width=3))


def test_defaults_are_kda(tools):
    torch.manual_seed(0)
    configured = tools.build("kda", width=WIDTH, readout__gate="silu")
    torch.manual_seed(0)
    default = ChannelGatedMemory(WIDTH)
    x = torch.randn(2, 5, WIDTH)
    y, _ = configured(x, configured.init_state(2))
    assert torch.equal(y, default(x, default.init_state(2))[0])
