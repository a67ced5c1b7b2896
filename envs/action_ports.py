"""From the parts of an action to the native action of an environment, for any nesting of spaces.

    Discrete start .. start + n - 1 -> a choice among n;  MultiDiscrete, MultiBinary -> several
    Box, bounded -> reals, x = low + (high - low) (a + 1) / 2 with a in [-1, 1]
    Dict, Tuple -> the parts of their parts, one after another

Source: `gymnasium.spaces`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from .interface import Array

Space = gymnasium.Space[Any]


@dataclass(frozen=True)
class ActionPort:
    """What an action space is made of: the options of every choice, and how many reals.

    `native(choices, reals)` is the environment's own action for whole numbers and reals in [-1, 1].
    """

    choices: tuple[int, ...]
    num_reals: int
    native: Callable[[Sequence[int], Sequence[float]], Any]


def action_port(space: Space, path: str = "action_space") -> ActionPort:
    """The port of an action space; raises ValueError naming the part that cannot be played."""
    if isinstance(space, spaces.Discrete):
        first = int(space.start)
        return ActionPort((int(space.n),), 0, lambda choices, _: first + int(choices[0]))
    if isinstance(space, spaces.MultiDiscrete):
        return _multi_port(space, space.nvec, space.start)
    if isinstance(space, spaces.MultiBinary):
        return _multi_port(space, np.full(space.shape, 2), np.zeros(space.shape, np.int64))
    if isinstance(space, spaces.Box):
        return _box_port(space, path)
    if isinstance(space, spaces.Dict):
        keys = list(space.spaces)
        parts = [action_port(space[key], f"{path}[{key!r}]") for key in keys]
        return _joined(parts, lambda natives: dict(zip(keys, natives, strict=True)))
    if isinstance(space, spaces.Tuple):
        parts = [action_port(part, f"{path}[{i}]") for i, part in enumerate(space.spaces)]
        return _joined(parts, tuple)
    raise ValueError(
        f"{path}: expected Discrete, MultiDiscrete, MultiBinary, a bounded Box, or a Dict or Tuple "
        f"of these, got {space}"
    )


def _multi_port(space: Space, sizes: Array, first: Array) -> ActionPort:
    shape, dtype = sizes.shape, space.dtype

    def native(choices: Sequence[int], _: Sequence[float]) -> Array:
        return (np.array(choices, np.int64).reshape(shape) + first).astype(dtype)

    return ActionPort(tuple(int(size) for size in sizes.ravel()), 0, native)


def _box_port(space: spaces.Box, path: str) -> ActionPort:
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        raise ValueError(
            f"{path}: expected a Box with bounds, got {space}; give it some with "
            "gymnasium.wrappers:RescaleAction or ClipAction"
        )
    low = space.low.astype(np.float64)
    width = space.high.astype(np.float64) - low
    whole = np.issubdtype(space.dtype, np.integer)

    def native(_: Sequence[int], reals: Sequence[float]) -> Array:
        share = (np.array(reals, np.float64).reshape(space.shape) + 1.0) / 2.0
        value = low + width * share
        chosen = np.rint(value) if whole else value
        # Rounding to the type of the space may leave it by the last digit.
        return np.clip(chosen.astype(space.dtype), space.low, space.high)

    return ActionPort((), int(np.prod(space.shape)), native)


def _joined(parts: Sequence[ActionPort], join: Callable[[list[Any]], Any]) -> ActionPort:
    def native(choices: Sequence[int], reals: Sequence[float]) -> Any:
        natives, c, r = [], 0, 0
        for part in parts:
            num_choices = len(part.choices)
            own = choices[c : c + num_choices], reals[r : r + part.num_reals]
            natives.append(part.native(*own))
            c, r = c + num_choices, r + part.num_reals
        return join(natives)

    choices = tuple(size for part in parts for size in part.choices)
    return ActionPort(choices, sum(part.num_reals for part in parts), native)
