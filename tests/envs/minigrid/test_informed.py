"""Informed ceilings against plans searched by brute force, published means and hand values."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from sojourn.envs import Crowd, Length, NeverRepeating, Stream
from sojourn.envs.minigrid import MinigridFamily, plan
from sojourn.envs.minigrid.informed import informed_ceiling
from sojourn.envs.minigrid.recipe import Recipe, frozen_kwargs


def recipe(id: str, num_actions: int = 3, permuted: bool = False, **kwargs: Any) -> Recipe:
    return Recipe(id, frozen_kwargs(kwargs), num_actions, permuted, replayed=False)


# Means over seeds 0 .. 99 of an independent search over the real environment's own view masks.
MEMORY = {"S7": 0.9785, "S9": 0.9849, "S11": 0.9861, "S13": 0.9875, "S13Random": 0.9906}


@pytest.mark.parametrize("size", MEMORY)
def test_memory_means_are_the_known_ones(size: str) -> None:
    made = recipe(f"MiniGrid-Memory{size}-v0")
    env = made.make()
    found = []
    for seed in range(100):
        env.reset(seed=seed)
        found.append(informed_ceiling(env, made, 0))
        assert found[-1] == informed_ceiling(env, made, 3), "a new layout hides its cue again"
    assert all(ceiling.is_exact for ceiling in found)
    assert np.mean([ceiling.value for ceiling in found]) == pytest.approx(MEMORY[size], abs=6e-5)


def test_two_goals_are_worth_half_of_the_nearer_one_at_first_and_all_later() -> None:
    made = recipe("Sojourn-TwoGoals-v0", size=5, max_steps=40)
    env = made.make()
    for seed in range(30):
        env.reset(seed=seed)
        base: Any = env.unwrapped
        own = plan(env)
        base.success_pos, base.failure_pos = base.failure_pos, base.success_pos
        other = plan(env)
        base.success_pos, base.failure_pos = base.failure_pos, base.success_pos
        assert own is not None and other is not None
        nearer = max(own.return_bounds[0], other.return_bounds[0])
        first, later = (informed_ceiling(env, made, episode) for episode in (0, 1))
        assert first.is_exact and first.value == pytest.approx(nearer / 2)
        assert later.is_exact and later.value == pytest.approx(own.return_bounds[0])


def best_return_by_search(env: Any, depth: int) -> float:
    """Expectation over the permutations that fit what was seen, by brute force over real moves."""
    base = env.unwrapped
    limit, size = base.max_steps, base.width

    def moved(pose: tuple[int, int, int], native: int) -> tuple[int, int, int]:
        x, y, direction = pose
        if native < 2:
            return x, y, (direction + (1, -1)[native == 0]) % 4
        step = ((1, 0), (0, 1), (-1, 0), (0, -1))[direction]
        there = (x + step[0], y + step[1])
        free = 0 < there[0] < size - 1 and 0 < there[1] < size - 1
        return (*there, direction) if free else pose

    def value(pose: tuple[int, int, int], beliefs: Any, step: int) -> float:
        if step == depth:
            return 0.0
        best = 0.0
        for action in range(3):
            total = 0.0
            for native in {belief[action] for belief in beliefs}:
                left = tuple(belief for belief in beliefs if belief[action] == native)
                after = moved(pose, native)
                if after[:2] == (size - 2, size - 2):
                    worth = 1 - 0.9 * (step + 1) / limit
                else:
                    worth = value(after, left, step + 1)
                total += len(left) / len(beliefs) * worth
            best = max(best, total)
        return best

    start = (*map(int, base.agent_pos), int(base.agent_dir))
    return value(start, tuple(permutations(range(3))), 0)


def test_finding_out_equals_a_search_over_all_beliefs() -> None:
    made = recipe("MiniGrid-Empty-Random-5x5-v0", permuted=True, max_steps=5)
    env = made.make()
    for seed in range(6):
        env.reset(seed=seed)
        found = informed_ceiling(env, made, 0)
        assert found.is_exact
        assert found.value == pytest.approx(best_return_by_search(env, depth=5))


def test_what_is_not_proven_is_a_bound_and_says_so() -> None:
    for made in (
        recipe("MiniGrid-Empty-Random-5x5-v0", 6, permuted=True),
        recipe("MiniGrid-DoorKey-5x5-v0", 6, permuted=True),
        recipe("Sojourn-TwoGoals-v0", permuted=True),
    ):
        env = made.make()
        env.reset(seed=1)
        found = plan(env, range(made.num_actions))
        first, later = (informed_ceiling(env, made, episode) for episode in (0, 1))
        assert found is not None and not first.is_exact and not later.is_exact
        assert first.value <= later.value == found.return_bounds[0]


def test_the_reference_and_the_records_carry_both_ceilings() -> None:
    family = MinigridFamily(
        "MiniGrid-Empty-Random-5x5-v0", {"max_steps": 40}, "permuted", num_actions=3
    )
    reference = family.draw(np.random.default_rng(0)).reference
    assert reference is not None and reference.informed is not None
    informed = reference.informed
    assert reference.floor < informed.first < reference.ceiling == pytest.approx(informed.later)
    assert informed.first_is_exact and not informed.later_is_exact
    crowd = Crowd(Stream(NeverRepeating([family]), Length(2), 0), 4)
    records = []
    while len(records) < 12:
        records += crowd.step(np.zeros(4, np.int64)).episodes
    for record in records:
        hidden = record.informed_return < record.optimal_return
        assert hidden == (record.episode == 0)


def test_tasks_that_hide_nothing_have_one_ceiling() -> None:
    family = MinigridFamily("MiniGrid-Empty-Random-5x5-v0", {"max_steps": 40}, num_actions=3)
    reference = family.draw(np.random.default_rng(0)).reference
    assert reference is not None and reference.informed is None
