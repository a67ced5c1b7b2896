"""Public bug reports about observation and action spaces as test cases; each names its report.

Covered elsewhere: mission encoding (Minigrid PR 520) in minigrid/test_channels.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from sojourn.envs import (
    Crowd,
    GymnasiumFamily,
    Length,
    Recurring,
    Stream,
    interface_of,
    random_actions,
    task_stream,
)

from .counter import Counter


def test_a_reused_text_observation_stays_what_it_was() -> None:
    """pytorch/rl#2257: a reset of one row changed an observation that was already returned."""

    class Speaker(Counter):
        def __init__(self) -> None:
            super().__init__(2)
            self.observation_space = spaces.Text(1, charset="ABZ")

        def reset(self, **rest: Any) -> Any:
            super().reset(**rest)
            return "A", {}

        def step(self, action: Any) -> Any:
            return "BZ"[self.count % 2], *super().step(action)[1:]

    crowd = Crowd(task_stream([Speaker], 0), 2)
    first = crowd.step(np.zeros(2, np.int64))
    kept = first.observation["tokens"].copy()
    second = crowd.step(np.zeros(2, np.int64))
    assert (first.observation["tokens"] == kept).all()
    assert second.final_observation is not None
    assert (second.final_observation["tokens"] != second.observation["tokens"]).all()


@pytest.mark.parametrize("id", ["MiniGrid-DoorKey-5x5-v0", "BabyAI-GoTo-v0"])
def test_missions_need_no_wrapper(id: str) -> None:
    """Farama-Foundation/Minigrid PR 209: no tool knows MissionSpace."""
    crowd = Crowd(task_stream([{"id": id, "missions": "tokens"}], 0), 2)
    assert crowd.observation["mission"].shape == (2, 40) and crowd.observation["mission"].any()
    crowd.step(np.zeros(2, np.int64))


@pytest.mark.parametrize("sizes", [[5, 5], [2, 3], [7]])
def test_equal_choices_are_not_a_batch(sizes: list[int]) -> None:
    """pytorch/rl#3242: MultiDiscrete([5, 5]) was taken for a batch of environments."""

    class Levers(Counter):
        def __init__(self) -> None:
            super().__init__(4)
            self.action_space = spaces.MultiDiscrete(sizes)

        def step(self, action: Any) -> Any:
            assert action.shape == (len(sizes),) and action.dtype == np.int64
            return super().step(action)

    crowd = Crowd(task_stream([Levers], 0), 3)
    assert crowd.interface.choices == tuple(sizes)
    rng = np.random.default_rng(0)
    for _ in range(9):
        crowd.step(random_actions(crowd.interface, crowd.observation["action_mask"], rng))


def test_tuples_and_dictionaries_in_tuples() -> None:
    """facebookresearch/Pearl PR 130: Blackjack's Tuple."""
    assert set(interface_of(gymnasium.make("Blackjack-v1")).channels) == {"0", "1", "2"}


def test_an_environment_gets_values_of_its_own_range() -> None:
    """Discrete(2, start=1): torchrl 0.14.1 sends 0-based actions."""
    crowd = Crowd(task_stream([lambda: Counter(3, start=1)], 0), 1)
    for action in (0, 1, 0, 1):
        crowd.step(np.array([action]))  # the environment asserts


def test_tasks_with_other_actions_follow_each_other_and_return() -> None:
    """DLR-RM/rl-baselines3-zoo#375: Discrete(7) -> Discrete(3) -> Discrete(4) -> back; Box(2)."""

    def make(space: Any) -> Any:
        env = Counter(1)
        env.action_space = space
        return GymnasiumFamily(lambda: env)

    box = spaces.Box(-1, 1, (2,), np.float32)
    families = [make(space) for space in (*map(spaces.Discrete, (7, 3, 4)), box)]
    crowd = Crowd(Stream(Recurring(families), Length(1), 0), 1)
    rng, options = np.random.default_rng(0), []
    for _ in range(8):
        mask = crowd.observation["action_mask"]
        options.append((int(mask[0, :7].sum()), int(mask[0, 7:].sum())))
        crowd.step(random_actions(crowd.interface, mask, rng))
    assert options == [(7, 0), (3, 0), (4, 0), (1, 2)] * 2


def test_a_shape_that_changes_is_named_by_its_key() -> None:
    """pytorch/rl#2222: obs["b"] changes shape at step 5."""

    class Growing(Counter):
        def __init__(self) -> None:
            super().__init__(9)
            self.observation_space = spaces.Dict(a=spaces.Discrete(2), b=spaces.Box(0, 9, (3,)))

        def _look(self) -> Any:
            return {"a": 0, "b": np.zeros(4 if self.count == 5 else 3, np.float32)}

        def reset(self, **rest: Any) -> Any:
            super().reset(**rest)
            return self._look(), {}

        def step(self, action: Any) -> Any:
            _, *rest = super().step(action)
            return self._look(), *rest

    crowd = Crowd(task_stream([Growing], 0), 1)
    with pytest.raises(
        ValueError,
        match=r"Growing, row 0, step 5 .*observation\['b'\]: expected shape \(3,\), got \(4,\)",
    ):
        for _ in range(6):
            crowd.step(np.array([0]))
