"""What stands beside a mean: trimmed means, tails, profiles, and how two groups of runs differ.

    IQM = mean of the middle half of the runs           P(X < Y) = P(x < y) + P(x = y) / 2

As everywhere the unit of replication is a run: below ten of them intervals are t-intervals
(Tukey and McLaughlin 1963 for trimmed means, Brunner and Munzel 2000 for probabilities), from ten
on percentile bootstraps over runs. The measures are those of Agarwal et al. 2021 (rliable), whose
stratified bootstrap is not used: it covers .78-.84 of a nominal .95.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from ..statistics import BOOTSTRAP_FROM, LEVEL, NUM_RESAMPLES, Interval, interval
from ..tables import Array

TRIMMED = 0.25  # of the runs, at either end
WORST = 0.1  # of the runs that the tail is made of
NONE = Interval(np.nan, np.nan, np.nan, 0)


def interquartile_mean(run_means: ArrayLike) -> Interval:
    """Mean of the middle half of one number per run `[num_runs]`; NaN is left out.

    floor(n / 4) runs are dropped at either end: none below four, where this is the mean.
    """
    values = _known(run_means)
    count, cut = len(values), int(TRIMMED * len(values))
    if count < 2 or cut == 0:
        return interval(values)
    mean = float(stats.trim_mean(values, TRIMMED))
    if count >= BOOTSTRAP_FROM:
        low, high = _percentiles(stats.trim_mean(_resampled(values, 0), TRIMMED, axis=1))
        return Interval(mean, low, high, count)
    winsorised = np.clip(values, *np.sort(values)[[cut, count - 1 - cut]])
    error = winsorised.std(ddof=1) / ((1 - 2 * cut / count) * np.sqrt(count))
    half = float(stats.t.ppf(0.5 + LEVEL / 2, count - 2 * cut - 1) * error)
    return Interval(mean, mean - half, mean + half, count)


def worst_mean(run_means: ArrayLike) -> float:
    """Mean of the worst tenth of the runs, at least of one: large regret is bad (CVaR 10 %)."""
    values = np.sort(_known(run_means))
    return float(values[-max(1, round(WORST * len(values))) :].mean()) if len(values) else np.nan


def share_at_most(scores: ArrayLike, thresholds: ArrayLike) -> Array:
    """Performance profile of every run: share of its tasks at or below each threshold.

    `scores` `[num_runs, num_tasks]` (NaN: the run did not meet the task), `thresholds`
    `[num_points]`; returns `[num_runs, num_points]`, NaN for a run without a score.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 2:
        raise ValueError(f"share_at_most: expected [num_runs, num_tasks], got {values.shape}")
    reached = values[:, :, None] <= np.asarray(thresholds, np.float64)
    known = np.isfinite(values).sum(axis=1, keepdims=True)
    return np.where(known > 0, reached.sum(axis=1) / np.maximum(known, 1), np.nan)


def improvement(lower: ArrayLike, other: ArrayLike) -> Interval:
    """Probability that a run of `lower` has less regret than one of `other`, ties counting half.

    `num_runs` is the smaller of both. Without an interval where all runs of one are below all runs
    of the other: the data do not tell how rare the opposite is.
    """
    one, two = _known(lower), _known(other)
    count = min(len(one), len(two))
    if count == 0:
        return NONE
    better = _half_ties(one[:, None], two[None, :])
    mean = float(better.mean())
    if count < 2 or mean in (0.0, 1.0):
        return Interval(mean, np.nan, np.nan, count)
    if count >= BOOTSTRAP_FROM:
        low, high = _percentiles(_resampled_improvement(better))
        return Interval(mean, low, high, count)
    parts = [better.mean(axis=1).var(ddof=1) / len(one), better.mean(axis=0).var(ddof=1) / len(two)]
    total = sum(parts)
    freedom = total**2 / (parts[0] ** 2 / (len(one) - 1) + parts[1] ** 2 / (len(two) - 1))
    half = float(stats.t.ppf(0.5 + LEVEL / 2, freedom) * np.sqrt(total))
    return Interval(mean, max(0.0, mean - half), min(1.0, mean + half), count)


def probability_of_no_difference(differences: ArrayLike) -> float:
    """Two-sided p value of a mean of zero, of the same make as the interval; NaN below two runs."""
    values = _known(differences)
    count = len(values)
    if count < 2:
        return np.nan
    if np.ptp(values) == 0:
        return 1.0 if values[0] == 0 else np.nan
    if count < BOOTSTRAP_FROM:
        return float(stats.ttest_1samp(values, 0.0).pvalue)
    means = _resampled(values, 0).mean(axis=1)
    fewer = min(np.count_nonzero(means <= 0), np.count_nonzero(means >= 0))
    return float(min(1.0, 2 * (fewer + 1) / (NUM_RESAMPLES + 1)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment over a declared set of comparisons; NaN stays and is counted.

    The i-th smallest of m becomes the largest of (m - j) p_j over j <= i, at most 1 (Holm 1979).
    """
    values = np.asarray(p_values, np.float64)
    adjusted, highest = np.full(len(values), np.nan), 0.0
    for place, index in enumerate(np.argsort(values, kind="stable")):
        if np.isnan(values[index]):
            continue
        highest = max(highest, min(1.0, (len(values) - place) * values[index]))
        adjusted[index] = highest
    return [float(value) for value in adjusted]


def _known(values: ArrayLike) -> Array:
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1:
        raise ValueError(f"expected one number per run, got shape {numbers.shape}")
    return numbers[np.isfinite(numbers)]


def _resampled(values: Array, seed: int) -> Array:
    """Runs drawn with replacement, `[NUM_RESAMPLES, num_runs]`."""
    rng = np.random.default_rng(seed)
    chosen: Array = values[rng.integers(len(values), size=(NUM_RESAMPLES, len(values)))]
    return chosen


def _resampled_improvement(better: Array) -> Array:
    """The mean of `better` over runs of either group drawn with replacement."""
    rows = _counts(better.shape[0], 0)
    columns = _counts(better.shape[1], 1)
    means: Array = np.einsum("bi,ij,bj->b", rows, better, columns) / better.size
    return means


def _counts(num_runs: int, seed: int) -> Array:
    """How often every run is drawn, `[NUM_RESAMPLES, num_runs]`."""
    shares = np.full(num_runs, 1 / num_runs)
    drawn: Array = np.random.default_rng(seed).multinomial(num_runs, shares, NUM_RESAMPLES)
    return drawn


def _percentiles(means: Array) -> tuple[float, float]:
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)


def _half_ties(one: Array, two: Array) -> Array:
    counted: Array = (one < two) + 0.5 * (one == two)
    return counted
