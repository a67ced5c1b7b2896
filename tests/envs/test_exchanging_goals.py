"""The slippery grid with two goals."""

from __future__ import annotations

import numpy as np
import pytest

from sojourn.envs import ExchangingGoals, FiniteEnv
from sojourn.envs.exchanging_goals import BESIDE, CORNER, WALLS

UP, LEFT, DOWN, RIGHT = range(4)


def test_moves_slip_to_both_sides() -> None:
    model = ExchangingGoals().draw(np.random.default_rng(0)).model
    np.testing.assert_allclose(model.chances[7, RIGHT], [0.9, 0.05, 0.05])
    assert model.successors[14, DOWN].tolist() == [20, 13, 14]  # (2, 3) is a wall
    assert model.successors[7, UP].tolist() == [1, 7, 6]  # a wall at (1, 2) is to the right
    assert model.successors[0, UP].tolist() == [0, 1, 0]
    walls = [row * 6 + column for row, column in WALLS]
    outside = [cell for cell in range(36) if cell not in walls]
    assert not np.isin(model.successors[outside], walls).any()


def test_goals_exchange_their_rewards() -> None:
    tasks = [ExchangingGoals(goal).draw(np.random.default_rng(0)) for goal in ("corner", "beside")]
    one, other = (task.model for task in tasks)
    np.testing.assert_allclose(one.rewards, -other.rewards)
    assert set(np.unique(one.successors[one.rewards == 1.0])) == {CORNER}
    assert set(np.unique(one.successors[one.rewards == -1.0])) == {BESIDE}
    np.testing.assert_array_equal(one.successors, other.successors)
    assert sum(task.values.floor[0] for task in tasks) == pytest.approx(0.0, abs=1e-12)
    assert all(0.99 < task.values.optimal[0] <= 1.0 + 1e-12 for task in tasks)


def test_an_episode_ends_in_a_goal() -> None:
    task = ExchangingGoals("corner").draw(np.random.default_rng(0))
    env = FiniteEnv(task.model)
    for seed in range(20):
        env.reset(seed=seed)
        ended, reward = False, 0.0
        while not ended:
            _, given, ended, _, _ = env.step(np.int64(task.best_action(env)))
            reward = float(given)
        assert env.state in (CORNER, BESIDE) and reward == (1.0 if env.state == CORNER else -1.0)


def test_invalid_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="paying: expected one of corner, beside, got 'both'"):
        ExchangingGoals("both")  # type: ignore[arg-type]
