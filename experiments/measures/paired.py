"""Differences of two conditions that lived the same segments with the same luck.

    M5    U_k = regret_k(reset twin) - regret_k(carried)       > 0: having lived helps
    M8    mean_i (area_i(carried) - area_i(single-task)),  area_i = mean u over task i's episodes
    M15   frozen-copy gap = regret_k(frozen at half-life) - regret_k(carried), second half
    M4    first visits against revisits of one condition, within a lifetime

Regret of the carried life = regret of the twin - sum of U, so that U is never maximised for itself.
The unit of replication is the lifetime: segments of one lifetime are averaged first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..episodes import Array
from .lives import Lives, gaps_of
from .segments import Segments, segments_of


@dataclass(frozen=True)
class Paired:
    """`difference` `[num_pairs]` of segments that both conditions lived to the end."""

    lifetime: Array
    segment: Array
    visit: Array
    difference: Array

    def where(self, chosen: Array) -> Paired:
        """The pairs of a boolean mask `[num_pairs]`."""
        columns = (self.lifetime, self.segment, self.visit, self.difference)
        return Paired(*(column[chosen] for column in columns))

    def per_lifetime(self) -> Array:
        """The mean difference of every lifetime that has one, `[num_lifetimes]`."""
        return means_by(self.difference, self.lifetime)

    def of_segment(self, segment: int) -> Array:
        """The differences in one segment, a number per lifetime that has it."""
        return np.asarray(self.difference[self.segment == segment])


def paired_regret(carried: Lives, other: Lives) -> Paired:
    """Regret of `other` minus regret of `carried` in every segment that both have whole.

    Both are measured against the same gaps, from these two tables alone.
    """
    one, two, gaps = _common(carried, other)
    mine, theirs = segments_of(one, gaps), segments_of(two, gaps)
    difference = theirs.regret - mine.regret
    known = np.isfinite(difference)
    return Paired(mine.lifetime, mine.segment, mine.visit, difference).where(known)


def paired_return(carried: Lives, other: Lives) -> Paired:
    """Return per episode of `other` minus that of `carried` in every segment that both have whole:
    what can be said of tasks without a reference.
    """
    one, two, _ = _common(carried, other)
    places = segments_of(one)
    difference = means_by(two.achieved, two.place) - means_by(one.achieved, one.place)
    return Paired(places.lifetime, places.segment, places.visit, difference)


def area_gained(carried: Lives, single: Lives) -> Array:
    """M8 per lifetime: how much higher the learning curve of a task lies than that of its
    single-task twin, on average; every task counts once, however often it was met.

    A difference of areas, for a ratio explodes where the twin learns nothing.
    """
    one, two, gaps = _common(carried, single)
    mine, theirs = segments_of(one, gaps), segments_of(two, gaps)
    gained = theirs.regret - mine.regret
    known = np.isfinite(gained)
    weight = mine.num_episodes[known]
    task = (mine.lifetime * 2**32 + mine.task_index)[known]
    tasks, index = np.unique(task, return_inverse=True)
    area = np.bincount(index, weight * gained[known]) / np.bincount(index, weight)
    return means_by(area, tasks // 2**32)


@dataclass(frozen=True)
class Visits:
    """M4: numbers per lifetime `[num_lifetimes]` that has both first visits and revisits."""

    first_transient: Array
    again_transient: Array
    first_residual: Array
    again_residual: Array


def visits_of(segments: Segments) -> Visits:
    """Mean transient and residual of new tasks and of tasks that came back.

    The first segment of a lifetime is left out: before it there was nothing to carry.
    """
    later = segments.where((segments.segment > 0) & np.isfinite(segments.regret))
    new, again = later.where(later.visit == 0), later.where(later.visit > 0)
    both = np.intersect1d(new.lifetime, again.lifetime)
    new, again = (part.where(np.isin(part.lifetime, both)) for part in (new, again))
    return Visits(
        means_by(new.transient, new.lifetime),
        means_by(again.transient, again.lifetime),
        means_by(new.residual, new.lifetime),
        means_by(again.residual, again.lifetime),
    )


def _common(one: Lives, two: Lives) -> tuple[Lives, Lives, dict[str, float]]:
    """The segments that both have whole, and the gaps of these two tables together."""
    common = np.intersect1d(one.place[one.ends_segment], two.place[two.ends_segment])
    one, two = (lives.where(np.isin(lives.place, common)) for lives in (one, two))
    return one, two, gaps_of([one, two])


def means_by(values: Array, group: Array) -> Array:
    """The mean of the finite values of every group that has one, ordered by group."""
    known = np.isfinite(values)
    _, index = np.unique(group[known], return_inverse=True)
    return np.asarray(np.bincount(index, values[known]) / np.bincount(index))
