"""Regret of a whole life against a comparator that moves with the task.

A life of K segments is cut into windows of equal width W (the last of a segment may be narrower).
With x the value of a window and g*, g0 ceiling and floor of its task, all in the task's unit:

    score                u = (x - g0) / (g* - g0)                       never clipped
    online performance   M1 = mean u              over steps
    dynamic regret       M2 = sum (g* - x),   nReg = mean (1 - u)       over steps
    exact split          M3:  sum (1 - u) = sum (e_k - u) + L_k (1 - e_k)
                              transient (price of adapting) + residual (capacity, plasticity)

where e_k is the mean score of the last steps of segment k and L_k its number of steps. The value
of a window is its reward per step (unit `rate`) or the plain mean return of the episodes that end
in it (unit `return`); a window in which none ends repeats the previous value of the same segment,
and one that has no previous value is missing. Both are counted.
Source: dynamic regret, Zinkevich (2003).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from .interface import Array


@dataclass(frozen=True)
class Windows:
    """Values of the windows of a life in time order, arrays `[num_windows]`.

    `value` is NaN where missing, `width` in steps, `segment` counts from 0, `carried` marks values
    repeated from the window before.
    """

    value: Array
    width: Array
    segment: Array
    carried: Array

    @property
    def missing(self) -> Array:
        """Windows in which nothing is known: bool `[num_windows]`."""
        return np.isnan(self.value)


def window_width(segment_steps: int, episode_steps: float) -> int:
    """Default W: 1 % of a segment, at least one typical episode, at most the segment."""
    return min(segment_steps, max(1, round(segment_steps / 100), round(episode_steps)))


def rate_windows(reward: ArrayLike, segment_starts: ArrayLike, width: int) -> Windows:
    """Reward per step in every window.

    `reward` `[T]` of all steps of a life, `segment_starts` `[K]` first step of every segment.
    """
    rewards = np.asarray(reward, np.float64)
    starts, widths, segments = _cut(segment_starts, len(rewards), width)
    value = np.add.reduceat(rewards, starts) / widths
    return Windows(value, widths, segments, np.zeros(len(value), bool))


def return_windows(
    end_step: ArrayLike,
    episode_return: ArrayLike,
    segment_starts: ArrayLike,
    num_steps: int,
    width: int,
) -> Windows:
    """Mean return of the episodes that end in every window of a life of `num_steps` steps.

    `end_step` `[E]` is the step (from 0) whose reward was the last of an episode, `episode_return`
    `[E]` its undiscounted return. Episodes that did not end have no place here.
    """
    starts, widths, segments = _cut(segment_starts, num_steps, width)
    window = np.searchsorted(starts, np.asarray(end_step, np.int64), side="right") - 1
    count = np.bincount(window, minlength=len(starts))
    total = np.bincount(window, np.asarray(episode_return, np.float64), minlength=len(starts))
    value = np.full(len(starts), np.nan)
    np.divide(total, count, out=value, where=count > 0)
    carried = np.zeros(len(starts), bool)
    for now in range(1, len(starts)):
        if np.isnan(value[now]) and segments[now] == segments[now - 1]:
            value[now] = value[now - 1]
            carried[now] = not np.isnan(value[now])
    return Windows(value, widths, segments, carried)


def _cut(segment_starts: ArrayLike, num_steps: int, width: int) -> tuple[Array, Array, Array]:
    """First step, width and segment of every window."""
    if width < 1:
        raise ValueError(f"window width: expected at least 1, got {width}")
    firsts = np.asarray(segment_starts, np.int64)
    bounds = np.append(firsts, num_steps)
    if len(firsts) == 0 or firsts[0] != 0 or (np.diff(bounds) < 1).any():
        raise ValueError(
            f"segment starts: expected increasing steps from 0 below {num_steps}, got {firsts}"
        )
    pieces = [np.arange(first, end, width) for first, end in pairwise(bounds.tolist())]
    starts = np.concatenate(pieces)
    segments = np.repeat(np.arange(len(firsts)), [len(piece) for piece in pieces])
    return starts, np.diff(np.append(starts, num_steps)), segments


@dataclass(frozen=True)
class DynamicRegret:
    """Regret of a life: `score` `[num_windows]` (NaN missing) and sums over the known steps.

    `online_performance` is M1, `mean_value` the same before normalisation (reward per step or
    return per episode), `total` M2 in units of reward, `normalised` nReg; `cumulative` is
    the running sum of (1 - u) in steps at the end of every window. `num_missing`, `num_carried`
    count windows.
    """

    score: Array
    cumulative: Array
    online_performance: float
    mean_value: float
    total: float
    normalised: float
    num_missing: int
    num_carried: int


def dynamic_regret(windows: Windows, floor: ArrayLike, ceiling: ArrayLike) -> DynamicRegret:
    """M1 and M2 of a life; `floor` and `ceiling` `[K]` are those of the segments' tasks."""
    low = np.asarray(floor, np.float64)[windows.segment]
    high = np.asarray(ceiling, np.float64)[windows.segment]
    score = (windows.value - low) / (high - low)
    lost = windows.width * (1.0 - score)
    known = ~windows.missing
    steps = float(windows.width[known].sum()) or float("nan")
    normalised = float(lost[known].sum()) / steps
    return DynamicRegret(
        score=score,
        cumulative=np.cumsum(np.where(known, lost, 0.0)),
        online_performance=1.0 - normalised,
        mean_value=float((windows.width * windows.value)[known].sum()) / steps,
        total=float((windows.width * (high - windows.value))[known].sum()),
        normalised=normalised,
        num_missing=int(windows.missing.sum()),
        num_carried=int(windows.carried.sum()),
    )


@dataclass(frozen=True)
class RegretSplit:
    """total = transient + residual of every segment, `[K]`, in steps of normalised regret."""

    total: Array
    transient: Array
    residual: Array
    end_score: Array


def split_regret(windows: Windows, score: ArrayLike, tail: int) -> RegretSplit:
    """M3: what was lost on the way to the final level of a segment, and what that level lacks.

    `score` `[num_windows]`; the final level e_k is the mean score of the last windows of segment k
    that together hold at least `tail` steps. Missing windows count nowhere; a segment without any
    known window is NaN.
    """
    scores = np.asarray(score, np.float64)
    num_segments = int(windows.segment.max()) + 1
    total, transient, residual, end = (np.full(num_segments, np.nan) for _ in range(4))
    for segment in range(num_segments):
        chosen = (windows.segment == segment) & ~np.isnan(scores)
        u, width = scores[chosen], windows.width[chosen]
        if len(u) == 0:
            continue
        last = np.cumsum(width[::-1])[::-1] - width < tail
        end[segment] = np.average(u[last], weights=width[last])
        total[segment] = (width * (1.0 - u)).sum()
        transient[segment] = (width * (end[segment] - u)).sum()
        residual[segment] = width.sum() * (1.0 - end[segment])
    return RegretSplit(total, transient, residual, end)
