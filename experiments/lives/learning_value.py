"""What learning in deployment is worth: a life against its frozen twin, in constant memory.

    d_w = L_w(twin) - L_w(learner)         > 0: learning helps, in window w of both lives
    mean and interval of the means of 20 to 39 successive batches of windows

Windows of one life are not independent; means of long batches nearly are. When 40 batches are full,
neighbours are merged and batches become twice as long. Source: batch means, Schmeiser 1982.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..episodes import Array
from ..statistics import Interval, interval

MOST_BATCHES = 40


class LearningValue:
    """Sums over the windows in which both lives have a loss."""

    def __init__(self) -> None:
        self.size = 1  # windows in a full batch
        self.sums: list[float] = []
        self.counts: list[int] = []
        self.losses = np.zeros(2)  # of the learner and of the twin

    @property
    def num_windows(self) -> int:
        """How many windows told."""
        return sum(self.counts)

    def add(self, loss: float, twin_loss: float) -> None:
        """One more window; a loss that is not known (NaN) leaves it out."""
        if not np.isfinite(loss - twin_loss):
            return
        self.losses += (loss, twin_loss)
        if not self.counts or self.counts[-1] == self.size:
            self._make_room()
            self.sums.append(0.0)
            self.counts.append(0)
        self.sums[-1] += twin_loss - loss
        self.counts[-1] += 1

    def _make_room(self) -> None:
        if len(self.counts) == MOST_BATCHES:
            self.sums = [a + b for a, b in zip(self.sums[::2], self.sums[1::2], strict=True)]
            self.counts = [a + b for a, b in zip(self.counts[::2], self.counts[1::2], strict=True)]
            self.size *= 2

    def batches(self) -> Array:
        """Mean difference of every full batch, in the order of life."""
        full = [i for i, count in enumerate(self.counts) if count == self.size]
        return np.array([self.sums[i] / self.counts[i] for i in full])

    def of_life(self) -> Interval:
        """The whole life; `num_runs` counts its batches."""
        return interval(self.batches())

    def of_second_half(self) -> Interval:
        """The second half of the life: what learning is worth by now."""
        found = self.batches()
        return interval(found[len(found) // 2 :])

    def mean_losses(self) -> tuple[float, float]:
        """Mean loss of the learner and of the twin over all windows; NaN before the first."""
        count = self.num_windows
        learner, twin = self.losses / count if count else (np.nan, np.nan)
        return float(learner), float(twin)

    def state_dict(self) -> dict[str, Any]:
        """Everything, in plain values."""
        return {
            "size": self.size,
            "sums": self.sums,
            "counts": self.counts,
            "losses": self.losses.tolist(),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.size = saved["size"]
        self.sums, self.counts = list(saved["sums"]), list(saved["counts"])
        self.losses = np.array(saved["losses"])
