"""Properties that regret must have, and faults of others that it must not repeat."""

from __future__ import annotations

import numpy as np
import pytest

from sojourn.envs import (
    Crowd,
    GymnasiumFamily,
    Length,
    NeverRepeating,
    Reference,
    Stream,
    check_reference,
    dynamic_regret,
    episode_regret,
    failure_and_slowness,
    normalised_regret,
    pooled_regret,
    rate_windows,
    raw_regret,
    reference_gap,
    regret_by_episode,
    regret_error,
    return_windows,
    task_gaps,
)
from sojourn.envs.regret import episode_reference, is_provisional, valid_reference

RNG = np.random.default_rng(0)


def test_raw_and_normalised_regret_of_one_episode() -> None:
    """MiniGrid-Empty-Random-5x5, 40 steps: raw .15 is normalised .22."""
    achieved = 0.923 * (1 - 0.15)
    assert raw_regret(0.923, achieved) == pytest.approx(0.15)
    assert normalised_regret(0.923, achieved, 0.30) == pytest.approx(0.222, abs=1e-3)


def test_regret_is_never_clipped() -> None:
    assert normalised_regret(1.0, -2.0, 0.0) == 3.0
    assert normalised_regret(1.0, 1.5, 0.0) == -0.5
    assert pooled_regret([1.0, 1.0], [1.5, -2.0], [0.0, 0.0]) == pytest.approx(1.25)


def test_pooled_regret_is_not_ruled_by_an_instance_without_gap() -> None:
    optimal, floor = np.array([80.0, 50.001]), np.array([50.0, 50.0])
    assert pooled_regret(optimal, floor, floor) == pytest.approx(1.0)
    assert abs(pooled_regret(optimal, [80.0, 49.0], floor)) < 0.04
    assert normalised_regret(optimal, [80.0, 49.0], floor)[1] > 1000


@pytest.mark.parametrize(
    ("reference", "valid"),
    [
        (Reference(0.30, 0.92, "planner", 0.01, 0.01, 1.0), True),
        (Reference(0.0, 0.0, "user"), False),
        (Reference(1.0, 0.0, "user"), False),
        (Reference(0.0, 0.2, "user", 0.05, 0.05), False),
        (Reference(0.0, 0.22, "user", 0.05, 0.05), True),
        (Reference(0.0, 0.375, "user", floor_error=0.125), False),
        (Reference(0.0, 0.05, "user", reward_range=1.0), False),
        (Reference(0.0, 0.051, "user", reward_range=1.0), True),
        (Reference(0.0, 1e-9, "user"), True),
        (Reference(float("nan"), 1.0, "user"), False),
    ],
)
def test_guard(reference: Reference, valid: bool) -> None:
    assert np.isnan(reference_gap(reference)) != valid
    if valid:
        check_reference("maze", reference)
    else:
        with pytest.raises(ValueError, match=r"reference of 'maze': .* expected more than"):
            check_reference("maze", reference)
    assert np.isnan(reference_gap(None))


def test_reference_of_an_episode_prefers_the_instance_and_follows_the_unit() -> None:
    pooled, nan = Reference(0.25, 0.75, "user"), float("nan")
    assert episode_reference(pooled, "return", 40, nan, nan) == (0.75, 0.25)
    assert episode_reference(pooled, "rate", 40, nan, nan) == (30.0, 10.0)
    assert episode_reference(pooled, "rate", 40, 36.0, 4.0) == (36.0, 4.0)
    assert valid_reference(pooled) is pooled
    for none in (valid_reference(None), valid_reference(Reference(1.0, 1.0, "user"))):
        best, worst = episode_reference(none, "return", 40, 0.9, 0.1)
        assert best == 0.9 and np.isnan(worst)


def test_a_ceiling_is_provisional_above_a_tenth_of_the_gap() -> None:
    assert not is_provisional(Reference(0.0, 2.0, "trained", ceiling_error=0.2))
    assert is_provisional(Reference(0.0, 2.0, "trained", ceiling_error=0.21))
    assert is_provisional(Reference(1.0, 1.0, "trained", ceiling_error=0.1))


def cartpole_returns(
    policy: str, num_steps: int = 3000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rewards of all steps, last steps of the episodes and their returns."""
    crowd = Crowd(Stream(NeverRepeating([GymnasiumFamily("CartPole-v1")]), Length(10**6), 0), 1)
    rng = np.random.default_rng(1)
    rewards, ends, returns = [], [], []
    for step in range(num_steps):
        action = 0 if policy == "left" else int(rng.integers(2))
        result = crowd.step(np.array([action]))
        rewards.append(result.reward[0])
        if result.episodes:
            ends.append(step)
            returns.append(result.episodes[0].total_return)
    return np.array(rewards), np.array(ends), np.array(returns)


def test_cartpole_with_unit_rate_is_refused() -> None:
    """Reward per step is 1 for every policy: a regret of rates would be zero for a dead agent."""
    rewards, _, _ = cartpole_returns("random")
    rate = rewards.mean()
    reference = Reference(floor=float(rate), ceiling=1.0, kind="user", reward_range=1.0)
    with pytest.raises(ValueError, match="reference of 'CartPole-v1'"):
        check_reference("CartPole-v1", reference)


def test_always_left_cartpole_with_unit_return_is_worse_than_random() -> None:
    _, _, random_returns = cartpole_returns("random", 6000)
    _, ends, returns = cartpole_returns("left")
    windows = return_windows(ends, returns, [0], 3000, width=50)
    regret = dynamic_regret(windows, [random_returns.mean()], [500.0])
    assert 1.0 <= regret.normalised < 1.1
    assert regret.num_missing == 0
    naive = dynamic_regret(rate_windows(np.ones(3000), [0], 50), [0.0], [1.0])
    assert naive.normalised == 0.0  # what the guard is for


def test_by_episode_means_keep_zeros_and_skip_the_unknown() -> None:
    curve = regret_by_episode(
        episode=[0, 1, 0, 1, 3, 0],
        achieved=[0.0, 1.0, 0.5, 0.0, 1.0, np.nan],
        optimal=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        floor=[0.0, 0.0, 0.5, 0.5, 0.0, 0.0],
    )
    assert curve.count.tolist() == [2, 2, 0, 1]
    np.testing.assert_allclose(curve.normalised, [1.0, 1 / 1.5, np.nan, 0.0])
    np.testing.assert_allclose(curve.raw, [0.75, 0.5, np.nan, 0.0])
    np.testing.assert_allclose(curve.mean_return, [0.25, 0.5, np.nan, 1.0])
    assert len(regret_by_episode([], [], [], []).count) == 0


def test_failure_and_slowness_add_up_to_the_regret() -> None:
    limit, fewest, floor = 250, 9.8, 0.005
    steps = RNG.integers(10, 251, 200)
    success = RNG.random(200) < 0.6
    achieved = np.where(success, 1 - 0.9 * steps / limit, 0.0)
    split = failure_and_slowness(success, steps, fewest, limit, floor)
    regret = normalised_regret(1 - 0.9 * fewest / limit, achieved, floor)
    np.testing.assert_allclose(split.failure + split.slowness, regret, atol=1e-12)
    assert not split.failure[success].any() and not split.slowness[~success].any()
    twice = failure_and_slowness(1, 20, fewest, limit, floor)
    assert twice.slowness == pytest.approx(0.038, abs=1e-3)


def test_error_of_a_regret_matches_simulation() -> None:
    reference = Reference(0.3, 0.9, "user", floor_error=0.02, ceiling_error=0.01)
    for achieved in (0.3, 0.6, 0.9):
        regret = float(normalised_regret(0.9, achieved, 0.3))
        error = regret_error(regret, 0.6, 0.015, reference)
        draws = normalised_regret(
            0.9 + 0.01 * RNG.standard_normal(40_000),
            achieved + 0.015 * RNG.standard_normal(40_000),
            0.3 + 0.02 * RNG.standard_normal(40_000),
        )
        assert error == pytest.approx(draws.std(), rel=0.03) and error > 0
    assert regret_error(0.5, 1.0, 0.0, Reference(0.0, 1.0, "analytic")) == 0.0


def test_regret_of_episodes_is_pooled_over_their_task() -> None:
    tasks, achieved = ["a", "b", "a", "b"], [0.5, 10.0, 0.7, 25.0]
    optimal, floor = [1.0, 30.0, 0.9, 20.0], [0.2, 0.0, 0.85, 5.0]
    gaps = task_gaps(tasks, optimal, floor)
    assert gaps == pytest.approx({"a": (0.8 + 0.05) / 2, "b": (30.0 + 15.0) / 2})
    found = episode_regret(tasks, achieved, optimal, gaps)
    for name in (0, 1):
        rows = slice(name, None, 2)
        expected = pooled_regret(optimal[rows], achieved[rows], floor[rows])
        assert found[rows].mean() == pytest.approx(expected)
    assert found[3] < 0.0, "better than the reference, and not clipped"


def test_what_has_no_gap_has_no_regret() -> None:
    assert task_gaps(["a", "b"], [1.0, np.nan], [1.0, 0.0]) == {}
    assert task_gaps([], [], []) == {}
    assert np.isnan(episode_regret(["a", "b"], [0.0, np.nan], [1.0, 1.0], {"b": 1.0})).all()
    assert episode_regret([], [], [], {}).shape == (0,)
