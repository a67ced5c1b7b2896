"""The R-matrix of memories: what a memory knows of every task after every segment of its life.

    R[r, i] = score on task i with the memory as it was after r segments (r = 0: before life)
    ACC = mean_i R[K, i]
    BWT = mean_i (R[K, i] - R[after the last visit of i, i])        i other than the last task
    FWT = mean_i (R[before the first visit of i, i] - R[0, i])      i other than the first task
    M6  = mean (R[k, i] - R[k + 1, i]) over known tasks i that segment k does not play

Forgetting is -BWT. FWT is the zero-shot score against an untrained memory (M9). All are means per
lifetime. Source: Lopez-Paz and Ranzato 2017, Gradient Episodic Memory, arXiv:1706.08840.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..episodes import Array

CLEAR = 2.0  # standard errors above the floor at which a task counts as known


@dataclass(frozen=True)
class Matrix:
    """`scores` `[B, K + 1, N]` of B lifetimes, NaN where unknown; `played` int `[B, K]` is the
    column of every segment's task. Columns may be in any order; -1 in `played` is no segment.
    """

    scores: Array
    played: Array

    def __post_init__(self) -> None:
        lives, rows, _ = self.scores.shape
        if self.played.shape != (lives, rows - 1):
            raise ValueError(
                f"played: expected {(lives, rows - 1)} for scores {self.scores.shape}, "
                f"got {self.played.shape}"
            )

    @property
    def num_segments(self) -> int:
        return int(self.played.shape[1])

    def visits(self, last: bool) -> Array:
        """Segment of the first (or last) visit of every task, int `[B, N]`; -1 where never."""
        lives, _, tasks = self.scores.shape
        found = np.full((lives, tasks), -1)
        order = range(self.num_segments) if last else reversed(range(self.num_segments))
        for segment in order:
            column = self.played[:, segment]
            rows = np.flatnonzero(column >= 0)
            found[rows, column[rows]] = segment
        return found

    def at(self, row: Array) -> Array:
        """`scores[b, row[b, i], i]` as `[B, N]`; NaN where the row is negative."""
        chosen = np.take_along_axis(self.scores, np.maximum(row, 0)[:, None], axis=1)[:, 0]
        return np.where(row >= 0, chosen, np.nan)


def accuracy(matrix: Matrix) -> Array:
    """ACC `[B]`: mean score, at the end of life, on the tasks that were met."""
    met = matrix.visits(last=False) >= 0
    return mean_known(np.where(met, matrix.scores[:, -1], np.nan))


def backward_transfer(matrix: Matrix) -> Array:
    """BWT `[B]`: what the rest of life changed on the tasks it met before the last segment."""
    last = matrix.visits(last=True)
    earlier = (last >= 0) & (last < matrix.num_segments - 1)
    after_visit = matrix.at(np.where(earlier, last + 1, -1))
    return mean_known(np.where(earlier, matrix.scores[:, -1], np.nan) - after_visit)


def forward_transfer(matrix: Matrix) -> Array:
    """FWT `[B]`: score just before a task is first met, against the memory before life."""
    first = matrix.visits(last=False)
    later = np.where(first > 0, first, -1)
    return mean_known(matrix.at(later) - matrix.scores[:, 0])


@dataclass(frozen=True)
class BoundaryForgetting:
    """M6: `per_lifetime` `[B]` mean loss of a boundary; of `num_cells` (segment, task) cells
    `num_known` were clearly above the floor and count.
    """

    per_lifetime: Array
    num_known: int
    num_cells: int


def boundary_forgetting(matrix: Matrix) -> BoundaryForgetting:
    """What each segment cost the tasks met before it and not played in it.

    A cell counts where its mean over the lifetimes lies two standard errors above the floor: chosen
    by single lifetimes, lucky probes would look like knowledge that is then forgotten.
    """
    before, after = matrix.scores[:, :-1], matrix.scores[:, 1:]
    first = matrix.visits(last=False)[:, None]
    segment = np.arange(matrix.num_segments)[None, :, None]
    task = np.arange(matrix.scores.shape[2])[None, None]
    cells = (first >= 0) & (first < segment) & (matrix.played[:, :, None] != task)
    cells &= np.isfinite(before) & np.isfinite(after)
    known = _clear(np.where(cells, before, np.nan))
    loss = np.where(cells & known, before - after, np.nan)
    return BoundaryForgetting(
        mean_known(loss.reshape(len(loss), -1)),
        int((cells.any(axis=0) & known).sum()),
        int(cells.any(axis=0).sum()),
    )


def _clear(scores: Array) -> Array:
    """Bool `[K, N]`: mean over lifetimes above 0 by two standard errors of it."""
    count = np.isfinite(scores).sum(axis=0)
    filled = np.nan_to_num(scores)
    mean = filled.sum(axis=0) / np.maximum(count, 1)
    square = np.where(np.isfinite(scores), (filled - mean) ** 2, 0.0).sum(axis=0)
    error = np.sqrt(square / np.maximum(count - 1, 1) / np.maximum(count, 1))
    return np.asarray((count > 0) & (mean > CLEAR * error) & (mean > 0))


def mean_known(values: ArrayLike) -> Array:
    """Mean of the finite entries of every row of `[B, n]`; NaN for a row without one."""
    array = np.asarray(values, np.float64)
    known = np.isfinite(array)
    count = known.sum(axis=1)
    total = np.where(known, array, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
