"""The only definition of regret: pure functions of arrays.

    raw regret         (J* - G) / J*
    normalised regret  (J* - G) / (J* - J0)      0 = optimal, 1 = uniform random; never clipped
    of one episode     (J* - G) / gap,           gap = mean (J* - J0) over its task
    score              u = (x - g0) / (g* - g0)  = 1 - normalised regret

J* is the best return of the instance, J0 the return of the random policy, G what was reached.
Regret over windows of a life (dynamic regret) is in `dynamic_regret`.
Source: dynamic regret against a moving comparator, Zinkevich (2003); normalisation by random and
reference scores as in Mnih et al. (2015).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .interface import Array
from .task import Reference, Unit

NUM_ERRORS = 3.0
MIN_SHARE = 0.05
PROVISIONAL_SHARE = 0.1
"""A ceiling whose standard error is more than this share of the gap makes regret provisional."""


def raw_regret(optimal: ArrayLike, achieved: ArrayLike) -> Array:
    """(J* - G) / J*, elementwise; only meaningful where returns start at zero."""
    best = np.asarray(optimal, np.float64)
    return (best - np.asarray(achieved, np.float64)) / best


def normalised_regret(optimal: ArrayLike, achieved: ArrayLike, floor: ArrayLike) -> Array:
    """(J* - G) / (J* - J0), elementwise; NaN where there is no reference."""
    best = np.asarray(optimal, np.float64)
    return (best - np.asarray(achieved, np.float64)) / (best - np.asarray(floor, np.float64))


def pooled_regret(optimal: ArrayLike, achieved: ArrayLike, floor: ArrayLike) -> float:
    """mean(J* - G) / mean(J* - J0): the regret of a task whose instances differ in gap.

    A ratio of means: one instance with hardly any gap (a bandit of equal arms) would rule the mean
    of ratios.
    """
    best = np.asarray(optimal, np.float64)
    lost = np.mean(best - np.asarray(achieved, np.float64))
    return float(lost / np.mean(best - np.asarray(floor, np.float64)))


def task_gaps(task: ArrayLike, optimal: ArrayLike, floor: ArrayLike) -> dict[str, float]:
    """Mean J* - J0 of every task over its episodes `[num_episodes]` whose J* and J0 are known.

    A task without a gap is left out: nothing can be measured against it.
    """
    names = np.asarray(task, str)
    gap = np.asarray(optimal, np.float64) - np.asarray(floor, np.float64)
    known = np.isfinite(gap)
    means = {
        str(name): float(gap[known & (names == name)].mean()) for name in np.unique(names[known])
    }
    return {name: mean for name, mean in means.items() if mean > 0.0}


def episode_regret(
    task: ArrayLike, achieved: ArrayLike, optimal: ArrayLike, gaps: Mapping[str, float]
) -> Array:
    """Normalised regret of every episode `[num_episodes]` against the gap of its task.

    The mean over a task is its `pooled_regret`, so that one instance with hardly any gap rules
    nothing. NaN where J* or G are not known or the task has no gap.
    """
    gap = np.array([gaps.get(name, np.nan) for name in np.asarray(task, str).tolist()], np.float64)
    return (np.asarray(optimal, np.float64) - np.asarray(achieved, np.float64)) / gap


def regret_error(
    regret: ArrayLike, gap: ArrayLike, achieved_error: ArrayLike, reference: Reference
) -> Array:
    """Standard error of a normalised regret, in its own unit, by the delta method.

    Var = [Var(G) + (1 - regret)^2 Var(J*) + regret^2 Var(J0)] / gap^2, gap = J* - J0.
    """
    share = np.asarray(regret, np.float64)
    achieved = np.asarray(achieved_error, np.float64)
    variance = (
        achieved**2
        + ((1.0 - share) * reference.ceiling_error) ** 2
        + (share * reference.floor_error) ** 2
    )
    return np.asarray(np.sqrt(variance) / np.abs(np.asarray(gap, np.float64)))


def reference_problem(reference: Reference) -> str | None:
    """Why regret cannot be measured against a reference; None when it can.

    The gap must exceed three combined standard errors and 5 % of the reward range.
    """
    gap = reference.ceiling - reference.floor
    noise = NUM_ERRORS * math.hypot(reference.floor_error, reference.ceiling_error)
    share = MIN_SHARE * reference.reward_range
    if gap > noise and gap > share:
        return None
    return (
        f"ceiling {reference.ceiling:g} - floor {reference.floor:g} = {gap:g}, expected more than "
        f"{NUM_ERRORS:g} standard errors ({noise:g}) and {MIN_SHARE:.0%} of the reward range "
        f"({share:g}): choose the other unit or a task that can be played well and badly"
    )


def check_reference(task: str, reference: Reference) -> None:
    """Raise ValueError naming the task when regret cannot be measured against its reference."""
    problem = reference_problem(reference)
    if problem is not None:
        raise ValueError(f"reference of {task!r}: {problem}")


def is_provisional(reference: Reference) -> bool:
    """Whether the ceiling is known too roughly for the level of a regret to be quoted.

    Differences between agents on the same tasks are not touched by it.
    """
    gap = reference.ceiling - reference.floor
    return not reference.ceiling_error <= PROVISIONAL_SHARE * gap


def valid_reference(reference: Reference | None) -> Reference | None:
    """A reference that regret can be measured against, else None."""
    return None if reference is None or reference_problem(reference) else reference


def reference_gap(reference: Reference | None) -> float:
    """ceiling - floor; NaN where there is no reference that regret can be measured against."""
    valid = valid_reference(reference)
    return float("nan") if valid is None else valid.ceiling - valid.floor


def episode_reference(
    reference: Reference | None, unit: Unit, num_steps: int, optimal: float, floor: float
) -> tuple[float, float]:
    """J* and J0 of one episode of `num_steps` steps.

    What is known of the instance (`optimal`, `floor`; NaN: nothing) goes before what is pooled.
    `reference` is a valid one (`valid_reference`) or None: then there is no J0.
    """
    if reference is None:
        return optimal, math.nan
    scale = num_steps if unit == "rate" else 1
    best = reference.ceiling * scale if math.isnan(optimal) else optimal
    worst = reference.floor * scale if math.isnan(floor) else floor
    return best, worst


@dataclass(frozen=True)
class EpisodeCurve:
    """Regret by episode index within a task: arrays `[num_episodes]`; NaN where `count` is 0."""

    normalised: Array
    raw: Array
    mean_return: Array
    count: Array


def regret_by_episode(
    episode: ArrayLike, achieved: ArrayLike, optimal: ArrayLike, floor: ArrayLike
) -> EpisodeCurve:
    """The in-context curve: regret of the 1st, 2nd, ... episode of a task, over many segments.

    All arguments `[num_records]`; `episode` counts from 0. Each point is a ratio of means over the
    records with a finite J*, J0 and G; `count` is their number.
    """
    index = np.asarray(episode, np.int64)
    reached, best, worst = (np.asarray(part, np.float64) for part in (achieved, optimal, floor))
    known = np.isfinite(reached) & np.isfinite(best) & np.isfinite(worst)
    length = int(index.max()) + 1 if len(index) else 0

    def total(values: Array) -> Array:
        return np.bincount(index[known], values[known], minlength=length)

    count = np.bincount(index[known], minlength=length)
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = total(best - reached)
        return EpisodeCurve(
            normalised=np.where(count > 0, lost / total(best - worst), np.nan),
            raw=np.where(count > 0, lost / total(best), np.nan),
            mean_return=np.where(count > 0, total(reached) / count, np.nan),
            count=count,
        )


@dataclass(frozen=True)
class FailureSplit:
    """normalised regret = failure + slowness, elementwise."""

    failure: Array
    slowness: Array


def failure_and_slowness(
    success: ArrayLike,
    num_steps: ArrayLike,
    optimal_steps: ArrayLike,
    max_steps: ArrayLike,
    floor: ArrayLike,
) -> FailureSplit:
    """Exact split of the normalised regret of MiniGrid episodes, whose G = c (1 - 0.9 T / M).

        (1 - c) J* / D  +  c 0.9 (T - T*) / (M D),   D = J* - J0,  J* = 1 - 0.9 T* / M

    c: success, T: steps taken, T*: fewest steps, M: step limit, J0: random policy. Source: the
    reward of `minigrid.minigrid_env.MiniGridEnv._reward`.
    """
    solved, steps, fewest, limit = (
        np.asarray(part, np.float64) for part in (success, num_steps, optimal_steps, max_steps)
    )
    best = 1.0 - 0.9 * fewest / limit
    gap = best - np.asarray(floor, np.float64)
    failure = (1.0 - solved) * best / gap
    slowness = solved * 0.9 * (steps - fewest) / (limit * gap)
    return FailureSplit(failure, slowness)
