"""The measures of an evaluation, assembled from its tables: one row per measure and condition.

Every number is a mean over lifetimes with its 95 % interval: it measures this one agent, not how
training runs differ. A measure of one condition depends on the table of that condition alone (and,
where it is a difference, on the carried one).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from .episodes import Array
from .evaluation_conditions import Half
from .measures.forgetting import (
    Matrix,
    accuracy,
    backward_transfer,
    boundary_forgetting,
    forward_transfer,
)
from .measures.lifetimes import mean_regret, regret_of_index, step_regret, trend, worst_score
from .measures.lives import Lives
from .measures.paired import Paired, means_by, paired_regret, visits_of
from .measures.segments import adaptation, segments_of
from .report import ordinal
from .statistics import Interval, interval
from .tracker import MAX_EPISODES

CARRIED, TWIN, HALF_LIFE = "carried", "reset_task", "half_life"
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


def condition_rows(name: str, lives: Lives) -> Iterator[Row]:
    """What one condition says by itself."""

    def row(code: str, measure: str, values: Array, note: str = "") -> Row:
        return Row(code, measure, name, interval(values), note)

    yield row("M1", "return per episode", means_by(lives.achieved, lives.lifetime))
    yield row("M2", "regret, all episodes", mean_regret(lives))
    last = int(lives.episode.max(initial=-1)) + 1
    for index in range(min(last, MAX_EPISODES)):
        yield row("M2", f"regret, {ordinal(index)} episode", regret_of_index(lives, index))
    yield row("M2", "regret by steps", step_regret(lives))
    told = lives.against_informed()
    if told.known.any():
        yield row("M2", "regret against informed play", mean_regret(told))
        for index in range(min(last, MAX_EPISODES)):
            label = f"regret against informed play, {ordinal(index)} episode"
            yield row("M2", label, regret_of_index(told, index))
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


def paired_rows(tables: Mapping[str, Lives], half: Half) -> Iterator[Row]:
    """What every other condition loses more than the carried life, on the same segments."""
    carried = tables[CARRIED]
    for name, lives in tables.items():
        if name == CARRIED:
            continue
        paired = paired_regret(carried, lives)
        yield Row("pair", "regret minus carried", name, interval(paired.per_lifetime()))
        if name == TWIN:
            later = paired.where(paired.segment > 0)
            yield _difference("M5", "utility U of having lived", name, later)
            yield _difference("M5", "utility U, first visits", name, later.where(later.visit == 0))
            yield _difference("M5", "utility U, revisits", name, later.where(later.visit > 0))
        if name == HALF_LIFE:
            second = paired.where(_in_second_half(carried, paired, half))
            yield _difference("M15", "frozen-copy gap, second half", name, second)


def matrix_rows(matrix: Matrix) -> Iterator[Row]:
    """What the R-matrix of the carried memories says."""
    boundary = boundary_forgetting(matrix)
    share = f"{boundary.num_known} of {boundary.num_cells} (segment, task) cells above the floor"
    for code, measure, values, note in (
        ("M6", "forgetting at a boundary", boundary.per_lifetime, share),
        ("M7", "ACC, score on all tasks met", accuracy(matrix), ""),
        ("M7", "BWT, backward transfer", backward_transfer(matrix), "forgetting is -BWT"),
        ("M9", "FWT, zero-shot minus untrained memory", forward_transfer(matrix), ""),
    ):
        yield Row(code, measure, CARRIED, interval(values), note)


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
