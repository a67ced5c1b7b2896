"""Plays whole episodes of one task and says what they earned on average, with a standard error.

Every lifetime plays the same number of episodes to their end, so that short ones do not count more
often than long ones; the error is over lifetimes, which are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sojourn.envs import EpisodeRecord, standard_error

from ..errors import RunError
from ..evaluations.frozen_lives import Budget, Condition, lives
from .request import LIFE_EPISODES, ReferenceRequest


@dataclass(frozen=True)
class Sample:
    """Mean over lifetimes in the unit of the task, its standard error, episodes behind it."""

    mean: float
    error: float
    num_episodes: int

    def text(self) -> str:
        """One phrase."""
        return f"{self.mean:.4g} ± {self.error:.2g} (s.e., n = {self.num_episodes})"


def play(
    wanted: ReferenceRequest, condition: Condition, root_seed: int, num_episodes: int
) -> Sample:
    """Live `num_episodes` or a few more; raises RunError where episodes do not end in time."""
    num_lifetimes = max(2, -(-num_episodes // LIFE_EPISODES))
    budget = Budget(num_lifetimes, wanted.most_steps, segments=1)
    records: list[EpisodeRecord] = []
    for _, endings in lives(condition, wanted.stream(root_seed), budget, root_seed):
        records += [e.record for e in endings if e.record.status in ("terminated", "truncated")]
    if len(records) < num_lifetimes * LIFE_EPISODES:
        raise RunError(
            f"reference {wanted.name}: only {len(records)} of {num_lifetimes * LIFE_EPISODES} "
            f"episodes ended in {wanted.most_steps:,} steps; set max_episode_steps or most_steps"
        )
    return sample_of(records)


def sample_of(records: Sequence[EpisodeRecord]) -> Sample:
    """Mean return, or reward per step where the task is scored by `rate`, over lifetimes."""
    totals: dict[int, list[float]] = {}
    for record in records:
        found = totals.setdefault(record.lifetime, [0.0, 0.0])
        found[0] += record.total_return
        found[1] += record.num_steps if record.unit == "rate" else 1
    means = np.array([total / count for total, count in totals.values()])
    return Sample(float(means.mean()), standard_error(means), len(records))
