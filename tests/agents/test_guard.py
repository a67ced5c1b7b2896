"""Learning that makes a life worse is taken back; a twin without learning is the same life."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from sojourn.agents import (
    Agent,
    Guard,
    LifetimeReturns,
    LivedWindow,
    MetaTrainer,
    PPOLoss,
    Rollout,
    Trusting,
    parameter_vector,
    restart_broken,
    unseen,
)

from .lived_windows import window

Make = Callable[..., Rollout]


class Scripted:
    """A judge who says what it was told to say."""

    def __init__(self, *worsenings: float) -> None:
        self.worsenings = list(worsenings)

    def worsening(self, lived: LivedWindow, candidate: Agent, accepted: Agent) -> float:
        del lived, candidate, accepted
        return self.worsenings.pop(0)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        del saved


def guarded(rollout: Rollout, *worsenings: float) -> tuple[Guard, MetaTrainer]:
    assert isinstance(rollout.agent, Agent)
    trainer = MetaTrainer(rollout.agent, LifetimeReturns(), PPOLoss(), learning_rate=1e-2)
    return Guard(rollout.agent, trainer, Scripted(*worsenings), tolerance=0.1), trainer


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else bool(one == other)


def test_what_is_worse_is_taken_back_and_what_is_not_is_kept(make_rollout: Make) -> None:
    rollout = make_rollout()
    guard, trainer = guarded(rollout, 0.05, 0.2, math.nan, 0.3)
    agent = guard.agent
    start = parameter_vector(agent)

    trainer.iterate(rollout, 6, 1.0, unseen)
    assert guard.judged(window()).outcome == "accepted"
    good, moments = parameter_vector(agent), trainer.state_dict()
    moments = {**moments, "optimizer": torch.utils._pytree.tree_map(_copy, moments["optimizer"])}
    assert not torch.equal(good, start)

    trainer.iterate(rollout, 6, 1.0, unseen)
    assert guard.judged(window()).outcome == "rolled_back"
    assert torch.equal(parameter_vector(agent), good)
    assert same(trainer.state_dict()["optimizer"], moments["optimizer"])
    assert same(trainer.state_dict()["generator"], moments["generator"])

    trainer.iterate(rollout, 6, 1.0, unseen)
    unknown = parameter_vector(agent)
    assert guard.judged(window()).outcome == "unknown"
    assert torch.equal(parameter_vector(agent), unknown)
    assert guard.judged(window()).outcome == "rolled_back"
    assert torch.equal(parameter_vector(agent), good)


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def test_parameters_that_are_not_finite_never_stay(make_rollout: Make) -> None:
    rollout = make_rollout()
    guard, _ = guarded(rollout)
    good = parameter_vector(guard.agent)
    with torch.no_grad():
        next(guard.agent.parameters()).fill_(math.nan)
    assert guard.judged(window()).outcome == "broken"
    assert torch.equal(parameter_vector(guard.agent), good)


def test_a_guard_goes_on_from_its_state(make_rollout: Make) -> None:
    rollout = make_rollout()
    guard, trainer = guarded(rollout, 0.0)
    trainer.iterate(rollout, 6, 1.0, unseen)
    guard.judged(window())
    good = parameter_vector(guard.agent)
    other_rollout = make_rollout()
    other, _ = guarded(other_rollout, 1.0)
    other.load_state_dict(guard.state_dict())
    other.judged(window())
    assert torch.equal(parameter_vector(other.agent), good)


def test_a_negative_tolerance_is_refused(make_rollout: Make) -> None:
    rollout = make_rollout()
    _, trainer = guarded(rollout)
    with pytest.raises(ValueError, match="tolerance: expected a number from 0 on, got -1"):
        Guard(trainer.agent, trainer, Trusting(), tolerance=-1.0)


def test_broken_memories_begin_anew_and_the_others_go_on(make_rollout: Make) -> None:
    rollout, untouched = make_rollout("gru"), make_rollout("gru")
    rollout.live(3)
    untouched.live(3)
    assert restart_broken(rollout) == 0
    state = rollout.state.clone()
    for leaf in state.values(True, True):
        leaf[1] = math.nan
    rollout.state = state
    assert restart_broken(rollout) == 1
    rollout.live(1)
    untouched.live(1)
    for one, other in zip(
        rollout.state.values(True, True), untouched.state.values(True, True), strict=True
    ):
        assert one.isfinite().all()
        torch.testing.assert_close(one[2:], other[2:])
