"""Every registered MiniGrid and BabyAI environment, and how to compare what they show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from sojourn.envs.making import MINIGRID
from sojourn.envs.minigrid.recipe import make_bare

# Wave-function-collapse environments: the distribution of minigrid lacks the images they need.
UNPLAYABLE = tuple(
    f"MiniGrid-WFC-{name}-v0"
    for name in (
        "DungeonMazeScaled",
        "MazeSimple",
        "ObstaclesAngular",
        "ObstaclesBlackdots",
        "ObstaclesHogs3",
        "RoomsFabric",
    )
)
PLAYABLE = sorted(
    id for id in gymnasium.registry if id.startswith(MINIGRID) and id not in UNPLAYABLE
)
# Random play that gets somewhere: left, right, forward, pickup, drop, toggle, done.
HABITS = np.array([0.15, 0.15, 0.38, 0.1, 0.05, 0.12, 0.05])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "playable_id" in metafunc.fixturenames:
        metafunc.parametrize("playable_id", PLAYABLE)
    if "unplayable_id" in metafunc.fixturenames:
        metafunc.parametrize("unplayable_id", UNPLAYABLE)


def assert_same_observation(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert list(one) == list(other)
    assert one["image"].dtype == other["image"].dtype
    np.testing.assert_array_equal(one["image"], other["image"])
    assert type(one["direction"]) is type(other["direction"])
    assert one["direction"] == other["direction"]
    assert one["mission"] == other["mission"]


@pytest.fixture(scope="session")
def same_observation() -> Callable[[dict[str, Any], dict[str, Any]], None]:
    """Asserts that two observations are equal to the bit and the type."""
    return assert_same_observation


@pytest.fixture(scope="session")
def habits() -> Callable[[gymnasium.Env[Any, Any], int, int], list[int]]:
    """`habits(env, num_steps, seed)`: random native actions."""

    def actions(env: gymnasium.Env[Any, Any], num_steps: int, seed: int) -> list[int]:
        space = env.action_space
        assert isinstance(space, gymnasium.spaces.Discrete)
        weights = HABITS[: space.n] / HABITS[: space.n].sum()
        drawn = np.random.default_rng(seed).choice(int(space.n), size=num_steps, p=weights)
        return [int(action) for action in drawn]

    return actions


@pytest.fixture(scope="session")
def original() -> Callable[..., Any]:
    """`original(id, **kwargs)`: the bare environment as MiniGrid makes it."""

    def make(id: str, **kwargs: Any) -> Any:
        return make_bare(id, kwargs).unwrapped

    return make
