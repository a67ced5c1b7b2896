"""R-matrices: what is known of every task after every part of a life.

    R[r, i] = score on task i after r parts (r = 0: before the first)
    ACC = mean_i R[K, i]
    BWT = mean_i (R[K, i] - R[after the last visit of i, i])        i other than the last task
    FWT = mean_i (R[before the first visit of i, i] - R[0, i])      i other than the first task
    M6  = mean (R[k, i] - R[k + 1, i]) over known tasks i that part k does not play
    learned_k = mean R[k + 1, i] over the tasks i that part k plays

A part is a segment and what knows is the memory, or a part is a stretch of training and what knows
are the outer parameters: two matrices, never mixed. Forgetting is -BWT. FWT is the zero-shot score
against what there was before (M9). All are means per lifetime. Source: Lopez-Paz and Ranzato 2017,
Gradient Episodic Memory, arXiv:1706.08840.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..episodes import Array

CLEAR = 2.0  # standard errors above the floor at which a task counts as known


@dataclass(frozen=True)
class Matrix:
    """`scores` `[B, K + 1, N]` of B lifetimes, NaN where unknown; `played` bool `[B, K, N]` says
    which tasks a part plays: one, several or none. Tasks may be in any order.
    """

    scores: Array
    played: Array

    def __post_init__(self) -> None:
        lives, rows, tasks = self.scores.shape
        if self.played.shape != (lives, rows - 1, tasks):
            raise ValueError(
                f"played: expected {(lives, rows - 1, tasks)} for scores {self.scores.shape}, "
                f"got {self.played.shape}"
            )

    @classmethod
    def in_order(cls, scores: Array, order: Array) -> Matrix:
        """Where every part plays one task: its column, int `[B, K]`; -1 is no part."""
        return cls(scores, order[:, :, None] == np.arange(scores.shape[2]))

    @property
    def num_parts(self) -> int:
        return int(self.played.shape[1])

    def visits(self, last: bool) -> Array:
        """Part of the first (or last) visit of every task, int `[B, N]`; -1 where never."""
        ordered = self.played[:, ::-1] if last else self.played
        found = ordered.argmax(axis=1)
        found = self.num_parts - 1 - found if last else found
        return np.where(self.played.any(axis=1), found, -1)

    def at(self, row: Array) -> Array:
        """`scores[b, row[b, i], i]` as `[B, N]`; NaN where the row is negative."""
        chosen = np.take_along_axis(self.scores, np.maximum(row, 0)[:, None], axis=1)[:, 0]
        return np.where(row >= 0, chosen, np.nan)


def accuracy(matrix: Matrix) -> Array:
    """ACC `[B]`: mean score, at the end of life, on the tasks that were met."""
    met = matrix.visits(last=False) >= 0
    return mean_known(np.where(met, matrix.scores[:, -1], np.nan))


def backward_transfer(matrix: Matrix) -> Array:
    """BWT `[B]`: what the rest of life changed on the tasks it met before its last part."""
    last = matrix.visits(last=True)
    earlier = (last >= 0) & (last < matrix.num_parts - 1)
    after_visit = matrix.at(np.where(earlier, last + 1, -1))
    return mean_known(np.where(earlier, matrix.scores[:, -1], np.nan) - after_visit)


def forward_transfer(matrix: Matrix) -> Array:
    """FWT `[B]`: score just before a task is first met, against the memory before life."""
    first = matrix.visits(last=False)
    later = np.where(first > 0, first, -1)
    return mean_known(matrix.at(later) - matrix.scores[:, 0])


def learned(matrix: Matrix) -> Array:
    """Mean score `[B, K]` right after every part on the tasks that it played.

    Its slope over the parts is the loss (below 0) or gain of plasticity.
    """
    after = np.where(matrix.played, matrix.scores[:, 1:], np.nan)
    lives, parts, tasks = after.shape
    return mean_known(after.reshape(lives * parts, tasks)).reshape(lives, parts)


@dataclass(frozen=True)
class BoundaryForgetting:
    """M6: `per_lifetime` `[B]` mean loss of a boundary; of `num_cells` (part, task) cells
    `num_known` were clearly above the floor and count.
    """

    per_lifetime: Array
    num_known: int
    num_cells: int


def boundary_forgetting(matrix: Matrix) -> BoundaryForgetting:
    """What each part cost the tasks met before it and not played in it.

    A cell counts where its mean over the lifetimes lies two standard errors above the floor: chosen
    by single lifetimes, lucky probes would look like knowledge that is then forgotten.
    """
    before, after = matrix.scores[:, :-1], matrix.scores[:, 1:]
    first = matrix.visits(last=False)[:, None]
    part = np.arange(matrix.num_parts)[None, :, None]
    cells = (first >= 0) & (first < part) & ~matrix.played
    cells &= np.isfinite(before) & np.isfinite(after)
    known = above_floor(np.where(cells, before, np.nan))
    loss = np.where(cells & known, before - after, np.nan)
    return BoundaryForgetting(
        mean_known(loss.reshape(len(loss), -1)),
        int((cells.any(axis=0) & known).sum()),
        int(cells.any(axis=0).sum()),
    )


def above_floor(scores: Array) -> Array:
    """Bool `[...]`: mean of `scores` `[B, ...]` over lifetimes above 0 by two standard errors of
    it; False where a single lifetime tells, which has none.
    """
    count = np.isfinite(scores).sum(axis=0)
    filled = np.nan_to_num(scores)
    mean = filled.sum(axis=0) / np.maximum(count, 1)
    square = np.where(np.isfinite(scores), (filled - mean) ** 2, 0.0).sum(axis=0)
    error = np.sqrt(square / np.maximum(count - 1, 1) / np.maximum(count, 1))
    return np.asarray((count > 1) & (mean > CLEAR * error) & (mean > 0))


def mean_known(values: ArrayLike) -> Array:
    """Mean of the finite entries of every row of `[B, n]`; NaN for a row without one."""
    array = np.asarray(values, np.float64)
    known = np.isfinite(array)
    count = known.sum(axis=1)
    total = np.where(known, array, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
