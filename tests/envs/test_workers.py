"""Worker processes: the same lives bit for bit with any number of them."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from sojourn.envs import (
    Crowd,
    CrowdStep,
    GymnasiumFamily,
    Length,
    NeverRepeating,
    Stream,
    TMaze,
    Workers,
    random_actions,
    task_stream,
)

from .troubled import Troubled

pytestmark = pytest.mark.usefixtures("no_child_is_left")
FORKED = Workers(2, "fork", timeout=20.0)
MIXED = [
    "CartPole-v1",
    {"id": "Pendulum-v1", "attributes": {"g": {"uniform": [8, 12]}}, "max_episode_steps": 9},
    "Blackjack-v1",
    "MiniGrid-Empty-Random-5x5-v0",
]


def stream_of(name: str, workers: int | Workers) -> Stream:
    if name == "arrays":
        return Stream(NeverRepeating([TMaze(3, 12)]), Length(2), 5, 3, workers=workers)
    if name == "faults":
        family = GymnasiumFamily(Troubled, {"how": "raise in step"})
        schedule = NeverRepeating([family, GymnasiumFamily("CartPole-v1")])
        return Stream(schedule, Length(2), 5, on_error="replace_task", workers=workers)
    return task_stream(MIXED, 5, length=Length(2), lifetime_segments=6, workers=workers)


def same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return all(
        x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
        for x, y in ((a[name], b[name]) for name in a.keys() | b.keys())
    )


def assert_same(one: CrowdStep, other: CrowdStep) -> None:
    assert same(one.observation, other.observation)
    assert same(one.final_observation, other.final_observation)
    arrays = ("reward", "expected_reward", "terminated", "truncated", "task_end", "lifetime_end")
    assert same({n: getattr(one, n) for n in arrays}, {n: getattr(other, n) for n in arrays})
    assert list(map(repr, one.episodes)) == list(map(repr, other.episodes))


def actions_of(crowd: Crowd, rng: np.random.Generator) -> Any:
    return random_actions(crowd.interface, crowd.observation["action_mask"], rng)


@pytest.mark.parametrize("name", ["arrays", "mixed", "faults"])
@pytest.mark.parametrize("workers", [Workers(1, "fork"), Workers(3, "fork"), Workers(99, "fork")])
def test_the_same_lives_with_any_number_of_workers(name: str, workers: Workers) -> None:
    alone, spread = Crowd(stream_of(name, 0), 5), Crowd(stream_of(name, workers), 5)
    one, other = np.random.default_rng(0), np.random.default_rng(0)
    assert same(alone.observation, spread.observation)
    num_episodes = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if name == "faults" else "error")
        for _ in range(60):
            lived = alone.step(actions_of(alone, one))
            assert_same(lived, spread.step(actions_of(spread, other)))
            num_episodes += len(lived.episodes)
    assert num_episodes > 5
    assert alone.num_faults == spread.num_faults
    assert (alone.num_faults > 0) == (name == "faults")
    spread.close()


def test_a_life_goes_on_with_another_number_of_workers() -> None:
    alone = Crowd(stream_of("mixed", 0), 4)
    rng = np.random.default_rng(1)
    for _ in range(37):
        alone.step(actions_of(alone, rng))
    saved = alone.state_dict()
    spread = Crowd(stream_of("mixed", FORKED), 4)
    spread.load_state_dict(saved)
    for number in range(40):
        action = actions_of(alone, np.random.default_rng(number))
        assert_same(alone.step(action), spread.step(action))
    back = Crowd(stream_of("mixed", 0), 4)
    back.load_state_dict(spread.state_dict())
    assert same(back.observation, spread.observation)
    spread.close()


def test_spawned_workers_know_what_is_registered_here() -> None:
    gymnasium.register("RegisteredHere-v0", CartPoleEnv, max_episode_steps=10)
    try:
        spread = Crowd(task_stream(["RegisteredHere-v0"], 0, workers=2), 3)
        alone = Crowd(task_stream(["RegisteredHere-v0"], 0), 3)
        for _ in range(12):
            assert_same(alone.step(np.zeros(3, np.int64)), spread.step(np.zeros(3, np.int64)))
        spread.close()
    finally:
        del gymnasium.registry["RegisteredHere-v0"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1,), "workers: expected at least 0, got -1"),
        ((2, "thread"), "workers.start: expected one of spawn, fork, forkserver, got 'thread'"),
        ((2, "fork", 0.0), "workers.timeout: expected seconds > 0, got 0.0"),
    ],
)
def test_invalid_arguments_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workers(*arguments)
