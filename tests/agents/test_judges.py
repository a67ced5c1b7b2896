"""Whether a candidate is worse than what it follows: by recent life, and by reliving windows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from sojourn.agents import (
    Agent,
    LivedWindow,
    Recent,
    Replayed,
    Rollout,
    SharedLuck,
    window_losses,
)
from sojourn.envs import EpisodeRecord

from .lived_windows import record, window

Make = Callable[..., Rollout]


def test_losses_by_hand() -> None:
    one, other = [record(0.5), record(1.0)], [record(0.0)]
    np.testing.assert_allclose(window_losses([one, other], "regret"), [0.25, 1.0])
    size = math.sqrt((0.5**2 + 1.0**2) / 3)
    wanted = [(0.5 - 0.75) / size, 0.5 / size]
    np.testing.assert_allclose(window_losses([one, other], "return"), wanted)
    for measure in ("regret", "return"):
        assert np.isnan(window_losses([[], []], measure)).all()


def test_both_lives_are_measured_against_the_same_gaps() -> None:
    """A life that met the wide instance of a task is not flattered by its width."""
    narrow, wide = record(0.0, best=1.0), record(2.0, best=3.0)
    np.testing.assert_allclose(window_losses([[narrow], [wide]], "regret"), [0.5, 0.5])


def test_returns_are_compared_where_reward_per_step_says_nothing() -> None:
    """On CartPole every policy gets 1 a step; one measured by rate is held by its rate."""
    long, short = record(200.0, steps=200), record(20.0, steps=20)
    kept, ruined = window_losses([[long], [short] * 10], "return")
    assert ruined - kept > 1.0
    rates = [replace(one, unit="rate") for one in (long, short)]
    np.testing.assert_array_equal(window_losses([rates[:1], rates[1:]], "return"), [0.0, 0.0])


def test_the_mix_of_tasks_is_no_loss_and_parts_of_episodes_tell_nothing() -> None:
    rich, poor = record(100.0, task="rich"), record(1.0, task="poor")
    mixed = window_losses([[rich, rich, poor], [poor, poor]], "return")
    np.testing.assert_allclose(mixed, [0.0, 0.0])
    parts = [replace(poor, total_return=0.0, status=status) for status in ("cut", "failed")]
    assert np.isnan(window_losses([[rich], parts], "return")[1])


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


def test_luck_by_place_is_that_of_live(make_rollout: Make) -> None:
    one, other = with_luck(make_rollout, "gru"), make_rollout("gru")
    _, collected = one.collect(12)
    endings = other.live(12, SharedLuck(5))
    assert list(map(repr, collected)) == [repr(ending.record) for ending in endings]
