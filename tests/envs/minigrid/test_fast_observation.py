"""Fast observations are MiniGrid's own, to the bit, whatever happens to the grid."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
import pytest
from minigrid.core.grid import Grid
from minigrid.core.world_object import Ball, Wall
from minigrid.envs.empty import EmptyEnv
from minigrid.minigrid_env import MiniGridEnv
from minigrid.wrappers import ViewSizeWrapper

from sojourn.envs.minigrid import use_fast_observations
from sojourn.envs.minigrid.fast_observation import (
    MAX_GRIDS,
    MAX_VIEW_SIZE,
    MAX_VIEWS,
    visible_cells,
)

Same = Callable[[dict[str, Any], dict[str, Any]], None]
Make = Callable[..., Any]
Habits = Callable[[Any, int, int], list[int]]


def fast(env: Any) -> Any:
    use_fast_observations(env)
    assert "gen_obs" in vars(env)
    return env


def assert_exact(env: Any, same_observation: Same) -> None:
    same_observation(env.gen_obs(), type(env).gen_obs(env))


def play(
    env: Any, habits: Habits, same_observation: Same, seed: int, num_steps: int, episodes: int
) -> None:
    for episode in range(episodes):
        env.reset(seed=seed + episode)
        assert_exact(env, same_observation)
        for action in habits(env, num_steps, seed + episode):
            seen, _, terminated, truncated, _ = env.step(action)
            same_observation(seen, type(env).gen_obs(env))
            if terminated or truncated:
                break


def test_every_environment(
    playable_id: str, original: Make, habits: Habits, same_observation: Same
) -> None:
    play(fast(original(playable_id)), habits, same_observation, 0, 30, 2)


@pytest.mark.slow
def test_every_environment_for_long(
    playable_id: str, original: Make, habits: Habits, same_observation: Same
) -> None:
    play(fast(original(playable_id)), habits, same_observation, 10, 300, 3)


@pytest.mark.parametrize("size", [3, 5, 9, 13, 23])
@pytest.mark.parametrize("id", ["MiniGrid-FourRooms-v0", "MiniGrid-Fetch-8x8-N3-v0"])
def test_other_view_sizes(
    id: str, size: int, original: Make, habits: Habits, same_observation: Same
) -> None:
    play(fast(original(id, agent_view_size=size)), habits, same_observation, 0, 60, 2)


def test_views_too_large_for_it(original: Make, same_observation: Same) -> None:
    env = fast(original("MiniGrid-MemoryS7-v0", agent_view_size=MAX_VIEW_SIZE + 2))
    env.reset(seed=0)
    assert_exact(env, same_observation)


class Lamp(Ball):  # type: ignore[misc]
    """Looks different every time it is asked."""

    looks = 0

    def encode(self) -> tuple[int, int, int]:
        Lamp.looks += 1
        return (6, Lamp.looks % 5, 0)

    def see_behind(self) -> bool:
        return False


class OpenGrid(Grid):  # type: ignore[misc]
    """Nothing hides anything."""

    def process_vis(self, agent_pos: tuple[int, int]) -> np.ndarray:
        return np.ones((self.width, self.height), bool)

    def slice(self, topX: int, topY: int, width: int, height: int) -> Grid:
        part = OpenGrid(width, height)
        part.grid = super().slice(topX, topY, width, height).grid
        return part

    def rotate_left(self) -> Grid:
        part = OpenGrid(self.height, self.width)
        part.grid = super().rotate_left().grid
        return part


def test_classes_of_ones_own_are_observed_by_minigrid(
    original: Make, same_observation: Same
) -> None:
    env = fast(original("MiniGrid-Empty-8x8-v0"))
    env.reset(seed=0)
    env.grid.set(2, 1, Lamp("red"))
    before = Lamp.looks
    env.gen_obs()
    assert Lamp.looks == before + 1
    env.grid.set(2, 1, None)
    assert_exact(env, same_observation)
    env.carrying = Lamp("red")
    env.gen_obs()
    assert Lamp.looks == before + 2
    env.carrying = None
    env.see_through_walls = False
    grid = OpenGrid(8, 8)
    grid.grid = env.grid.grid
    env.grid = grid
    assert_exact(env, same_observation)


class Blind(EmptyEnv):  # type: ignore[misc]
    def gen_obs(self) -> dict[str, Any]:
        return super().gen_obs() | {"image": np.zeros((7, 7, 3), np.uint8)}


def test_own_ways_of_observing_are_left_alone() -> None:
    env = Blind(size=5)
    assert "gen_obs" not in vars(use_fast_observations(env))
    assert not env.reset(seed=0)[0]["image"].any()


def test_view_size_wrapper_sees_the_same(original: Make, habits: Habits) -> None:
    envs = [original("MiniGrid-FourRooms-v0"), fast(original("MiniGrid-FourRooms-v0"))]
    views = [ViewSizeWrapper(env, agent_view_size=9) for env in envs]
    for view in views:
        view.reset(seed=3)
    for action in habits(envs[0], 40, 0):
        one, other = (view.step(action)[0]["image"] for view in views)
        np.testing.assert_array_equal(one, other)


def test_images_belong_to_the_caller(original: Make, same_observation: Same) -> None:
    env = fast(original("MiniGrid-Empty-8x8-v0"))
    env.reset(seed=0)
    env.gen_obs()["image"][:] = 77
    env.gen_obs()["image"][:] = 77
    assert_exact(env, same_observation)


def test_copies_and_pickles_live_on_their_own(original: Make, same_observation: Same) -> None:
    env = fast(original("MiniGrid-DoorKey-5x5-v0"))
    env.reset(seed=0)
    for other in (deepcopy(env), pickle.loads(pickle.dumps(env))):
        for action in (0, 2, 1, 2, 3):
            same_observation(other.step(action)[0], type(other).gen_obs(other))
        assert other.step_count == 5 and env.step_count == 0
        assert_exact(env, same_observation)


def test_memory_is_bounded(original: Make, same_observation: Same) -> None:
    env = fast(original("MiniGrid-Playground-v0"))
    colours = ("red", "green", "blue", "purple", "yellow", "grey")
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for step in range(3 * MAX_VIEWS):
        if step % 5 == 0:
            x, y, colour = rng.integers(19), rng.integers(19), colours[rng.integers(6)]
            env.grid.set(int(x), int(y), Wall(colour))
        env.agent_pos = tuple(rng.integers(1, 18, 2).tolist())
        env.agent_dir = int(rng.integers(4))
        seen = env.gen_obs()
        if step % 97 == 0:
            same_observation(seen, type(env).gen_obs(env))
        remembered = env.gen_obs._views_of_grid
        assert len(remembered) <= MAX_GRIDS
        assert sum(map(len, remembered.values())) <= MAX_VIEWS


@pytest.mark.parametrize("size", [3, 5, 7, 11, 15])
def test_visibility_spreads_as_in_minigrid(size: int) -> None:
    rng = np.random.default_rng(size)
    for density in (0.0, 0.1, 0.3, 0.6, 1.0):
        for _ in range(20):
            grid = Grid(size, size)
            opaque = rng.random((size, size)) < density
            for x, y in np.argwhere(opaque):
                grid.set(int(x), int(y), Wall())
            expected = grid.process_vis((size // 2, size - 1))
            np.testing.assert_array_equal(visible_cells(opaque), expected)


def test_other_environments_are_refused() -> None:
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(ValueError, match="expected a MiniGrid environment"):
        use_fast_observations(env)
    assert not issubclass(type(env.unwrapped), MiniGridEnv)
