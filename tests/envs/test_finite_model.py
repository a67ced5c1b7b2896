"""Tables of a decision process: their values, and what a model refuses."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from sojourn.envs import FiniteEnv, FiniteModel, TabularMDP
from sojourn.envs.hashed_noise import normals, uniforms


def draw_model(horizon: int, **changes: Any) -> FiniteModel:
    """Three states with two successors of each of two actions; the last state is final."""
    rng = np.random.default_rng(0)
    parts: dict[str, Any] = {
        "horizon": horizon,
        "successors": rng.integers(3, size=(3, 2, 2)),
        "chances": np.full((3, 2, 2), 0.5),
        "rewards": rng.normal(size=(3, 2, 2)),
        "shown": np.arange(3),
        "starts": np.array([0, 1]),
        "final": np.array([False, False, True]),
    }
    return FiniteModel(**(parts | changes))


def tree_value(model: FiniteModel, state: int, steps: int, optimal: bool) -> float:
    """The obvious slow way: the whole tree of what can happen."""
    if steps == 0 or (steps < model.horizon and model.final[state]):
        return 0.0
    values = [
        sum(
            p * (r + tree_value(model, int(s), steps - 1, optimal))
            for p, r, s in zip(
                model.chances[state, a],
                model.rewards[state, a],
                model.successors[state, a],
                strict=True,
            )
        )
        for a in range(model.num_actions)
    ]
    return float(max(values) if optimal else np.mean(values))


@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_values_are_those_of_the_tree(horizon: int) -> None:
    model = draw_model(horizon)
    optimal = model.action_values()[0].max(1)
    random = model.random_values()
    for state in range(3):
        assert optimal[state] == pytest.approx(tree_value(model, state, horizon, True))
        assert random[state] == pytest.approx(tree_value(model, state, horizon, False))


def test_no_open_loop_plan_beats_the_optimum() -> None:
    rng = np.random.default_rng(1)
    one = {"chances": np.ones((3, 2, 1)), "rewards": rng.normal(size=(3, 2, 1))}
    model = draw_model(4, successors=rng.integers(3, size=(3, 2, 1)), **one)
    assert model.is_deterministic
    returns = []
    for plan in itertools.product(range(2), repeat=4):
        state, total = 0, 0.0
        for action in plan:
            total += model.rewards[state, action, 0]
            state = int(model.successors[state, action, 0])
            if model.final[state]:
                break
        returns.append(total)
    assert max(returns) == pytest.approx(model.action_values()[0, 0].max())


def test_environment_is_valid_and_follows_its_tables() -> None:
    model = TabularMDP(3, 2, 400).draw(np.random.default_rng(0)).model
    env = FiniteEnv(model)
    check_env(env, skip_render_check=True)
    counts, rewards = np.zeros((3, 2, 3)), []
    rng = np.random.default_rng(0)
    for episode in range(20):
        state, _ = env.reset(seed=episode)
        for _ in range(400):
            action = int(rng.integers(2))
            after, reward, *_, info = env.step(np.int64(action))
            counts[state, action, after] += 1
            rewards.append(float(reward) - info["expected_reward"])
            state = after
    visits = counts.sum(2, keepdims=True)
    error = np.sqrt(model.chances * (1 - model.chances) / visits)
    assert (np.abs(counts / visits - model.chances) < 4.5 * error).all()
    assert abs(np.mean(rewards)) < 4.5 / np.sqrt(8000) and abs(np.std(rewards) - 1.0) < 0.04


def test_noise_by_address_is_noise() -> None:
    seeds, steps = (part.ravel() for part in np.meshgrid(np.arange(300), np.arange(300)))
    u, other = uniforms(seeds, steps, 0), uniforms(seeds, steps, 1)
    assert len(np.unique(u)) == 90_000 and u.min() >= 0.0 and u.max() < 1.0
    shares = np.histogram(u, 20, (0.0, 1.0))[0] / 90_000
    assert np.abs(shares - 0.05).max() < 4.5 * np.sqrt(0.05 * 0.95 / 90_000)
    grid = u.reshape(300, 300)
    pairs = [(u, other), (grid[1:].ravel(), grid[:-1].ravel())]
    pairs.append((grid[:, 1:].ravel(), grid[:, :-1].ravel()))
    for a, b in pairs:
        assert abs(np.corrcoef(a, b)[0, 1]) < 4.5 / np.sqrt(len(a))
    z = normals(seeds, steps, 0)
    assert abs(z.mean()) < 4.5 / 300 and abs(z.std() - 1.0) < 4.5 / np.sqrt(2) / 300
    assert abs((z**4).mean() - 3.0) < 4.5 * np.sqrt(96) / 300


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "horizon: expected at least 1, got 0"),
        ({"rewards": np.zeros((3, 2))}, r"rewards: expected \(3, 2, 2\), got \(3, 2\)"),
        ({"chances": np.full((3, 2, 2), 0.4)}, "chances: expected to sum to 1"),
    ],
)
def test_invalid_tables_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw_model(**({"horizon": 3} | changes))
