"""Channel-gated rules that reduce to each other, snapshots, routings and initial gates."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn

from sojourn.memory import (
    ChannelDelta,
    ChannelGatedMemory,
    ExactChannel,
    Gates,
    Heads,
    SelectiveDelta,
    SnapshotChannel,
    SquaredError,
    SymmetricErase,
    Tokens,
)
from sojourn.memory.storage import Routing

BATCH, STEPS, WIDTH = 3, 13, 6
SMALL = {"num_heads": 2, "key_width": 4, "value_width": 3, "rule__num_experts": 3}
CORES = ["gla", "kda", "gdn2", "comba", "rwkv7", "memt"]


def solve(rule, edits, chunk_size=4):
    solver = ExactChannel(rule, chunk_size).double()
    state = {"weights": torch.ones(2, 2, 3, 4, dtype=torch.float64)}
    reads, after = solver(edits, state, None, None, None)
    return reads, after["weights"]


def test_selective_delta_with_one_rate_is_kda(tools):
    heads = Heads(width=8, num_heads=2, key_width=4, value_width=3)
    edits = tools.make_edits(11)
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


def test_symmetric_erase_with_one_rate_is_kda_with_scaled_values(tools):
    heads = Heads(width=8, num_heads=2, key_width=4, value_width=3)
    edits = tools.make_edits(11)
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
    scalar = tools.build("gated_delta_net" if name != "gla" else "retnet", **heads)
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


def test_committing_every_token_reads_one_write_behind(tools):
    heads = Heads(width=8, num_heads=2, key_width=4, value_width=3)
    edits = tools.make_edits(11)
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
