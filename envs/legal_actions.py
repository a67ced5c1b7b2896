"""Every action of a plain space becomes a legal one, for agents that know no action masks.

    choice, as a number     a if it is possible, else possible[a mod k]
    choice, as a real       possible[floor(k (x + 1) / 2)],  x in [-1, 1]
    real                    as it is

with the k possible options of the task that is being played.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import gymnasium
import gymnasium.utils
import numpy as np
from gymnasium import spaces

from .interface import Array


class LegalActions(
    gymnasium.Wrapper[dict[str, Any], Any, dict[str, Any], Any],
    gymnasium.utils.RecordConstructorArgs,
):
    """A `Lifetime` whose actions are a Discrete, a MultiDiscrete or, where there are reals, a Box.

    A Box has one entry in [-1, 1] for every choice of several options, then the reals.
    """

    def __init__(self, env: gymnasium.Env[dict[str, Any], Any]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._mask: Array = np.ones(0, bool)
        self._sizes, self._num_reals = _parts(env.action_space)
        self._single = isinstance(env.action_space, spaces.Discrete)
        self._asked = [index for index, size in enumerate(self._sizes) if size > 1]
        if self._num_reals:
            self.action_space = spaces.Box(-1.0, 1.0, (len(self._asked) + self._num_reals,))
        elif not self._single:
            self.action_space = spaces.MultiDiscrete(self._sizes)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin a lifetime."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._mask = observation["action_mask"].astype(bool)
        return observation, info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Play the legal action that `action` stands for."""
        result = self.env.step(self.legal(action))
        self._mask = result[0]["action_mask"].astype(bool)
        return result

    def legal(self, action: Any) -> Any:
        """The action of a `Lifetime` that `action` stands for under the current mask."""
        starts = np.cumsum([0, *self._sizes])
        masks = [self._mask[a:b] for a, b in pairwise(starts.tolist())]
        possible = [np.flatnonzero(mask) for mask in masks]
        if self._single:
            return _whole(int(action), possible[0])
        if not self._num_reals:
            chosen = [_whole(int(a), options) for a, options in zip(action, possible, strict=True)]
            return {"choices": np.array(chosen), "reals": np.zeros(0, np.float32)}
        action = np.clip(np.asarray(action, np.float32), -1.0, 1.0)
        chosen = [int(options[0]) for options in possible]
        for place, index in enumerate(self._asked):
            chosen[index] = _binned(float(action[place]), possible[index])
        return {"choices": np.array(chosen), "reals": action[len(self._asked) :]}


def _parts(space: gymnasium.Space[Any]) -> tuple[list[int], int]:
    """The options of every choice and the number of reals of a lifetime's action space."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)], 0
    if isinstance(space, spaces.Dict) and set(space.spaces) == {"choices", "reals"}:
        choices, reals = space["choices"], space["reals"]
        if isinstance(choices, spaces.MultiDiscrete) and isinstance(reals, spaces.Box):
            return [int(size) for size in choices.nvec], int(np.prod(reals.shape))
    raise ValueError(f"env: expected a Lifetime, got an environment with the actions {space}")


def _whole(option: int, possible: Array) -> int:
    return option if option in possible else int(possible[option % len(possible)])


def _binned(real: float, possible: Array) -> int:
    rank = int(len(possible) * (real + 1.0) / 2.0)
    return int(possible[min(rank, len(possible) - 1)])
