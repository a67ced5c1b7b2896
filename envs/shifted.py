"""Observations shifted by a hidden vector that a task draws: any environment of real vectors.

    shown = observation + spread n,   n ~ N(0, 1)^size drawn by the task's `shift_seed`

As a task: `wrappers: [{"sojourn.envs.shifted:ShiftedObservations": {spread: 2.0}}]` with
`attributes: {shift_seed: {integers: [0, 2147483647]}}`. Source: TRAC (Muppidi et al. 2024,
arXiv:2405.16642).
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from .interface import Array
from .seeding import generator
from .task import Env


class ShiftedObservations(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds a vector to every observation, the one that belongs to `shift_seed`.

    The seed is an attribute of the innermost environment, where a task sets it. Raises ValueError
    for observations that are not real vectors and for a negative spread.
    """

    def __init__(self, env: Env, spread: float) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, spaces.Box) or len(space.shape) != 1:
            raise ValueError(f"observation_space: expected a Box of one dimension, got {space}")
        if spread < 0.0:
            raise ValueError(f"spread: expected at least 0, got {spread}")
        self.observation_space = spaces.Box(-np.inf, np.inf, space.shape, np.float32)
        self._spread = spread
        self._shift = np.zeros(space.shape)
        env.unwrapped.shift_seed = 0  # type: ignore[attr-defined]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode with the shift of the task."""
        shown, info = self.env.reset(seed=seed, options=options)
        rng = generator(self.env.unwrapped.shift_seed)  # type: ignore[attr-defined]
        self._shift = rng.normal(0.0, self._spread, self._shift.shape)
        return self._shifted(shown), info

    def step(self, action: Any) -> tuple[Array, Any, bool, bool, dict[str, Any]]:
        """Play an action."""
        shown, reward, terminated, truncated, info = self.env.step(action)
        return self._shifted(shown), reward, terminated, truncated, info

    def _shifted(self, shown: Array) -> Array:
        return np.asarray(shown + self._shift, np.float32)
