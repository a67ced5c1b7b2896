"""Two memories side by side are the sum of the two alone."""

from __future__ import annotations

import pytest
import torch

from sojourn.memory import GRU, FastWeightMemory, Hybrid, Memoryless

BATCH, STEPS, WIDTH = 3, 11, 6


def test_a_hybrid_is_the_sum_of_its_memories(tools):
    core = tools.build("hybrid", width=WIDTH).double()
    tools.randomise(core)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    reset, mask = torch.rand(BATCH, STEPS) < 0.2, torch.rand(BATCH, STEPS) < 0.8
    y, state = core(x, core.init_state(BATCH), reset, mask)
    total = torch.zeros_like(y)
    for name in ("long_term", "short_term"):
        member = getattr(core, name)
        alone, after = member(x, member.init_state(BATCH), reset, mask)
        total = total + alone
        tools.assert_same_state(state.get(name), after)
    torch.testing.assert_close(y, total, rtol=1e-12, atol=1e-12)


def test_any_two_memories_can_be_put_side_by_side():
    core = Hybrid(WIDTH, long_term=FastWeightMemory, short_term=GRU)
    state = core.init_state(BATCH)
    y, after = core(torch.randn(BATCH, STEPS, WIDTH), state)
    assert y.shape == (BATCH, STEPS, WIDTH) and not core.grows
    assert core.state_bytes() == core.long_term.state_bytes() + core.short_term.state_bytes()
    assert set(after.keys()) == {"long_term", "short_term"}


def test_members_of_another_width_are_refused():
    with pytest.raises(ValueError, match="short_term of a hybrid must have its width 6, got 7"):
        Hybrid(WIDTH, Memoryless, lambda width: Memoryless(width + 1))
