"""Lives whose regret is known, and laws of the exact split."""

from __future__ import annotations

import numpy as np
import pytest

from sojourn.envs import (
    RegretSplit,
    Windows,
    dynamic_regret,
    rate_windows,
    return_windows,
    split_regret,
    window_width,
)

TASK = np.arange(8) % 4
CEILING = np.array([1.0, 0.5, 2.0, 0.1])[TASK]
FLOOR = np.array([0.0, 0.1, -1.0, 0.02])[TASK]
LENGTH = 1000
STARTS = np.arange(8) * LENGTH


def learner(slow: float = 100.0, capacity: float = 1.0) -> np.ndarray:
    """Rewards of someone who relearns every task from the floor, exponentially."""
    skill = capacity * (1 - np.exp(-np.arange(LENGTH) / slow))
    return np.concatenate([f + skill * (c - f) for f, c in zip(FLOOR, CEILING, strict=True)])


def normalised(reward: np.ndarray, width: int = 10) -> float:
    return dynamic_regret(rate_windows(reward, STARTS, width), FLOOR, CEILING).normalised


def test_perfect_is_zero_and_floor_is_one() -> None:
    perfect = dynamic_regret(rate_windows(learner(1e-9), STARTS, 10), FLOOR, CEILING)
    assert abs(normalised(np.repeat(CEILING, LENGTH))) < 1e-12
    assert normalised(np.repeat(FLOOR, LENGTH)) == pytest.approx(1.0, abs=1e-12)
    assert perfect.normalised == pytest.approx(8 / 8000)  # the first step of every segment


def test_random_is_one_within_its_error() -> None:
    rng = np.random.default_rng(0)
    reward = np.repeat(FLOOR, LENGTH) + rng.standard_normal(8 * LENGTH)
    error = np.sqrt((1 / (CEILING - FLOOR) ** 2).sum() * LENGTH) / (8 * LENGTH)
    assert abs(normalised(reward) - 1.0) < 4.5 * error
    assert dynamic_regret(rate_windows(reward, STARTS, 7), FLOOR, CEILING).score.min() < -1


@pytest.mark.parametrize(("scale", "shift"), [(7.3, -2.0), (1e-3, 5.0)])
def test_scale_and_origin_of_rewards_do_not_matter(scale: float, shift: float) -> None:
    windows = rate_windows(scale * learner() + shift, STARTS, 10)
    moved = dynamic_regret(windows, scale * FLOOR + shift, scale * CEILING + shift)
    plain = dynamic_regret(rate_windows(learner(), STARTS, 10), FLOOR, CEILING)
    np.testing.assert_allclose(moved.score, plain.score, atol=1e-9)
    assert moved.total == pytest.approx(scale * plain.total)


def test_totals_do_not_depend_on_the_window() -> None:
    reward = learner() + np.random.default_rng(1).standard_normal(8 * LENGTH)
    by_width = [normalised(reward, width) for width in (1, 7, 10, 333, 1000)]
    np.testing.assert_allclose(by_width, by_width[0], atol=1e-12)
    u = (reward - np.repeat(FLOOR, LENGTH)) / np.repeat(CEILING - FLOOR, LENGTH)
    assert by_width[0] == pytest.approx((1 - u).mean(), abs=1e-12)
    exact = dynamic_regret(rate_windows(reward, STARTS, 7), FLOOR, CEILING)
    assert exact.total == pytest.approx((np.repeat(CEILING, LENGTH) - reward).sum())
    assert exact.online_performance == pytest.approx(u.mean())
    assert exact.mean_value == pytest.approx(reward.mean())
    assert exact.cumulative[-1] == pytest.approx((1 - u).sum())


@pytest.mark.parametrize("width", [1, 7, 10, 333])
@pytest.mark.parametrize("tail", [1, 50, 5000])
def test_split_is_exact(width: int, tail: int) -> None:
    reward = learner() + np.random.default_rng(2).standard_normal(8 * LENGTH)
    windows = rate_windows(reward, STARTS, width)
    regret = dynamic_regret(windows, FLOOR, CEILING)
    split = split_regret(windows, regret.score, tail)
    np.testing.assert_allclose(split.total, split.transient + split.residual, atol=1e-9)
    relative = np.abs(split.total - split.transient - split.residual) / np.abs(split.total)
    assert relative.max() < 1e-12
    assert split.total.sum() == pytest.approx(8 * LENGTH * regret.normalised)


def test_split_separates_slow_from_incapable() -> None:
    slow = split(learner(100.0, 1.0))
    incapable = split(learner(1e-9, 0.6))
    np.testing.assert_allclose(slow.residual, 0.0, atol=0.1)
    np.testing.assert_allclose(slow.transient, 100.5, atol=0.5)
    np.testing.assert_allclose(incapable.transient, 0.6, atol=1e-6)
    np.testing.assert_allclose(incapable.residual, 400.0, atol=1e-6)


def split(reward: np.ndarray) -> RegretSplit:
    windows = rate_windows(reward, STARTS, 10)
    return split_regret(windows, dynamic_regret(windows, FLOOR, CEILING).score, tail=50)


def test_three_segments_by_hand() -> None:
    """Two tasks, the first visited again; windows of 2 steps, the last of each segment narrower."""
    reward = [0, 0, 1, 1, 1, 10, 10, 20, 0, 1, 1]
    windows = rate_windows(reward, [0, 5, 8], width=2)
    assert windows.width.tolist() == [2, 2, 1, 2, 1, 2, 1]
    assert windows.segment.tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert windows.value.tolist() == [0, 1, 1, 10, 20, 0.5, 1]
    regret = dynamic_regret(windows, [0, 10, 0], [1, 20, 1])
    assert regret.score.tolist() == [0, 1, 1, 0, 1, 0.5, 1]
    assert regret.total == 2 + 20 + 1
    assert regret.normalised == pytest.approx((2 + 2 + 1) / 11)
    assert regret.cumulative.tolist() == [2, 2, 2, 4, 4, 5, 5]
    parts = split_regret(windows, regret.score, tail=1)
    assert parts.end_score.tolist() == [1, 1, 1]
    assert parts.transient.tolist() == [2, 2, 1] and not parts.residual.any()
    wider = split_regret(windows, regret.score, tail=2)
    assert wider.end_score.tolist() == pytest.approx([1, 1 / 3, 2 / 3])


def test_returns_are_carried_within_a_segment_only() -> None:
    windows = return_windows([1, 2, 7, 13], [4.0, 2.0, 0.0, 9.0], [0, 10], 20, width=2)
    nan = np.nan
    np.testing.assert_array_equal(windows.value, [4, 2, 2, 0, 0, nan, 9, 9, 9, 9])
    assert windows.carried.tolist() == [0, 0, 1, 0, 1, 0, 0, 1, 1, 1]
    assert windows.missing.tolist() == [0] * 5 + [1] + [0] * 4
    regret = dynamic_regret(windows, [0, 0], [4, 9])
    assert (regret.num_missing, regret.num_carried) == (1, 5)
    np.testing.assert_allclose(regret.normalised, (0 + 1 + 1 + 2 + 2 + 0) / 18)
    parts = split_regret(windows, regret.score, tail=2)
    assert parts.total.tolist() == [6, 0]
    np.testing.assert_allclose(parts.transient + parts.residual, parts.total, atol=1e-12)


def test_an_episode_return_is_not_weighted_by_its_length() -> None:
    """An agent that fails half its episodes has a return half as high."""
    ends = np.cumsum([500, 9] * 10) - 1
    windows = return_windows(ends, [500.0, 9.0] * 10, [0], int(ends[-1]) + 1, width=5090)
    assert windows.value.tolist() == [254.5]


def test_exact_zeros_count() -> None:
    windows = return_windows([0, 1, 2, 3], [0.0, 0.0, 0.0, 0.8], [0], 4, width=4)
    assert windows.value.tolist() == [0.2]
    assert rate_windows([0, 0, 0, 0.8], [0], 4).value.tolist() == [0.2]


def test_a_life_without_a_finished_episode_is_missing_not_zero() -> None:
    windows = return_windows([], [], [0], 100, width=10)
    regret = dynamic_regret(windows, [0.0], [1.0])
    assert windows.missing.all() and regret.num_missing == 10
    assert np.isnan(regret.normalised) and np.isnan(split_regret(windows, regret.score, 5).total[0])


def test_default_width_is_a_percent_of_the_segment_or_an_episode() -> None:
    assert window_width(10_000, 20.0) == 100
    assert window_width(10_000, 250.4) == 250
    assert window_width(50, 200.0) == 50 and window_width(3, 0.2) == 1


@pytest.mark.parametrize("starts", [[], [1], [0, 5, 5], [0, 10]])
def test_segment_starts_that_make_no_sense_are_refused(starts: list[int]) -> None:
    with pytest.raises(ValueError, match="segment starts: expected increasing steps"):
        rate_windows(np.zeros(10), starts, 2)
    with pytest.raises(ValueError, match="window width: expected at least 1"):
        rate_windows(np.zeros(10), [0], 0)
    assert isinstance(rate_windows(np.zeros(10), [0], 3), Windows)
