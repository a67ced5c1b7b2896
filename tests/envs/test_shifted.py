"""Shifted observations of any environment of real vectors."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from sojourn.envs import Crowd, GymnasiumFamily, Length, NeverRepeating, Stream
from sojourn.envs.making import Changes
from sojourn.envs.shifted import ShiftedObservations

SHIFT: Any = {"sojourn.envs.shifted:ShiftedObservations": {"spread": 2.0}}
SEEDS = {"shift_seed": {"integers": [0, 2**31 - 1]}}


def test_a_task_has_one_shift_and_every_task_its_own() -> None:
    family = GymnasiumFamily("Acrobot-v1", max_episode_steps=5, changes=Changes([SHIFT], SEEDS))
    stream = Stream(NeverRepeating([family]), Length(2), 0)
    crowd = Crowd(stream, 1)
    plain = gymnasium.make("Acrobot-v1")
    shifts = []
    for segment in range(4):
        for episode in range(2):
            found = stream.segment(0, segment)
            shown, _ = plain.reset(seed=found.episode_seed(episode))
            for _ in range(5):
                shifts.append(crowd.observation["vector"][0] - shown)
                shown = plain.step(np.int64(1))[0]
                crowd.step(np.array([1]))
    table = np.array(shifts).reshape(4, 10, 6)
    assert np.ptp(table, axis=1).max() < 1e-5
    assert len({tuple(np.round(row, 3)) for row in table[:, 0]}) == 4


def test_shifts_are_normal() -> None:
    env = ShiftedObservations(gymnasium.make("Acrobot-v1"), 2.0)
    drawn = []
    for seed in range(200):
        env.unwrapped.shift_seed = seed  # type: ignore[attr-defined]
        shown, _ = env.reset(seed=0)
        drawn.append(shown - env.env.unwrapped._get_ob())  # type: ignore[attr-defined]
    assert abs(np.std(drawn) - 2.0) < 4.5 * 2.0 / np.sqrt(2 * 1200)
    assert abs(np.mean(drawn)) < 4.5 * 2.0 / np.sqrt(1200)


@pytest.mark.parametrize(
    ("id", "spread", "message"),
    [
        ("FrozenLake-v1", 1.0, "observation_space: expected a Box of one dimension, got Discrete"),
        ("Acrobot-v1", -1.0, "spread: expected at least 0, got -1.0"),
    ],
)
def test_invalid_arguments_are_named(id: str, spread: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ShiftedObservations(gymnasium.make(id), spread)
