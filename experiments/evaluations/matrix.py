"""What R-matrices say as rows of an evaluation: forgetting, transfer, plasticity, memory horizon.

The matrix of memories has snapshots of the fast weights as its rows, that of outer parameters the
checkpoints of training. They answer different questions and are never averaged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..measures.forgetting import (
    Matrix,
    accuracy,
    backward_transfer,
    boundary_forgetting,
    forward_transfer,
    learned,
    mean_known,
)
from ..measures.horizon import horizon, retained
from ..measures.lifetimes import FEWEST, theil_sen
from ..statistics import interval
from .measures import CARRIED, Row, doubling, single_number

CHECKPOINTS = "checkpoints"
OF_TRAINING = "of the training stream, that this matrix alone has"
"""Whose lives the numbers of outer parameters are means over."""
OUTER = ", outer parameters"


def matrix_rows(matrix: Matrix) -> Iterator[Row]:
    """What the R-matrix of the carried memories says, its parts being segments."""
    yield from _shared(matrix, CARRIED, "")
    retention = retained(matrix)
    lags = [0, *doubling(matrix.num_parts - 1)]
    for lag in lags:
        values = retention[:, lag]
        name = f"score, {lag} segment{'' if lag == 1 else 's'} after the last visit"
        yield Row("M16", name, CARRIED, interval(values))
    reach = horizon(retention)
    yield single_number("M16", "memory horizon, segments", CARRIED, reach, len(matrix.scores))


def outer_rows(matrix: Matrix) -> Iterator[Row]:
    """What the R-matrix of outer parameters says, its parts being stretches of training."""
    yield from _shared(matrix, CHECKPOINTS, OUTER)
    after = learned(matrix)
    mean = mean_known(after)
    yield Row("M13", f"score right after training{OUTER}", CHECKPOINTS, interval(mean))
    slopes = [
        theil_sen(np.flatnonzero(np.isfinite(row)), row[np.isfinite(row)])
        for row in after
        if np.isfinite(row).sum() >= FEWEST
    ]
    yield Row("M13", f"trend of score right after training{OUTER}", CHECKPOINTS, interval(slopes))


def _shared(matrix: Matrix, condition: str, suffix: str) -> Iterator[Row]:
    boundary = boundary_forgetting(matrix)
    share = f"{boundary.num_known} of {boundary.num_cells} (part, task) cells above the floor"
    for code, measure, values, note in (
        ("M6", "forgetting at a boundary", boundary.per_lifetime, share),
        ("M7", "ACC, score on all tasks met", accuracy(matrix), ""),
        ("M7", "BWT, backward transfer", backward_transfer(matrix), "forgetting is -BWT"),
        ("M9", "FWT, zero-shot minus untrained memory", forward_transfer(matrix), ""),
    ):
        name = "FWT, zero-shot minus untrained" if suffix and code == "M9" else measure
        yield Row(code, f"{name}{suffix}", condition, interval(values), note)
