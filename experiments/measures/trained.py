"""The segments of a training run, split as those of held-out lives are.

A run's table does not say where a segment ended. It is known from what came later: another segment
of the same lifetime, or the lifetime that took its place, which has the number of lifetimes lived
side by side more.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..episodes import KEY, Array
from ..tables import Columns, last_rows, read_table
from .lives import Lives
from .segments import Segments, segments_of


@dataclass(frozen=True)
class TrainedSegments:
    """Whole segments of training and the environment step `[num_segments]` at which each ended."""

    step: Array
    segments: Segments

    @classmethod
    def from_table(cls, path: Path, num_lifetimes: int) -> TrainedSegments:
        """From an episodes.csv of `num_lifetimes` lives side by side.

        A segment that ended with the run's last step is not known to have ended.
        """
        columns = last_rows(read_table(path), KEY)
        if not columns:
            return cls(np.zeros(0), segments_of(Lives.from_columns({})))
        ends = _segment_ends(columns, num_lifetimes)
        lives = Lives.from_columns(columns | {"ends_segment": ends})
        step = columns["step"][columns["status"].astype(str) != "running"][lives.ends_segment]
        return cls(step[np.argsort(lives.place[lives.ends_segment])], segments_of(lives))

    def split(self, first_step: float, last_step: float) -> tuple[float, float]:
        """Mean transient and residual regret of the segments that ended in (first, last]; NaN
        without any that has a regret.
        """
        chosen = (self.step > first_step) & (self.step <= last_step)
        part = self.segments.where(chosen & np.isfinite(self.segments.regret))
        if not len(part):
            return float("nan"), float("nan")
        return float(part.transient.mean()), float(part.residual.mean())


def _segment_ends(columns: Columns, num_lifetimes: int) -> Array:
    """Bool `[num_rows]`: the last episode of a segment after which something was lived."""
    lifetime = columns["lifetime"].astype(np.int64)
    row = lifetime % num_lifetimes
    order = np.lexsort((columns["episode"], columns["segment"], lifetime, row))
    segment = columns["segment"][order]
    same_row = row[order][1:] == row[order][:-1]
    moved = (lifetime[order][1:] != lifetime[order][:-1]) | (segment[1:] != segment[:-1])
    ends = np.zeros(len(order), bool)
    ends[order[:-1][same_row & moved]] = True
    return ends
