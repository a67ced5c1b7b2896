"""Learning that makes a life worse is taken back; a twin without learning is the same life."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from sojourn.agents import (
    Agent,
    Guard,
    LifetimeReturns,
    LivedWindow,
    MetaTrainer,
    PPOLoss,
    Recent,
    Replayed,
    Rollout,
    SharedLuck,
    Trusting,
    parameter_vector,
    restart_broken,
    unseen,
    window_losses,
)
from sojourn.envs import EpisodeRecord

Make = Callable[..., Rollout]


def record(total: float, task: str = "a", steps: int = 10, best: float = 1.0) -> EpisodeRecord:
    """A finished episode whose floor is zero."""
    fields: dict[str, Any] = {
        "lifetime": 0,
        "segment": 0,
        "task": task,
        "task_index": 0,
        "unit": "return",
        "episode": 0,
        "start_step": 0,
        "num_steps": steps,
        "total_return": total,
        "expected_return": math.nan,
        "optimal_return": best,
        "floor_return": 0.0,
        "status": "terminated",
    }
    return EpisodeRecord(**fields)


def window(*totals: float) -> LivedWindow:
    return LivedWindow({}, 10, [record(total) for total in totals])


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


def test_losses_by_hand() -> None:
    one, other = [record(0.5), record(1.0)], [record(0.0)]
    np.testing.assert_allclose(window_losses([one, other], "regret"), [0.25, 1.0])
    np.testing.assert_allclose(window_losses([one, other], "return"), [-1.5 / 20, 0.0])
    for measure in ("regret", "return"):
        assert np.isnan(window_losses([[], []], measure)).all()


def test_both_lives_are_measured_against_the_same_gaps() -> None:
    """A life that met the wide instance of a task is not flattered by its width."""
    narrow, wide = record(0.0, best=1.0), record(2.0, best=3.0)
    np.testing.assert_allclose(window_losses([[narrow], [wide]], "regret"), [0.5, 0.5])


def test_recent_life_is_held_against_the_windows_before_it(make_rollout: Make) -> None:
    agent = make_rollout().agent
    judge = Recent(num_windows=2, measure="regret")
    told = [judge.worsening(window(total), agent, agent) for total in (1.0, 0.5, 0.0, 0.0, 0.0)]
    assert math.isnan(told[0])
    np.testing.assert_allclose(told[1:], [0.5, 0.75, 0.25, 0.0])
    again = Recent(num_windows=2, measure="regret")
    again.load_state_dict(judge.state_dict())
    assert again.worsening(window(1.0), agent, agent) == pytest.approx(-1.0)
    assert math.isnan(judge.worsening(LivedWindow({}, 10, []), agent, agent))


def lived(rollout: Rollout, steps: int) -> LivedWindow:
    start = rollout.state_dict()
    return LivedWindow(start, steps, [e.record for e in rollout.live(steps)])


def with_luck(make_rollout: Make, core: str) -> Rollout:
    return make_rollout(core, luck=SharedLuck(5))


@pytest.mark.parametrize("core", ["gated_delta_net", "gru", "titans"])
def test_a_window_is_relived_exactly(core: str, make_rollout: Make) -> None:
    rollout, spare = with_luck(make_rollout, core), with_luck(make_rollout, core)
    rollout.live(7)  # the window begins in the middle of an episode
    judge = Replayed(spare, num_windows=2, measure="regret")
    relived: list[Sequence[EpisodeRecord]] = []
    for _ in range(3):
        last = lived(rollout, 8)
        assert isinstance(rollout.agent, Agent)
        assert judge.worsening(last, rollout.agent, rollout.agent) == 0.0
        relived.append(last.records)
    again = judge._relive(rollout.agent)
    assert list(map(repr, again)) == [repr(r) for records in relived[1:] for r in records]


def test_a_worse_policy_is_found_by_reliving(make_rollout: Make) -> None:
    rollout, spare = with_luck(make_rollout, "gru"), with_luck(make_rollout, "gru")
    worse = make_rollout("gru").agent
    assert isinstance(rollout.agent, Agent)
    assert isinstance(worse, Agent)
    with torch.no_grad():
        worse.policy.project.bias.copy_(torch.tensor([40.0, 0.0, 0.0]))  # one arm, whatever it pays
    judge = Replayed(spare, num_windows=1, measure="regret")
    last = lived(rollout, 40)
    back = judge.worsening(last, worse, rollout.agent)
    judge = Replayed(spare, num_windows=1, measure="regret")
    assert judge.worsening(last, rollout.agent, worse) == pytest.approx(-back)
    assert back != 0.0


def test_a_judge_that_relives_leaves_the_life_alone(make_rollout: Make) -> None:
    rollout, spare = with_luck(make_rollout, "gru"), with_luck(make_rollout, "gru")
    alone = with_luck(make_rollout, "gru")
    judge = Replayed(spare, num_windows=1, measure="regret")
    for _ in range(3):
        one, other = lived(rollout, 6), lived(alone, 6)
        assert isinstance(rollout.agent, Agent)
        judge.worsening(one, rollout.agent, rollout.agent)
        assert list(map(repr, one.records)) == list(map(repr, other.records))


def test_windows_fewer_than_one_are_refused(make_rollout: Make) -> None:
    for make in (
        lambda: Replayed(make_rollout(), num_windows=0, measure="regret"),
        lambda: Recent(num_windows=0, measure="regret"),
    ):
        with pytest.raises(ValueError, match="num_windows: expected at least 1, got 0"):
            make()


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


def test_luck_by_place_is_that_of_live(make_rollout: Make) -> None:
    one, other = with_luck(make_rollout, "gru"), make_rollout("gru")
    _, collected = one.collect(12)
    endings = other.live(12, SharedLuck(5))
    assert list(map(repr, collected)) == [repr(ending.record) for ending in endings]
