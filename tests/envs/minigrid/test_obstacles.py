"""Who knows how obstacles will move takes the shortest way: against a search of the real game."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from sojourn.envs.minigrid import optimal_return, optimal_steps, plan

Make = Callable[..., Any]


def blind_search(env: Any) -> int | None:
    """Fewest actions to a reward above 0, by stepping copies of the real game."""
    vars(env)["gen_obs"] = lambda: None
    reached, pending = set(), deque([(env, 0)])
    while pending:
        now, num_steps = pending.popleft()
        for action in range(3) if num_steps < env.max_steps else ():
            after = deepcopy(now)
            _, reward, terminated, _, _ = after.step(action)
            if reward > 0:
                return num_steps + 1
            places = tuple(tuple(map(int, ball.cur_pos)) for ball in after.obstacles)
            luck = repr(after.np_random.bit_generator.state)
            key = (*map(int, after.agent_pos), int(after.agent_dir), places, luck)
            if not terminated and key not in reached:
                reached.add(key)
                pending.append((after, num_steps + 1))
    return None


@pytest.mark.parametrize("id", ["MiniGrid-Dynamic-Obstacles-Random-5x5-v0"])
def test_agrees_with_blind_search_of_the_real_game(id: str, original: Make) -> None:
    for seed in range(5):
        env = original(id)
        env.reset(seed=seed)
        assert optimal_steps(env) == blind_search(env)


@pytest.mark.parametrize("size", ["5x5", "6x6", "8x8", "16x16"])
def test_plans_earn_what_they_promise(size: str, original: Make) -> None:
    env = original(f"MiniGrid-Dynamic-Obstacles-{size}-v0")
    for seed in range(4):
        env.reset(seed=seed)
        found = plan(env)
        assert found is not None and found.actions is not None and found.is_exact
        for number, action in enumerate(found.actions, start=1):
            if number == len(found.actions) // 2:
                assert optimal_steps(env) == len(found.actions) - number + 1
            _, reward, terminated, _, _ = env.step(action)
            assert terminated == (number == len(found.actions))
        assert reward == found.return_bounds[0]


def test_no_time_is_worth_nothing_and_planning_only_reads(original: Make) -> None:
    env = original("MiniGrid-Dynamic-Obstacles-5x5-v0", max_steps=3)
    env.reset(seed=0)
    before = env.np_random.bit_generator.state
    assert optimal_return(env) == 0.0 and optimal_steps(env) is None
    assert env.np_random.bit_generator.state == before
    found = plan(env, range(2))
    assert found is not None and found.actions is None, "turning leads nowhere"


def test_a_search_cut_short_is_a_bound(original: Make) -> None:
    env = original("MiniGrid-Dynamic-Obstacles-8x8-v0")
    for seed, max_nodes in np.ndindex(3, 6):
        env.reset(seed=seed)
        best, found = optimal_return(env), plan(env, max_nodes=4 * max_nodes)
        assert found is not None
        low, high = found.return_bounds
        assert low <= best <= high
