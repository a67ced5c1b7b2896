"""What every vectorised simulator refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sojourn.envs import (
    BernoulliBandit,
    CartPole,
    DarkRoom,
    Family,
    GymnasiumFamily,
    RepeatFirst,
    Segment,
    Simulator,
)
from sojourn.envs.task import Length

FAMILIES: dict[str, Family] = {
    "bandit": BernoulliBandit(2, 4),
    "finite": DarkRoom(3, 4),
    "recall": RepeatFirst(),
    "cart-pole": CartPole(10),
}


def simulator_of(family: Family) -> Simulator:
    kind = family.simulator_type()
    assert kind is not None
    return kind(family.interface, 2)


@pytest.mark.parametrize("name", FAMILIES)
def test_tasks_of_another_kind_are_refused(name: str) -> None:
    task = GymnasiumFamily("CartPole-v1").draw(np.random.default_rng(0))
    with pytest.raises(ValueError, match=f"{name} simulator: expected a .*Task, got .*Gymnasium"):
        simulator_of(FAMILIES[name]).begin_segment(0, Segment(task, 0, Length(1)))


@pytest.mark.parametrize("name", ["finite", "recall"])
def test_no_episode_before_a_segment(name: str) -> None:
    with pytest.raises(RuntimeError, match="row 1: no segment was begun"):
        simulator_of(FAMILIES[name]).begin_episode(1, 0)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_some_rows_can_be_stepped_while_others_wait(family: Any) -> None:
    simulator = simulator_of(family)
    for row in range(2):
        task = family.draw(np.random.default_rng(row))
        simulator.begin_segment(row, Segment(task, row, Length(1)))
        simulator.begin_episode(row, row)
    before = simulator.observation()
    outcome = simulator.step(np.array([1]), np.array([1]))
    assert outcome.reward.shape == outcome.terminated.shape == (1,)
    after = simulator.observation()
    for channel, array in after.items():
        np.testing.assert_array_equal(array[0], before[channel][0])
