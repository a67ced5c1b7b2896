"""Memories in a chain: each reads the token and what the ones before it made of it."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from sojourn.memory import GRU, AttentionMemory, Chain, FastWeightMemory, Memoryless

BATCH, STEPS, WIDTH = 3, 11, 6


def test_a_chain_equals_its_definition(tools):
    core = tools.build("multi_rate", width=WIDTH, members__slow__solver__chunk_size=4).double()
    tools.randomise(core)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    reset, mask = torch.rand(BATCH, STEPS) < 0.2, torch.rand(BATCH, STEPS) < 0.8
    y, state = core(x, core.init_state(BATCH), reset, mask)
    h = x
    for name, member in core.members().items():
        seen = torch.nn.functional.layer_norm(
            h, (WIDTH,), core.norms[name].weight, core.norms[name].bias
        )
        read, after = member(seen, member.init_state(BATCH), reset, mask)
        h = h + read
        tools.assert_same_state(state.get(name), after)
    torch.testing.assert_close(y, h - x, rtol=1e-12, atol=1e-12)


def test_levels_of_the_default_move_at_their_periods(tools):
    """Between its borders a level's weights are the same to the last bit; at a border they move."""
    core = tools.build("multi_rate", width=WIDTH).double()
    periods = {"fast": 1, "middle": 4, "slow": 16}
    state = core.init_state(1)
    for t in range(1, 40):
        with torch.no_grad():
            _, after = core.step(torch.randn(1, WIDTH, dtype=torch.float64), state)
        for level, period in periods.items():
            name = "weights" if level == "fast" else "weights_last"
            before, now = (one.get(level)[name] for one in (state, after))
            assert torch.equal(now, before) == (t % period != 0), (level, t)
        state = after


def test_any_memories_can_be_chained():
    members = {"window": AttentionMemory, "lasting": FastWeightMemory, "plain": GRU}
    core = Chain(WIDTH, members)
    state = core.init_state(BATCH)
    y, after = core(torch.randn(BATCH, STEPS, WIDTH), state)
    assert y.shape == (BATCH, STEPS, WIDTH) and core.grows and not core.anchored
    assert list(after.keys()) == list(members)
    assert core.state_bytes() == sum(one.state_bytes() for one in core.members().values())


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "members of a chain must be at least 1, got 0"),
        ({"odd": lambda width: Memoryless(width + 1)}, "odd of a chain must have its width 6"),
        ({"a.b": Memoryless}, "name of a member of a chain must be a plain word, got 'a.b'"),
        ({"keys": Memoryless}, "name of a member of a chain must be a plain word, got 'keys'"),
    ],
)
def test_bad_members_are_refused_in_one_line(members, message):
    with pytest.raises(ValueError) as error:
        Chain(WIDTH, members)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_one_member_is_the_member_alone():
    torch.manual_seed(0)
    core = Chain(WIDTH, {"only": partial(FastWeightMemory, num_heads=1)}).double()
    only = core.members()["only"]
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    y, _ = core(x, core.init_state(BATCH))
    alone, _ = only(core.norms["only"](x), only.init_state(BATCH))
    assert torch.equal(y, alone)
