"""How well MiniGrid tasks can be played: ceilings of the planner, floors of random play."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hydra.utils import instantiate
from minigrid.envs.empty import EmptyEnv
from omegaconf import OmegaConf

from sojourn.envs import Crowd, Reference
from sojourn.envs.minigrid import (
    MinigridFamily,
    MinigridTask,
    optimal_return,
    plan,
)
from sojourn.envs.minigrid.reference import FLOOR_EPISODES

from .small_room import ROOM, hidden_rules, task_of

STREAMS = Path(__file__).resolve().parents[3] / "configs" / "stream"


def test_reference_of_the_small_room() -> None:
    reference = task_of(hidden_rules()).reference
    assert reference is not None and reference.kind == "planner"
    assert reference.ceiling == pytest.approx(0.923, abs=0.005)
    assert reference.floor == pytest.approx(0.30, abs=0.02)
    assert 0 < reference.ceiling_error < 0.005 and 0 < reference.floor_error < 0.01
    assert reference.reward_range == 1.0
    assert task_of(hidden_rules()).reference is reference, "measured once"
    plain = MinigridFamily(ROOM, {"max_steps": 40}, num_actions=3)
    named = task_of(plain).reference
    assert named is not None and named.informed is None and reference.informed is not None
    assert replace(reference, informed=None) == named, "only the informed care about names"


def test_floor_is_the_random_policy() -> None:
    family = MinigridFamily("MiniGrid-LavaGapS5-v0", {"max_steps": 60}, num_actions=3)
    reference = task_of(family).reference
    assert reference is not None
    env = task_of(family).make_env()
    rng = np.random.default_rng(1)
    returns = []
    for episode in range(2 * FLOOR_EPISODES):
        env.reset(seed=10_000 + episode)
        total, done = 0.0, False
        while not done:
            _, reward, terminated, truncated, _ = env.step(rng.integers(3))
            total, done = total + float(reward), terminated or truncated
        returns.append(total)
    error = np.hypot(np.std(returns) / np.sqrt(len(returns)), reference.floor_error)
    assert abs(np.mean(returns) - reference.floor) < 4.5 * error


def test_a_reference_can_be_given() -> None:
    task = task_of(MinigridFamily("MiniGrid-Playground-v0"))
    assert task.reference is None
    given = Reference(0.1, 0.9, "user", reward_range=1.0)
    task.reference = given
    assert task.reference is given


def test_too_few_actions_leave_nothing_to_gain() -> None:
    reference = task_of(MinigridFamily("MiniGrid-DoorKey-5x5-v0", num_actions=3)).reference
    assert reference is not None and (reference.floor, reference.ceiling) == (0.0, 0.0)


@pytest.mark.parametrize("instance", ["fixed", "resampled"])
def test_optimal_return_is_that_of_the_present_layout(instance: Any) -> None:
    task = task_of(MinigridFamily(ROOM, {"max_steps": 40}, num_actions=3, instance=instance))
    env = task.make_env()
    for seed in (3, 3, 4, None, None, 3, 5):
        env.reset(seed=seed)
        found = plan(env, range(3))
        assert found is not None
        assert task.optimal_return(env) == found.return_bounds[0] == found.return_bounds[1]


def test_unknown_optimum_is_nan() -> None:
    task = task_of(MinigridFamily("MiniGrid-Playground-v0"))
    env = task.make_env()
    env.reset(seed=0)
    assert np.isnan(task.optimal_return(env)) and task.reference is None


def test_missions_of_several_parts_have_a_budget_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sojourn.envs.minigrid.reference.SEVERAL_NODES", 0)
    for id, is_known in (("BabyAI-OpenTwoDoors-v0", False), ("BabyAI-OpenRedDoor-v0", True)):
        task = task_of(MinigridFamily(id, instance="resampled"))
        env = task.make_env()
        env.reset(seed=0)
        assert np.isfinite(task.optimal_return(env)) == is_known
        assert optimal_return(env) > 0.0


def test_wrappers_of_a_registration_make_the_optimum_unknown() -> None:
    gymnasium.register("Test-Empty-v0", EmptyEnv, max_episode_steps=10, kwargs={"size": 5})
    try:
        for instance in ("fixed", "resampled"):
            task = task_of(MinigridFamily("Test-Empty-v0", instance=instance))
            env = task.make_env()
            env.reset(seed=0)
            assert np.isnan(task.optimal_return(env)) and task.reference is None
    finally:
        del gymnasium.registry["Test-Empty-v0"]


@pytest.mark.parametrize("name", ["hidden_rules", "minigrid"])
def test_the_planner_plays_without_regret(name: str) -> None:
    stream = instantiate(OmegaConf.load(STREAMS / f"{name}.yaml"), seed=3)
    crowd = Crowd(stream, 2)
    games: list[Any] = [None, None]
    queues: list[list[int]] = [[], []]
    episodes = []
    for _ in range(300):
        for row, segment in enumerate(crowd.segments):
            if not queues[row]:
                task = segment.task
                assert isinstance(task, MinigridTask)
                games[row] = task.make_env()
                games[row].reset(seed=segment.seed)
                found = plan(games[row], range(task.env_key.num_actions))
                assert found is not None and found.actions is not None
                queues[row] = [task.permutation.index(action) for action in found.actions]
        step = crowd.step(np.array([queue.pop(0) for queue in queues]))
        episodes += step.episodes
    assert len({record.task_index for record in episodes}) >= 3
    assert all(record.total_return == pytest.approx(record.optimal_return) for record in episodes)
