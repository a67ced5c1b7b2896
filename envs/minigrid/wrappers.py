"""Small wrappers around MiniGrid environments: hidden action meanings, quiet resets."""

from __future__ import annotations

from contextlib import redirect_stdout
from typing import Any, SupportsInt

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import ArrayLike, NDArray

from ..task import Env


class PermutedActions(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The first `num_actions` native actions under new numbers: action a plays `permutation[a]`.

    The permutation is the identity until it is set; nothing in the observations tells it. Raises
    ValueError for more actions than the environment has, and for a `permutation` that is none.
    """

    def __init__(self, env: Env, num_actions: int) -> None:
        super().__init__(env)
        space = env.action_space
        available = int(space.n) if isinstance(space, Discrete) else 0
        if not 1 <= num_actions <= available:
            raise ValueError(f"num_actions: expected 1 to {available}, got {num_actions}")
        self.action_space = Discrete(num_actions)
        self._native = list(range(num_actions))

    @property
    def permutation(self) -> NDArray[np.int64]:
        """Native action of every action, int64 `[num_actions]`."""
        return np.array(self._native, np.int64)

    @permutation.setter
    def permutation(self, permutation: ArrayLike) -> None:
        native = np.asarray(permutation).tolist()
        if sorted(native) != list(range(len(self._native))):
            raise ValueError(
                f"permutation: expected one of 0 .. {len(self._native) - 1}, got {native}"
            )
        self._native = native

    def step(self, action: SupportsInt) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play the native action that `action` stands for."""
        return self.env.step(self._native[int(action)])


class QuietReset(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps what BabyAI prints about missions it rejected out of the standard output."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset without a word."""
        with redirect_stdout(None):
            return self.env.reset(seed=seed, options=options)
