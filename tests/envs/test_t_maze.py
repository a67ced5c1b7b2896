"""The T-maze, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sojourn.envs import FiniteEnv, TMaze
from sojourn.envs.t_maze import BACK, DOWN, FORWARD, UP


def live(env: FiniteEnv, actions: list[int]) -> list[tuple[int, float, bool]]:
    outcome = [env.step(np.int64(action)) for action in actions]
    return [(int(shown), float(reward), ended) for shown, reward, ended, *_ in outcome]


@pytest.mark.parametrize("corridor", [0, 1, 10])
def test_the_sign_says_where_to_turn(corridor: int) -> None:
    env = FiniteEnv(TMaze(corridor).draw(np.random.default_rng(0)).model)
    signs = set()
    for seed in range(20):
        sign = int(env.reset(seed=seed)[0])
        signs.add(sign)
        walk = live(env, [FORWARD] * (corridor + 1))
        assert walk == [(2, 0.0, False)] * corridor + [(3, 0.0, False)]
        turn = (UP, DOWN)[sign] if seed % 3 else (DOWN, UP)[sign]
        assert live(env, [turn]) == [(3, 4.0 if seed % 3 else -0.1, True)]
    assert signs == {0, 1}


def test_walls_cost_and_the_horizon_ends() -> None:
    env = FiniteEnv(TMaze(2, horizon=9).draw(np.random.default_rng(0)).model)
    sign = int(env.reset(seed=0)[0])
    walk = live(env, [BACK, UP, FORWARD, DOWN, FORWARD, FORWARD, FORWARD, BACK, BACK])
    rewards = [-0.1, -0.1, 0, -0.1, 0, 0, -0.1, 0, 0]
    shown = [sign, sign, 2, 2, 2, 3, 3, 2, 2]
    assert walk == [
        (seen, reward, step == 8)
        for step, (seen, reward) in enumerate(zip(shown, rewards, strict=True))
    ]


@pytest.mark.parametrize("corridor", [0, 3, 70])
def test_reference_is_exact(corridor: int) -> None:
    family = TMaze(corridor, horizon=corridor + 12)
    task = family.draw(np.random.default_rng(0))
    np.testing.assert_allclose(task.values.optimal, 4.0)
    np.testing.assert_allclose(task.values.floor, family.reference.floor)
    if corridor == 0:  # sign, junction: by hand for a horizon of 2
        short = TMaze(0, 2).draw(np.random.default_rng(0)).model
        assert short.random_values()[0] == pytest.approx(-0.075 - 0.75 * 0.075 + 0.25 * 0.95)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TMaze(-1), "corridor: expected at least 0, got -1"),
        (lambda: TMaze(10, 11), "horizon: expected at least 12 for a corridor of 10, got 11"),
    ],
)
def test_invalid_arguments_are_named(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
