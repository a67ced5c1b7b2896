"""The laws of every memory, in float64, and that each of them can be broken."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sojourn.memory import LAWS, FastWeightMemory, MemoryCore
from sojourn.memory.state import map_leaves

STEPS, WIDTH = 11, 6


@pytest.mark.parametrize("law", LAWS)
def test_law(case, law):
    LAWS[law](case.core(), STEPS)


def test_the_future_never_touches_the_past_in_float32(case):
    LAWS["the future never touches the past"](case.core(torch.float32), STEPS)


class Broken(MemoryCore):
    """A memory around a sound one."""

    def __init__(self) -> None:
        super().__init__(WIDTH)
        self.inner = FastWeightMemory(WIDTH, num_heads=1, key_width=4, value_width=4)
        self.calls = 0
        self.unused = nn.Parameter(torch.ones(1))

    def init_state(self, batch):
        return self.inner.init_state(batch)

    def advance(self, x, state, reset=None, mask=None, commit=None):
        y, state = self.inner.advance(x, state, reset, mask, commit)
        return y + 0 * self.unused, state


class CountsCalls(Broken):
    def advance(self, x, *rest):
        self.calls += 1
        y, state = super().advance(x, *rest)
        return y + self.calls, state


class ForgetsResets(Broken):
    def forward(self, x, state, reset=None, mask=None, commit=None):
        return super().forward(x, state, None, mask, commit)


class ForgetsMasks(Broken):
    def forward(self, x, state, reset=None, mask=None, commit=None):
        return super().forward(x, state, reset, None, commit)


class SeesMasked(Broken):
    def advance(self, x, *rest):
        y, state = super().advance(x, *rest)
        return y + (x.cumsum(1) if x.shape[1] > 1 else x), state


class MixesRows(Broken):
    def advance(self, x, *rest):
        return super().advance(x - x.mean(0, keepdim=True), *rest)


class SeesTheFuture(Broken):
    def advance(self, x, *rest):
        y, state = super().advance(x, *rest)
        return y + x.flip(1), state


class MissesNoToken(Broken):
    def forward(self, x, *rest, **flags):
        y, state = super().forward(x, *rest, **flags)
        return (y, state) if x.shape[1] else (y, self.init_state(x.shape[0]))


class SeesCommits(Broken):
    def advance(self, x, state, reset=None, mask=None, commit=None):
        y, state = super().advance(x, state, reset, mask, commit)
        return (y if commit is None else y + commit.unsqueeze(-1)), state


class WritesInPlace(Broken):
    def advance(self, x, *rest):
        return super().advance(x.mul_(2), *rest)


class MultipliesByZero(Broken):
    def forward(self, x, state, *rest, **flags):
        y, after = super().forward(x, state, *rest, **flags)
        return y + 0 * state["weights"].sum(), after


class HasDeadParameters(Broken):
    def advance(self, x, *rest):
        return self.inner.advance(x, *rest)


class SaysItGrows(Broken):
    grows = True


class FollowsAutocast(Broken):
    def advance(self, x, *rest):
        y, state = super().advance(x, *rest)
        low = (x[0] @ x[0].mT).dtype
        return y, map_leaves(lambda leaf: leaf.to(low), state)


class HidesState(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.randn(WIDTH, dtype=torch.float64)

    def advance(self, x, *rest):
        y, state = super().advance(x, *rest)
        return y * self.hidden, state

    def __deepcopy__(self, memo):
        twin = HidesState()
        return twin.double()


BROKEN = {
    "steps and splits equal one call": CountsCalls,
    "a reset equals a new call": ForgetsResets,
    "masked tokens change nothing": ForgetsMasks,
    "valid tokens do not see masked ones": SeesMasked,
    "rows never touch each other": MixesRows,
    "the future never touches the past": SeesTheFuture,
    "no token one token one row": MissesNoToken,
    "commits move only snapshots": SeesCommits,
    "nothing is changed in place": WritesInPlace,
    "bad numbers stay in their row": MultipliesByZero,
    "gradients are finite and reach everything": HasDeadParameters,
    "the state keeps its size": SaysItGrows,
    "the state keeps its precision": FollowsAutocast,
    "everything survives saving": HidesState,
}


def test_a_sound_memory_passes_every_law():
    for law in LAWS.values():
        law(Broken().double(), STEPS)


@pytest.mark.parametrize("law", LAWS)
def test_every_law_catches_what_breaks_it(law):
    with pytest.raises(AssertionError) as error:
        LAWS[law](BROKEN[law]().double(), STEPS)
    assert str(error.value) and "\n" not in str(error.value)
