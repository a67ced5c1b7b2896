"""The measures of an evaluation, assembled from its tables: one row per measure and condition.

Every number is a mean over lifetimes with its 95 % interval: it measures this one agent, not how
training runs differ. A measure of one condition depends on the table of that condition alone (and,
where it is a difference, on the carried one).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..episodes import Array
from ..measures.horizon import score_at_age, score_at_lag
from ..measures.lifetimes import (
    failure_split,
    mean_regret,
    regret_of_index,
    reward_per_step,
    step_regret,
    trend,
    worst_score,
)
from ..measures.lives import Lives
from ..measures.paired import (
    Paired,
    area_gained,
    means_by,
    paired_regret,
    paired_return,
    visits_of,
)
from ..measures.segments import adaptation, reached, segments_of
from ..report import ordinal
from ..statistics import Interval, interval
from ..tracker import MAX_EPISODES
from .conditions import Half

CARRIED, TWIN, SINGLE, HALF_LIFE = "carried", "reset_task", "single_task", "half_life"
LEVELS = (0.5, 0.8, 0.95)


@dataclass(frozen=True)
class Row:
    """A measure of a condition: its code in `docs/evaluation.md`, and the number of lifetimes in
    the interval.
    """

    code: str
    measure: str
    condition: str
    value: Interval
    note: str = ""


def single_number(code: str, measure: str, condition: str, value: float, count: int) -> Row:
    """A number that has no interval."""
    return Row(code, measure, condition, Interval(value, np.nan, np.nan, count))


def condition_rows(
    name: str,
    lives: Lives,
    lags: Mapping[str, int] | None = None,
    success_tasks: Collection[str] = (),
) -> Iterator[Row]:
    """What one condition says by itself; `lags` are the steps from cue to use of tasks by name,
    `success_tasks` the names of those that pay for success alone.
    """

    def row(code: str, measure: str, values: Array, note: str = "") -> Row:
        return Row(code, measure, name, interval(values), note)

    yield row("M1", "return per episode", means_by(lives.achieved, lives.lifetime))
    yield row("M1", "reward per step", reward_per_step(lives))
    for measure, values in _regrets(lives, success_tasks):
        yield row("M2", measure, values)
    segments = segments_of(lives)
    for part in ("transient", "residual"):
        values = means_by(getattr(segments, part), segments.lifetime)
        yield row("M3", f"{part} regret", values)
    visits = visits_of(segments)
    for part in ("transient", "residual"):
        for label, when in (("first visits", "first"), ("revisits", "again")):
            yield row("M4", f"{part} regret, {label}", getattr(visits, f"{when}_{part}"))
    later = segments.where(segments.segment > 0)
    yield row("M9", "jump start score", means_by(later.jump_start, later.lifetime))
    for level in LEVELS:
        found = adaptation(lives, level)
        value = Interval(found.median, np.nan, np.nan, len(np.unique(segments.lifetime)))
        note = f"{found.censored:.0%} never"
        yield Row("M10", f"episodes to score {level:g}, median over segments", name, value, note)
    for part in ("transient", "residual"):
        yield row("M11", f"trend of {part} regret per segment", trend(segments, part))
    yield row("M12", "score, worst tenth of episodes", worst_score(lives))
    for age in doubling(int(segments.segment.max(initial=-1)) + 1):
        if age - 1 not in reached(segments.segment):
            continue
        yield row("M16", f"score in segment {age} of life", score_at_age(segments, age - 1))
    for lag in sorted(set((lags or {}).values())):
        values = score_at_lag(lives, lags or {}, lag)
        yield row("M16", f"score at a lag of {lag} steps", values)


def _regrets(lives: Lives, success_tasks: Collection[str]) -> Iterator[tuple[str, Array]]:
    """M2 and its parts: name and one number per lifetime."""
    count = min(int(lives.episode.max(initial=-1)) + 1, MAX_EPISODES)
    yield "regret, all episodes", mean_regret(lives)
    for index in range(count):
        yield f"regret, {ordinal(index)} episode", regret_of_index(lives, index)
    yield "regret by steps", step_regret(lives)
    if success_tasks:
        for part, values in failure_split(lives, success_tasks).items():
            yield f"{part} regret", values
    told = lives.against_informed()
    if told.known.any():
        name = "regret against informed play"
        yield name, mean_regret(told)
        for index in range(count):
            yield f"{name}, {ordinal(index)} episode", regret_of_index(told, index)


def paired_rows(tables: Mapping[str, Lives], half: Half) -> Iterator[Row]:
    """What every other condition loses more than the carried life, on the same segments; where no
    task has a reference, the difference in return alone.
    """
    carried = tables[CARRIED]
    for name, lives in tables.items():
        if name == CARRIED:
            continue
        if not carried.known.any():
            returns = interval(paired_return(carried, lives).per_lifetime())
            yield Row("pair", "return minus carried", name, returns, "no task has a reference")
            continue
        paired = paired_regret(carried, lives)
        yield Row("pair", "regret minus carried", name, interval(paired.per_lifetime()))
        if name == TWIN:
            later = paired.where(paired.segment > 0)
            yield _difference("M5", "utility U of having lived", name, later)
            yield _difference("M5", "utility U, first visits", name, later.where(later.visit == 0))
            yield _difference("M5", "utility U, revisits", name, later.where(later.visit > 0))
        if name == SINGLE:
            gained = interval(area_gained(carried, lives))
            yield Row("M8", "area over the single-task twin", name, gained)
        if name == HALF_LIFE:
            second = paired.where(_in_second_half(carried, paired, half))
            yield _difference("M15", "frozen-copy gap, second half", name, second)


def doubling(most: int) -> list[int]:
    """1, 2, 4, 8 ... up to `most`, and `most` itself."""
    found = [2**power for power in range(most.bit_length())]
    return found if not found or found[-1] == most else [*found, most]


def _difference(code: str, measure: str, name: str, paired: Paired) -> Row:
    note = f"{len(paired.difference)} segments"
    return Row(code, measure, name, interval(paired.per_lifetime()), note)


def _in_second_half(carried: Lives, paired: Paired, half: Half) -> Array:
    """Bool `[num_pairs]`: the segments that began in the second half of the carried life."""
    if half.in_segments:
        return np.asarray(paired.segment >= half.start)
    places, index = np.unique(carried.place, return_inverse=True)
    start = np.full(len(places), np.iinfo(np.int64).max)
    np.minimum.at(start, index, carried.start_step)
    found = start[np.searchsorted(places, paired.lifetime * 2**32 + paired.segment)]
    return np.asarray(found >= half.start)
