"""What a stretch of life lost, for several lives of the same stretch held against one another.

    regret    mean normalised regret of the episodes that ended in it, all lives on the same gaps
    return    mean of (m_z - x) / r_z over these episodes, where tasks have no floor and ceiling:
              x return of an episode of task z, reward per step where z is measured by rate;
              m_z, r_z mean and root mean square of x over all lives

Lower is better in both. Episodes count where they end. Reward per step is no measure of a return:
it is 1 on CartPole for every policy. A life that met more of a generous task is not flattered by
it, since every task is held against its own mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from sojourn.envs import Array, EpisodeRecord

from .life_regret import grouped_regret

Measure = Literal["regret", "return"]
"""What a window of lives is judged by."""


def window_losses(lives: Sequence[Sequence[EpisodeRecord]], measure: Measure) -> Array:
    """The loss of every life `[num_lives]`; NaN where none of its episodes tells."""
    records = [record for life in lives for record in life]
    group = np.repeat(np.arange(len(lives)), [len(life) for life in lives])
    if measure == "regret":
        return grouped_regret(records, group, len(lives))
    known = np.array([_is_whole(record) for record in records], bool)
    behind = _behind_the_mean([r for r, whole in zip(records, known, strict=True) if whole])
    count = np.bincount(group[known], minlength=len(lives))
    total = np.bincount(group[known], behind, minlength=len(lives))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _behind_the_mean(records: Sequence[EpisodeRecord]) -> Array:
    """`[num_records]`: how far every episode stays behind the mean of its task, as a share of the
    size of what the task pays.
    """
    scores = np.array([_score(record) for record in records], np.float64)
    names, task = np.unique([record.task for record in records], return_inverse=True)
    count = np.maximum(np.bincount(task, minlength=len(names)), 1)
    mean = np.bincount(task, scores, minlength=len(names)) / count
    size = np.sqrt(np.bincount(task, scores**2, minlength=len(names)) / count)
    return np.asarray((mean[task] - scores) / np.where(size > 0.0, size, 1.0)[task])


def _score(record: EpisodeRecord) -> float:
    return record.achieved_return / (record.num_steps if record.unit == "rate" else 1)


def _is_whole(record: EpisodeRecord) -> bool:
    lived = record.status != "failed" and not record.is_partial
    return lived and bool(np.isfinite(record.achieved_return))
