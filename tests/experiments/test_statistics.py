"""Intervals reflect the spread between runs, and nothing else."""

import numpy as np
import pytest
from scipy import stats

from sojourn.experiments.statistics import band, interval


def test_below_ten_runs_it_is_the_t_interval() -> None:
    values = np.array([0.1, 0.4, 0.2, 0.3])
    found = interval(values)
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert (found.mean, found.low, found.high, found.num_runs) == pytest.approx(
        (values.mean(), low, high, 4)
    )


def test_from_ten_runs_it_is_the_bootstrap_over_runs() -> None:
    values = np.random.default_rng(0).normal(0.5, 0.1, 20)
    found = interval(values)
    other = stats.bootstrap((values,), np.mean, method="percentile", rng=1).confidence_interval
    assert (found.low, found.high) == pytest.approx((other.low, other.high), abs=0.01)
    assert interval(values) == found, "the same runs give the same interval"


def test_one_run_has_no_interval() -> None:
    found = interval([0.3])
    assert found.mean == 0.3 and np.isnan([found.low, found.high]).all()
    assert str(found) == "0.300"


def test_a_missing_value_is_left_out_and_counted_never_a_zero() -> None:
    assert interval([0.2, np.nan, 0.4]).mean == pytest.approx(0.3)
    assert interval([0.2, np.nan, 0.4]).num_runs == 2
    assert np.isnan(interval([]).mean)
    assert interval([0.0, 0.0]).mean == 0.0


def test_bands_have_the_width_of_the_spread_between_runs_not_between_points() -> None:
    rng = np.random.default_rng(0)
    seeds = rng.normal(0, 1.0, (5, 1)) + rng.normal(0, 0.01, (5, 100))
    width = band(seeds).high - band(seeds).low
    assert (width > 1.0).all()
    points = rng.normal(0, 1.0, (1, 100)) + rng.normal(0, 0.01, (5, 100))
    assert (band(points).high - band(points).low < 0.1).all()


def test_axes_are_not_mistaken() -> None:
    with pytest.raises(ValueError, match="one number per run"):
        interval(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="num_runs, num_points"):
        band(np.zeros(3))


def test_widths_are_never_negative() -> None:
    rng = np.random.default_rng(1)
    for count in (2, 9, 10, 30):
        found = interval(rng.random(count))
        assert found.low <= found.mean <= found.high
    constant = interval([0.5] * 12)
    assert (constant.low, constant.high) == (0.5, 0.5)
