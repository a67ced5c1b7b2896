"""A restored episode is the one that a true reset starts: observations, rewards, flags, draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from minigrid.core.world_object import Box, Key
from minigrid.envs.empty import EmptyEnv

from sojourn.envs.minigrid import SnapshotReset, plan, use_fast_observations

Same = Callable[[dict[str, Any], dict[str, Any]], None]
Make = Callable[..., Any]
Habits = Callable[[Any, int, int], list[int]]


class Twins:
    """An environment with snapshots and one that generates every layout, played in step."""

    def __init__(self, make: Callable[[], Any], same_observation: Same) -> None:
        self.true = make()
        self.fast = SnapshotReset(use_fast_observations(make()))
        self.same_observation = same_observation
        self.num_generated = 0
        generate = self.fast.unwrapped._gen_grid

        def count(width: int, height: int) -> None:
            self.num_generated += 1
            generate(width, height)

        type_of = type(self.fast.unwrapped)
        counting = type(type_of.__name__, (type_of,), {"_gen_grid": lambda _, w, h: count(w, h)})
        counting.__module__ = type_of.__module__
        self.fast.unwrapped.__class__ = counting

    def reset(self, **options: Any) -> None:
        one, info = self.true.reset(**options)
        other, other_info = self.fast.reset(**options)
        self.same_observation(one, other)
        assert info == other_info
        self.same_observation(self.true.gen_obs(), self.fast.unwrapped.gen_obs())

    def step(self, action: int) -> bool:
        one, reward, terminated, truncated, info = self.true.step(action)
        other, *others = self.fast.step(action)
        self.same_observation(one, other)
        assert others == [reward, terminated, truncated, info]
        return bool(terminated or truncated)

    def play(self, actions: list[int]) -> None:
        for action in actions:
            if self.step(action):
                break
        draws = self.true.np_random.integers(1 << 30, size=3)
        np.testing.assert_array_equal(
            draws, self.fast.unwrapped.np_random.integers(1 << 30, size=3)
        )


@pytest.mark.parametrize(
    ("first_seed", "num_steps", "num_seeds", "num_episodes"),
    [(0, 30, 1, 3), pytest.param(20, 200, 2, 3, marks=pytest.mark.slow)],
)
def test_every_environment(
    playable_id: str,
    first_seed: int,
    num_steps: int,
    num_seeds: int,
    num_episodes: int,
    original: Make,
    habits: Habits,
    same_observation: Same,
) -> None:
    twins = Twins(lambda: original(playable_id), same_observation)
    for seed in range(first_seed, first_seed + num_seeds):
        for episode in range(num_episodes):
            twins.reset(seed=seed)
            twins.play(habits(twins.true, num_steps, episode))
    assert twins.num_generated == num_seeds, "restored, not generated"


@pytest.mark.parametrize(
    "id",
    [
        "MiniGrid-DoorKey-5x5-v0",
        "MiniGrid-ObstructedMaze-1Dlhb-v0",
        "MiniGrid-BlockedUnlockPickup-v0",
        "MiniGrid-KeyCorridorS3R2-v0",
        "MiniGrid-PutNear-6x6-N2-v0",
        "MiniGrid-RedBlueDoors-6x6-v0",
    ],
)
def test_solved_episodes_can_be_solved_again(
    id: str, original: Make, same_observation: Same
) -> None:
    twins = Twins(lambda: original(id), same_observation)
    for _ in range(3):
        twins.reset(seed=4)
        found = plan(twins.fast)
        assert found is not None and found.actions is not None
        *most, last = found.actions
        assert not any(twins.step(action) for action in most)
        assert twins.step(last)
    assert twins.num_generated == 1


def test_other_resets_generate(original: Make, same_observation: Same) -> None:
    twins = Twins(lambda: original("MiniGrid-Empty-Random-6x6-v0"), same_observation)
    resets: list[tuple[dict[str, Any], bool]] = [
        ({"seed": 1}, True),
        ({"seed": 1}, False),
        ({"seed": 2}, True),
        ({}, True),
        ({}, True),
        ({"seed": 2}, True),
        ({"seed": 2}, False),
        ({"seed": 2, "options": {"any": 1}}, True),
        ({"seed": 2}, True),
    ]
    for options, generates in resets:
        before = twins.num_generated
        twins.reset(**options)
        twins.play([2, 1, 2, 2])
        assert twins.num_generated - before == generates, options
    assert twins.fast.layout_seed == 2
    twins.reset()
    assert twins.fast.layout_seed is None


def set_time_limit(env: Any) -> None:
    env.max_steps = 9


def move_start(env: Any) -> None:
    env.agent_start_pos = (2, 2)


def add_attribute(env: Any) -> None:
    env.note = "anything"


def observe_through_walls(env: Any) -> None:
    env.see_through_walls = not env.see_through_walls


@pytest.mark.parametrize(
    "change", [set_time_limit, move_start, add_attribute, observe_through_walls]
)
def test_settings_changed_outside_take_effect(
    change: Callable[[Any], None], original: Make, same_observation: Same
) -> None:
    twins = Twins(lambda: original("MiniGrid-Empty-6x6-v0"), same_observation)
    twins.reset(seed=0)
    for env in (twins.true, twins.fast.unwrapped):
        change(env)
    for _ in range(2):
        twins.reset(seed=0)
        twins.play([2, 0, 1] * 3)
    assert twins.num_generated == 2


class Tiring(EmptyEnv):  # type: ignore[misc]
    """Counts its steps over all episodes of its life and pays by that count."""

    lived = 0

    def step(self, action: int) -> Any:
        self.lived += 1
        seen, _, *flags = super().step(action)
        return (seen, 1.0 / self.lived, *flags)


class Remembering(EmptyEnv):  # type: ignore[misc]
    """Keeps what it lived through in containers that a new layout empties."""

    def _gen_grid(self, width: int, height: int) -> None:
        super()._gen_grid(width, height)
        self.passed: list[Any] = []
        self.played: set[int] = set()
        self.counts = np.zeros(7)

    def step(self, action: int) -> Any:
        self.passed.append(tuple(self.agent_pos))
        self.played.add(action)
        self.counts[action] += 1
        self.grid.get(5, 2).color = "red"
        seen, _, *flags = super().step(action)
        return (seen, len(self.passed) + 0.1 * len(self.played) + self.counts.max(), *flags)


class Opaque(Remembering):
    """Holds something whose contents nobody can put back."""

    def _gen_grid(self, width: int, height: int) -> None:
        super()._gen_grid(width, height)
        self.source = iter(range(100))

    def step(self, action: int) -> Any:
        seen, _, *flags = super().step(action)
        return (seen, float(next(self.source)), *flags)


@pytest.mark.parametrize(("kind", "num_generated"), [(Tiring, 4), (Remembering, 1), (Opaque, 4)])
def test_environments_of_ones_own(
    kind: type[EmptyEnv], num_generated: int, same_observation: Same
) -> None:
    twins = Twins(lambda: kind(size=6), same_observation)
    for _ in range(4):
        twins.reset(seed=0)
        twins.play([2, 2, 1, 2, 0, 2])
    assert twins.num_generated == num_generated


def test_boxes_are_filled_again(original: Make, same_observation: Same) -> None:
    env = SnapshotReset(original("MiniGrid-ObstructedMaze-1Dlh-v0"))
    env.reset(seed=0)
    box = next(cell for cell in env.unwrapped.grid.grid if isinstance(cell, Box))
    key, position = box.contains, box.cur_pos
    assert isinstance(key, Key)
    box.contains, box.color, box.cur_pos, key.color = None, "red", (1, 1), "grey"
    env.reset(seed=0)
    assert box.contains is key and box.cur_pos == position
    assert (box.color, key.color) != ("red", "grey")


def test_the_first_observation_belongs_to_the_caller(original: Make) -> None:
    env = SnapshotReset(original("MiniGrid-Empty-5x5-v0"))
    first = env.reset(seed=0)[0]["image"].copy()
    env.reset(seed=0)[0]["image"][:] = 7
    np.testing.assert_array_equal(env.reset(seed=0)[0]["image"], first)


def test_only_bare_minigrid_environments() -> None:
    for env in (
        gymnasium.make("CartPole-v1"),
        gymnasium.wrappers.TimeLimit(EmptyEnv(size=5), max_episode_steps=5),
    ):
        with pytest.raises(ValueError, match="expected a bare MiniGrid environment"):
            SnapshotReset(env)
