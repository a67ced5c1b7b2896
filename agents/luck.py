"""Luck by address: what decides a draw is where it is made, not what was drawn before it.

    u = splitmix64(root seed, lifetime, segment, episode, step, part) / 2^64

Two policies at the same step of the same episode share their luck, however long either took to get
there: common random numbers. Source: `sojourn.envs.uniforms`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sojourn.envs import Array, uniforms

from .moment import Moment

WORD = 2**32
FLOAT32_STEPS = 2.0**24  # float32 numbers in [0, 1) on an even grid: a draw never rounds up to 1


class SharedLuck:
    """The uniforms of actions as a function of `seed` and the moment.

    Lifetimes whose numbers are equal modulo `period` have the same luck (None: no two have).
    """

    def __init__(self, seed: int, period: int | None = None) -> None:
        if period is not None and period < 1:
            raise ValueError(f"period: expected at least 1, got {period}")
        self.seed, self.period = seed, period

    def draw(self, moment: Moment, shape: tuple[int, ...]) -> Tensor:
        """Float32 uniforms `[B, *shape]` in [0, 1) of the actions at `moment`."""
        lifetime = moment.lifetime if self.period is None else moment.lifetime % self.period
        root = np.full(len(lifetime), self.seed, np.uint64)
        place = _word(uniforms(root, lifetime * WORD + moment.segment, 0))
        step = moment.episode * WORD + moment.episode_step
        parts = [uniforms(place, step, part) for part in range(int(np.prod(shape)))]
        grid = np.floor(np.stack(parts, -1) * FLOAT32_STEPS) / FLOAT32_STEPS
        return torch.from_numpy(grid.astype(np.float32)).view(-1, *shape)


def _word(uniform: Array) -> Array:
    """The bits of uniforms as whole numbers."""
    return np.asarray((uniform * 2.0**53).astype(np.uint64))
