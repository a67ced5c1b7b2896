"""How far a memory reaches (M16): success as a function of a lag, and of the memory's own age.

    retained_l = mean over (r, i) of R[r, i] where task i was last played l parts before r
    horizon    = the greatest l up to which every retained_l is at least half of retained_0,
                 where retained_0 lies two standard errors above the floor
    aged_k     = mean u of segment k of a life
    lagged_n   = mean u over the tasks in which a cue is used n steps after it was shown

Source of the lag as the axis of a memory: Hung et al. 2019, arXiv:1810.06721, and POPGym (Morad et
al. 2023, arXiv:2303.01859).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..episodes import Array
from .forgetting import Matrix, above_floor, mean_known
from .lives import Lives
from .paired import means_by
from .segments import Segments

HALF = 0.5


def retained(matrix: Matrix) -> Array:
    """Mean score `[B, K]` by the number of parts since a task was last played (0: it was the last
    one); NaN for a lag that a life does not have.
    """
    lives, parts, tasks = matrix.played.shape
    found = [np.zeros((lives, 0)) for _ in range(parts)]
    last = np.full((lives, tasks), -1)
    for part in range(parts):
        last = np.where(matrix.played[:, part], part, last)
        scores = matrix.scores[:, part + 1]
        for lag in range(part + 1):
            at_lag = np.where(last == part - lag, scores, np.nan)
            found[lag] = np.concatenate([found[lag], at_lag], axis=1)
    return np.array([mean_known(scores) for scores in found]).reshape(parts, lives).T


def horizon(retention: Array) -> float:
    """Parts after which half of what was known is still known, from `retained` `[B, K]`.

    NaN where nothing is clearly known right after playing: half of noise would be kept for ever.
    Infinite where no lag that was seen falls below half.
    """
    if not above_floor(retention)[:1].any():
        return float("nan")
    mean = mean_known(retention.T)
    below = np.flatnonzero(mean < HALF * mean[0])
    return float(below[0] - 1) if len(below) else float("inf")


def score_at_age(segments: Segments, segment: int) -> Array:
    """Mean score of segment `segment` (from 0), per lifetime that has it whole."""
    chosen = segments.where(segments.segment == segment)
    return means_by(1.0 - chosen.regret, chosen.lifetime)


def score_at_lag(lives: Lives, lags: Mapping[str, int], lag: int) -> Array:
    """Mean score of the tasks with a lag of `lag` steps, per lifetime that met one."""
    chosen = np.array([lags.get(str(name)) == lag for name in lives.task], bool)
    return means_by((1.0 - lives.regret())[chosen], lives.lifetime[chosen])
