"""Regret of episodes, lives and pairs of lives, from the records of a crowd.

The regret of an episode is `sojourn.envs.episode_regret`. Where the simulator knows the expected
return it takes the place of the sampled one (pseudo-regret).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sojourn.envs import Array, EpisodeRecord, episode_regret, task_gaps


def episode_regrets(records: Sequence[EpisodeRecord]) -> Array:
    """Normalised regret `[num_records]`; NaN for an episode without a reference or cut short.

    An episode that its segment cut short, or that still runs, is compared only where its task is
    measured by rate.
    """
    returns = [
        (r.achieved_return, math.nan if r.is_partial else r.optimal_return, r.floor_return)
        for r in records
    ]
    achieved, optimal, floor = np.array(returns, np.float64).reshape(-1, 3).T
    tasks = [record.task for record in records]
    known = np.where(np.isfinite(achieved), optimal, np.nan)
    regret = episode_regret(tasks, achieved, known, task_gaps(tasks, known, floor))
    return np.where(np.isfinite(floor), regret, np.nan)


def grouped_regret(records: Sequence[EpisodeRecord], group: Array, num_groups: int) -> Array:
    """Mean regret `[num_groups]` of the records of each group (int `[num_records]`).

    All groups are measured against the same gaps. NaN for a group of which nothing is known.
    """
    regrets = episode_regrets(records)
    known = np.isfinite(regrets)
    total = np.bincount(group[known], regrets[known], minlength=num_groups)
    count = np.bincount(group[known], minlength=num_groups)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
