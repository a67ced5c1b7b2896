"""Plays MiniGrid and BabyAI in EnvPool: C++ environments stepped together, in place of Python's.

The games are the same, step by step; the layouts are drawn by another program and cannot be asked
for by a seed. So numbers of the two are not to be mixed, layouts cannot be replayed, and what is
known of an instance is what is known of all of them. Source: Weng et al. 2022, arXiv:2206.10558.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np

from ..interface import Array, Interface, Observation
from ..missions import mission_tokens
from ..simulator import Simulator, Transition
from ..task import Family, Segment
from .family import MinigridTask
from .recipe import Recipe

EXTRA = "envpool"
MAX_STEPS = "max_steps"
_ARGUMENTS = {MAX_STEPS: "max_episode_steps"}
"""What can be passed on, and what EnvPool calls it."""


def check_pooled(families: Sequence[Family]) -> None:
    """Raise ValueError where EnvPool cannot play a family, or is not installed."""
    known = _package().list_all_envs()
    for family in families:
        task = family.draw(np.random.default_rng(0))
        if not isinstance(task, MinigridTask):
            raise ValueError(
                f"backend: envpool plays MiniGrid and BabyAI ids alone, got {family.name!r}; "
                "nearest is 'auto'"
            )
        recipe = task.env_key
        if recipe.id not in known:
            nearest = get_close_matches(recipe.id, known, n=1, cutoff=0.0)[0]
            raise ValueError(f"backend: envpool has no {recipe.id!r}; nearest is {nearest!r}")
        for name, _ in recipe.kwargs:
            if name not in _ARGUMENTS:
                raise ValueError(
                    f"backend: envpool takes no argument {name!r} of {recipe.id}; "
                    f"nearest is {MAX_STEPS!r}"
                )
        if task.instance != "resampled":
            raise ValueError(
                f"backend: envpool cannot replay a layout: {family.name} has "
                f"instance={task.instance}, expected instance=resampled"
            )


class EnvPoolSimulator(Simulator):
    """Rows that each have a place in a pool of every environment that they have met.

    The layout of an episode follows from the seed of the pool (that of the segment that was first
    in it), the row, and how many episodes the row has begun there. One thread steps all of a pool.
    """

    replays = False

    def __init__(self, interface: Interface, num_rows: int) -> None:
        self.interface = interface
        self.num_rows = num_rows
        self._rows = np.arange(num_rows)
        self._channels = interface.zeros(num_rows)
        self._action_mask = np.zeros((num_rows, interface.num_actions), bool)
        self._natives = np.zeros((num_rows, interface.num_actions), np.int64)
        self._pools: dict[Recipe, Any] = {}
        self._playing: list[Recipe | None] = [None] * num_rows
        self._beginning: set[int] = set()

    def begin_segment(self, row: int, segment: Segment) -> None:
        """Take over the actions of the segment's task; makes its pool where it is the first."""
        task = segment.task
        if not isinstance(task, MinigridTask):
            raise ValueError(f"envpool simulator: expected a MinigridTask, got {task!r}")
        recipe = task.env_key.plain()
        if recipe not in self._pools:
            self._pools[recipe] = _pool(recipe, self.num_rows, segment.seed)
        self._playing[row] = recipe
        self._natives[row, : len(task.permutation)] = task.permutation
        self._action_mask[row] = np.arange(self.interface.num_actions) < len(task.permutation)

    def begin_episode(self, row: int, seed: int) -> None:
        """Draw a new layout, together with the other rows that begin; `seed` has no say in it."""
        del seed
        self._beginning.add(row)

    def step(self, actions: Array, rows: Array | None = None) -> Transition:
        """Step every pool once."""
        self._begin()
        played = self._rows if rows is None else rows
        native = np.zeros(self.num_rows, np.int64)
        native[played] = self._natives[played, actions]
        reward = np.zeros(self.num_rows, np.float32)
        ended = np.zeros((2, self.num_rows), bool)
        for pool, places in self._by_pool(played.tolist()):
            shown, given, *ends, info = pool.step(native[places], places)
            where = info["env_id"]
            reward[where], ended[:, where] = given, ends
            self._show(where, shown)
        unknown = np.full(len(played), np.nan, np.float32)
        return Transition(reward[played], unknown, *ended[:, played])

    def observation(self) -> Observation:
        """Copies of all channels and of the action mask."""
        self._begin()
        shown = {name: channel.copy() for name, channel in self._channels.items()}
        shown["action_mask"] = self._action_mask.copy()
        return shown

    def optimal_return(self, row: int) -> float:
        """Nobody has planned for the layout: the ceiling of all layouts counts."""
        del row
        return float("nan")

    def close(self) -> None:
        """Close every pool."""
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    def _begin(self) -> None:
        """Reset the places of the rows that begin an episode."""
        for pool, places in self._by_pool(sorted(self._beginning)):
            shown, info = pool.reset(places)
            self._show(info["env_id"], shown)
            if "mission" in self._channels:
                self._show_missions(info["env_id"], shown["mission"])
        self._beginning.clear()

    def _by_pool(self, rows: Sequence[int]) -> list[tuple[Any, Array]]:
        """The pools that rows play in, with their rows there."""
        places: dict[Recipe, list[int]] = {}
        for row in rows:
            recipe = self._playing[row]
            if recipe is None:
                raise RuntimeError(f"row {row}: no segment was begun")
            places.setdefault(recipe, []).append(row)
        return [(self._pools[key], np.array(found, np.int32)) for key, found in places.items()]

    def _show(self, rows: Array, shown: Observation) -> None:
        self._channels["grid"][rows] = shown["image"]
        self._channels["direction"][rows] = shown["direction"]

    def _show_missions(self, rows: Array, missions: Array) -> None:
        channel = self._channels["mission"]
        for row, letters in zip(rows.tolist(), missions, strict=True):
            text = letters.tobytes().partition(b"\0")[0].decode()
            channel[row] = mission_tokens(text, channel.shape[1])


def _pool(recipe: Recipe, num_rows: int, seed: int) -> Any:
    arguments = {_ARGUMENTS[name]: value for name, value in recipe.kwargs}
    pool = _package().make(
        recipe.id, env_type="gymnasium", num_envs=num_rows, num_threads=1, seed=seed, **arguments
    )
    pool.reset()  # a place must have been reset before it can be reset alone
    return pool


def _package() -> Any:
    try:
        return import_module("envpool")
    except ImportError as error:
        raise ValueError(
            f"backend: envpool cannot be imported ({error}); install it with the extra {EXTRA!r} "
            "of this package, or leave backend=auto"
        ) from error
