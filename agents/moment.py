"""Where every lifetime of a crowd stands before a step: which task, which episode, how far."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from sojourn.envs import Array, Crowd


@dataclass(frozen=True)
class Moment:
    """Int64 arrays `[B]`: indices from 0, and steps lived so far in each of them."""

    lifetime: Array
    segment: Array
    episode: Array
    lifetime_step: Array
    segment_step: Array
    episode_step: Array

    @classmethod
    def of(cls, crowd: Crowd) -> Moment:
        """The true position of every row; an agent is told of task switches only if announced."""
        counters = crowd.state_dict()["counters"]
        return cls(**{field.name: counters[field.name] for field in fields(cls)})

    @property
    def starts_lifetime(self) -> Array:
        """Bool `[B]`: the first step of a lifetime."""
        return np.equal(self.lifetime_step, 0)

    @property
    def starts_task(self) -> Array:
        """Bool `[B]`: the first step of a segment."""
        return np.equal(self.segment_step, 0)

    @property
    def starts_episode(self) -> Array:
        """Bool `[B]`: the first step of an episode."""
        return np.equal(self.episode_step, 0)
