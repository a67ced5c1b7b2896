"""Robust means, profiles and differences between groups of runs are what their definitions say."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sojourn.experiments.comparisons.contrast_statistics import (
    holm,
    improvement,
    interquartile_mean,
    probability_of_no_difference,
    share_at_most,
    worst_mean,
)
from sojourn.experiments.statistics import Interval, interval

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_below_four_runs_the_interquartile_mean_is_the_mean(count: int) -> None:
    values = RNG.random(count)
    np.testing.assert_equal(vars(interquartile_mean(values)), vars(interval(values)))


def test_the_interquartile_mean_leaves_a_quarter_out_at_either_end() -> None:
    values = np.array([3.0, 1.0, 100.0, 2.0, 4.0, -50.0, 2.5, 3.5])
    found = interquartile_mean(values)
    assert found.mean == np.sort(values)[2:6].mean()
    assert found.low < found.mean < found.high and found.num_runs == 8
    assert interquartile_mean([*values, np.nan]) == found


def test_the_interval_of_a_trimmed_mean_below_ten_runs_is_tukeys() -> None:
    """Winsorised by hand: 1 2 3 4 5 6 7 8 becomes 3 3 3 4 5 6 6 6."""
    found = interquartile_mean(np.arange(1.0, 9.0))
    spread = np.std([3, 3, 3, 4, 5, 6, 6, 6], ddof=1)
    half = stats.t.ppf(0.975, 3) * spread / (0.5 * np.sqrt(8))
    assert (found.low, found.high) == pytest.approx((4.5 - half, 4.5 + half))


def test_from_ten_runs_on_it_is_the_bootstrap_over_runs() -> None:
    values = RNG.normal(0.5, 0.1, 24)

    def trimmed(samples: Any, axis: int) -> Any:
        return stats.trim_mean(samples, 0.25, axis=axis)

    other = stats.bootstrap((values,), trimmed, method="percentile", rng=1).confidence_interval
    found = interquartile_mean(values)
    assert (found.low, found.high) == pytest.approx((other.low, other.high), abs=0.01)


def test_the_tail_is_the_worst_tenth_and_at_least_one_run() -> None:
    assert worst_mean([0.1, 0.9, 0.3]) == 0.9
    assert worst_mean(np.arange(20.0)) == 18.5
    assert np.isnan(worst_mean([np.nan]))


def test_a_profile_is_the_share_of_tasks_at_or_below_a_threshold() -> None:
    scores = [[0.1, 0.2, np.nan], [0.5, 0.5, 0.5], [np.nan, np.nan, np.nan]]
    found = share_at_most(scores, [0.0, 0.1, 0.3, 1.0])
    np.testing.assert_array_equal(found[:2], [[0, 0.5, 1, 1], [0, 0, 0, 1]])
    assert np.isnan(found[2]).all()
    with pytest.raises(ValueError, match="num_runs, num_tasks"):
        share_at_most([0.1], [0.1])


def slow_improvement(lower: Any, other: Any) -> float:
    pairs = [1.0 if a < b else 0.5 if a == b else 0.0 for a in lower for b in other]
    return sum(pairs) / len(pairs)


@pytest.mark.parametrize("count", [3, 12])
def test_the_probability_of_improvement_counts_pairs_and_ties_half(count: int) -> None:
    rng = np.random.default_rng(count)  # samples that overlap, whatever was drawn before
    one, two = rng.integers(0, 4, count) / 4.0, rng.integers(0, 5, count + 2) / 4.0
    found = improvement(one, two)
    assert found.mean == pytest.approx(slow_improvement(one, two))
    back = improvement(two, one)
    assert back.mean == pytest.approx(1 - found.mean)
    assert 0 <= found.low <= found.mean <= found.high <= 1
    assert found.num_runs == back.num_runs == count


def test_the_interval_of_an_improvement_below_ten_runs_is_brunner_and_munzels() -> None:
    one, two = RNG.normal(0, 1, 7), RNG.normal(0.5, 2, 9)
    found = improvement(one, two)
    p_value = stats.brunnermunzel(one, two).pvalue
    excludes = not found.low <= 0.5 <= found.high
    assert excludes == (p_value < 0.05)
    assert improvement([1.0, 2.0], [3.0, 4.0]) == pytest.approx(
        Interval(1.0, np.nan, np.nan, 2), nan_ok=True
    )


@pytest.mark.parametrize(("one", "two"), [([], [1.0]), ([np.nan], [1.0])])
def test_without_runs_nothing_is_said(one: list[float], two: list[float]) -> None:
    found = improvement(one, two)
    assert np.isnan(found.mean) and found.num_runs == 0


@pytest.mark.parametrize("count", [5, 14])
def test_p_values_agree_with_their_intervals(count: int) -> None:
    for shift in (0.0, 0.3, 0.6, 1.0, 2.0):
        values = RNG.normal(shift, 1.0, count)
        found, p = interval(values), probability_of_no_difference(values)
        assert (p < 0.05) == (not found.low <= 0 <= found.high) or abs(p - 0.05) < 0.005
    assert np.isnan(probability_of_no_difference([0.3]))
    assert probability_of_no_difference([0.0, 0.0]) == 1.0


def test_holm_is_the_step_down_procedure() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
    np.testing.assert_array_equal(holm([0.01, np.nan]), [0.02, np.nan])


def test_holm_never_lowers_and_keeps_the_order() -> None:
    p_values = list(RNG.random(20) ** 3)
    adjusted = holm(p_values)
    assert all(a >= p for a, p in zip(adjusted, p_values, strict=True))
    order = np.argsort(p_values)
    assert (np.diff(np.array(adjusted)[order]) >= 0).all()


@pytest.mark.parametrize("measure", [interquartile_mean, worst_mean, probability_of_no_difference])
def test_axes_are_not_mistaken(measure: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="one number per run"):
        measure(np.zeros((2, 3)))
