"""Plans earn in the real game what they promise; what is not known is not guessed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
import pytest
from minigrid.core.world_object import Door, Goal
from minigrid.envs.empty import EmptyEnv
from minigrid.envs.fetch import FetchEnv

from sojourn.envs.minigrid import PermutedActions, optimal_return, optimal_steps, plan

Make = Callable[..., Any]

SOLVED = [
    *("BlockedUnlockPickup-v0", "DistShift1-v0", "DistShift2-v0", "DoorKey-5x5-v0"),
    *("DoorKey-8x8-v0", "DoorKey-16x16-v0", "Empty-8x8-v0", "Empty-Random-6x6-v0"),
    *("Fetch-5x5-N2-v0", "Fetch-8x8-N3-v0", "FourRooms-v0", "GoToDoor-5x5-v0"),
    *("GoToDoor-8x8-v0", "GoToObject-6x6-N2-v0", "GoToObject-8x8-N2-v0", "KeyCorridorS3R1-v0"),
    *("KeyCorridorS3R3-v0", "KeyCorridorS6R3-v0", "LavaCrossingS11N5-v0", "LavaGapS7-v0"),
    *("LockedRoom-v0", "MemoryS7-v0", "MemoryS13Random-v0", "MultiRoom-N2-S4-v0"),
    *("MultiRoom-N6-v0", "ObstructedMaze-1Dl-v0", "ObstructedMaze-1Dlhb-v0"),
    *("ObstructedMaze-2Dlh-v0", "ObstructedMaze-2Dlhb-v1", "PutNear-6x6-N2-v0"),
    *("PutNear-8x8-N3-v0", "RedBlueDoors-6x6-v0", "SimpleCrossingS9N3-v0", "Unlock-v0"),
    "UnlockPickup-v0",
]


def replayed_return(env: Any, actions: Collection[int]) -> float:
    """Return of a plan in the real game, which must end with the plan and not before."""
    total, ends = 0.0, []
    for action in actions:
        _, reward, terminated, truncated, _ = env.step(action)
        total += reward
        ends.append(terminated or truncated)
    assert ends == [False] * (len(ends) - 1) + [True]
    return total


@pytest.mark.parametrize("name", SOLVED)
def test_plans_earn_what_they_promise(name: str, original: Make) -> None:
    env = original(f"MiniGrid-{name}")
    for seed in range(3):
        env.reset(seed=seed)
        found = plan(env)
        assert found is not None and found.actions is not None
        assert found.is_exact and found.min_steps == len(found.actions)
        assert optimal_steps(env) == len(found.actions)
        assert replayed_return(env, found.actions) == found.return_bounds[0]


@pytest.mark.parametrize("name", ["Empty-5x5-v0", "Empty-Random-6x6-v0", "LavaGapS5-v0"])
def test_time_limit(name: str, original: Make) -> None:
    env = original(f"MiniGrid-{name}")
    env.reset(seed=3)
    needed = optimal_steps(env)
    assert needed is not None
    for max_steps, expected in ((needed, 1 - 0.9), (needed - 1, 0.0), (2 * needed, 0.55)):
        env = original(f"MiniGrid-{name}", max_steps=max_steps)
        env.reset(seed=3)
        assert optimal_return(env) == pytest.approx(expected)
        assert optimal_steps(env) == (needed if max_steps >= needed else None)
        found = plan(env)
        assert found is not None and found.is_exact
        if found.actions is not None:
            assert replayed_return(env, found.actions) == optimal_return_of(found)


def optimal_return_of(found: Any) -> float:
    low, high = found.return_bounds
    assert low == high
    return float(low)


def test_the_optimum_holds_along_the_plan(original: Make) -> None:
    env = original("MiniGrid-ObstructedMaze-1Dlhb-v0")
    env.reset(seed=2)
    found = plan(env)
    assert found is not None and found.actions is not None
    best = optimal_return(env)
    for done, action in enumerate(found.actions[:-1], start=1):
        env.step(action)
        assert optimal_return(env) == best
        assert optimal_steps(env) == len(found.actions) - done


def test_planning_only_reads(original: Make) -> None:
    env = original("MiniGrid-BlockedUnlockPickup-v0")
    env.reset(seed=0)
    before = deepcopy(env)
    plan(env)
    assert before.grid == env.grid and tuple(before.agent_pos) == tuple(env.agent_pos)
    assert (before.agent_dir, before.carrying) == (env.agent_dir, env.carrying)
    assert before.np_random.integers(1 << 30) == env.np_random.integers(1 << 30)


@pytest.mark.parametrize("max_nodes", [0, 1, 10, 50, 100, 200, 400])
@pytest.mark.parametrize("name", ["ObstructedMaze-1Dlhb-v0", "BlockedUnlockPickup-v0"])
def test_bounds_of_a_search_cut_short(name: str, max_nodes: int, original: Make) -> None:
    env = original(f"MiniGrid-{name}")
    for seed in range(3):
        env.reset(seed=seed)
        best, steps = optimal_return(env), optimal_steps(env)
        found = plan(env, max_nodes=max_nodes)
        assert found is not None and steps is not None
        low, high = found.return_bounds
        assert low <= best <= high and found.min_steps <= steps
        assert found.is_exact == (low == high)
        if found.actions is not None:
            assert replayed_return(env, found.actions) == low


class OwnStep(EmptyEnv):  # type: ignore[misc]
    def step(self, action: int) -> Any:
        return super().step(action)


class OwnReward(EmptyEnv):  # type: ignore[misc]
    def _reward(self) -> float:
        return 1.0


class OwnGoal(Goal):  # type: ignore[misc]
    def can_overlap(self) -> bool:
        return False


class OwnFetch(FetchEnv):  # type: ignore[misc]
    def step(self, action: int) -> Any:
        seen, reward, *flags = super().step(action)
        return (seen, -reward, *flags)


class GoalInFetch(FetchEnv):  # type: ignore[misc]
    def _gen_grid(self, width: int, height: int) -> None:
        super()._gen_grid(width, height)
        self.put_obj(Goal(), 1, 1)


class OddGoal(EmptyEnv):  # type: ignore[misc]
    def _gen_grid(self, width: int, height: int) -> None:
        super()._gen_grid(width, height)
        self.put_obj(OwnGoal(), 2, 2)


@pytest.mark.parametrize("kind", [OwnStep, OwnReward, OwnFetch, GoalInFetch, OddGoal])
def test_rules_of_ones_own_are_unknown(kind: Callable[..., Any]) -> None:
    env = kind(size=6)
    env.reset(seed=0)
    assert plan(env) is None and optimal_steps(env) is None and np.isnan(optimal_return(env))


def test_a_patched_step_is_unknown() -> None:
    env = EmptyEnv(size=5)
    env.reset(seed=0)
    assert plan(env) is not None
    vars(env)["step"] = lambda action: EmptyEnv.step(env, action)
    assert plan(env) is None


def test_what_the_planner_knows(playable_id: str, original: Make) -> None:
    env = original(playable_id)
    env.reset(seed=0)
    found = plan(env, max_nodes=1)
    assert (found is None) == playable_id.startswith("MiniGrid-Playground")


def test_unsolvable_layouts_are_worth_nothing(original: Make) -> None:
    env = original("MiniGrid-Empty-6x6-v0")
    env.reset(seed=0)
    for x, y in ((3, 4), (4, 3)):
        env.grid.set(x, y, Door("red", is_locked=True))
    assert optimal_return(env) == 0.0 and optimal_steps(env) is None


def test_wrappers_are_looked_through(original: Make) -> None:
    env = PermutedActions(original("MiniGrid-Empty-5x5-v0"), 3)
    env.permutation = (2, 0, 1)
    env.reset(seed=0)
    assert optimal_steps(env, range(3)) == 5


def test_other_environments_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a MiniGrid environment"):
        plan(gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match="reset it first"):
        plan(EmptyEnv(size=5))
