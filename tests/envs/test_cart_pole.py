"""Cart and pole: Gymnasium's own with the usual physics, and what hidden parameters do to it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from sojourn.envs import CartPole, CartPoleEnv, Drifting
from sojourn.envs.cart_pole import DEFAULT, GAINS, PHYSICS, advance, draw_start, has_fallen

RANGES: dict[str, Any] = {
    "gravity": [5, 20],
    "force": [6, 15],
    "half_length": [0.25, 1.0],
    "cart_mass": [0.5, 2.0],
    "pole_mass": [0.05, 0.4],
}


def drawn(family: CartPole, num: int) -> np.ndarray:
    return np.array([family.draw(np.random.default_rng(s)).physics for s in range(num)])


@pytest.mark.filterwarnings("ignore:.*A Box observation space")
def test_with_the_usual_physics_it_is_gymnasiums() -> None:
    check_env(CartPoleEnv(), skip_render_check=True)
    ours, theirs = CartPoleEnv(), gymnasium.make("CartPole-v1")
    rng = np.random.default_rng(0)
    for seed in range(10):
        shown, other = ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0]
        np.testing.assert_array_equal(shown, other)
        ended = False
        while not ended:
            action = np.int64(rng.integers(2))
            one, two = ours.step(action), theirs.step(action)
            np.testing.assert_allclose(one[0], two[0], rtol=1e-6)
            assert one[1:4] == two[1:4]
            ended = one[2] or one[3]


@pytest.mark.parametrize("physics", [{}, RANGES], ids=["usual", "drawn"])
def test_the_linear_controller_reaches_the_limit(physics: dict[str, Any]) -> None:
    table = drawn(CartPole(500, physics), 400)
    rng = np.random.default_rng(0)
    state = np.array([draw_start(rng) for _ in table])
    for _ in range(1000):
        state = advance(state, (state @ GAINS > 0).astype(int), table)
        assert not has_fallen(state).any()


def test_floor_is_the_mean_of_random_episodes() -> None:
    family = CartPole(500)
    lengths = []
    env, rng = CartPoleEnv(), np.random.default_rng(1)
    for seed in range(600):
        env.reset(seed=seed)
        length, ended = 0, False
        while not ended:
            *_, fell, late, _ = env.step(np.int64(rng.integers(2)))
            length, ended = length + 1, fell or late
        lengths.append(length)
    error = np.hypot(np.std(lengths) / np.sqrt(600), family.reference.floor_error)
    assert abs(np.mean(lengths) - family.reference.floor) < 4.5 * error


def test_parameters_are_drawn_in_their_ranges() -> None:
    np.testing.assert_array_equal(drawn(CartPole(), 3), np.tile(DEFAULT, (3, 1)))
    table = drawn(CartPole(physics=RANGES), 400)
    for name, column in zip(PHYSICS, table.T, strict=True):
        low, high = RANGES.get(name, (column[0], column[0]))
        assert low * (1 - 1e-12) <= column.min() and column.max() <= high * (1 + 1e-12)
        if low < high:  # log-uniform
            share = np.log(column / low) / np.log(high / low)
            assert abs(share.mean() - 0.5) < 4.5 / np.sqrt(12 * 400)
    shifted = CartPole(offset_spread=2.0)
    offsets = np.array([shifted.draw(np.random.default_rng(s)).offset for s in range(400)])
    assert abs(offsets.std() - 2.0) < 4.5 * 2.0 / np.sqrt(2 * 1600)
    assert not CartPole().draw(np.random.default_rng(0)).offset.any()


def test_offsets_and_hidden_speeds_change_only_what_is_seen() -> None:
    task = CartPole(offset_spread=2.0, shows="positions").draw(np.random.default_rng(0))
    plain, shifted = CartPoleEnv(), task.make_env()
    one, other = plain.reset(seed=3)[0], shifted.reset(seed=3)[0]
    for action in (1, 0, 1):
        np.testing.assert_allclose(other, one[[0, 2]] + task.offset[[0, 2]], rtol=1e-5)
        one, other = plain.step(np.int64(action))[0], shifted.step(action)[0]
    assert other.shape == (2,)


def test_physics_drift_and_return() -> None:
    schedule = Drifting(CartPole(physics={"gravity": [5, 20]}, period=30.0))
    tasks: list[Any] = [schedule.assign(0, 0, k).task for k in range(61)]
    gravity = np.array([task.physics[0] for task in tasks])
    np.testing.assert_allclose(gravity[:31], gravity[30:])
    share = np.log(gravity / 5) / np.log(4)
    assert np.abs(np.diff(share)).max() <= 2 / 30 + 1e-12
    assert share.min() < 0.05 and share.max() > 0.95
    assert all((task.physics[1:] == DEFAULT[1:]).all() for task in tasks)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_steps": 0}, "max_steps: expected at least 1, got 0"),
        ({"shows": "nothing"}, "shows: expected one of all, positions, got 'nothing'"),
        ({"offset_spread": -1.0}, "offset_spread: expected at least 0"),
        ({"period": 0.0}, "period: expected more than 0 segments"),
        ({"physics": {"gravty": 9.8}}, "physics: .*'gravty'; nearest is 'gravity'"),
        ({"physics": {"force": [3, 1]}}, "physics.force: expected 0 < low <= high"),
        ({"physics": {"force": 0}}, "physics.force: expected 0 < low <= high, got 0"),
    ],
)
def test_invalid_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CartPole(**options)
