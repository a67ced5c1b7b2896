"""Which task a lifetime meets next: z_k as a function of (root seed, lifetime b, index k) alone.

Families take turns when no weights are given (the j-th task comes from family j mod F), otherwise
each task draws its family by weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from .choices import check_choice
from .episodes import EpisodeRecord
from .interface import Array
from .seeding import draw_seed, generator
from .task import Family, Task

PoolScope = Literal["lifetime", "stream"]

# First numbers of the paths of random draws: pools and orders never share a generator.
POOL, ORDER, FRESH = 0, 1, 2
BLUR, NESTED, PATH, LENGTH, COUNT, CHOICE = 3, 4, 5, 6, 7, 8


class Assignment(NamedTuple):
    """A task with its instance seed; `task_index` is equal where a lifetime returns to a task."""

    task: Task
    seed: int
    task_index: int


class Schedule(ABC):
    """An endless order of tasks for every lifetime.

    Where it `follows_agent` the order depends on what a run `observe`s: two agents under one seed
    live different lives, so that their runs cannot be paired.
    """

    follows_agent = False

    def __init__(self, families: Sequence[Family], weights: Sequence[float] | None) -> None:
        self.families = tuple(families)
        if not self.families:
            raise ValueError("families: expected at least one, got none")
        for family in self.families:
            if not isinstance(family, Family):
                raise ValueError(f"families: expected Family objects, got {family!r}")
        self._shares = None if weights is None else _shares(weights, len(self.families))

    @abstractmethod
    def assign(self, seed: int, lifetime: int, index: int) -> Assignment:
        """The task of segment `index` of a lifetime, and its instance seed."""

    def observe(self, episodes: Iterable[EpisodeRecord]) -> None:
        """Be told of the episodes that a training run finished; most schedules do not care."""

    def state_dict(self) -> dict[str, Any]:
        """What depends on the episodes that were observed."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""

    def draw(self, rng: np.random.Generator, number: int) -> tuple[Task, int]:
        """The `number`-th task and its instance seed, all randomness from `rng`."""
        if self._shares is None:
            family = self.families[number % len(self.families)]
        else:
            family = self.families[int(rng.choice(len(self.families), p=self._shares))]
        return family.draw(rng), draw_seed(rng)


class Pooled(Schedule):
    """Segments that return to a pool of `num_tasks` task instances (default: one per family).

    The pool belongs to the lifetime, or to the whole `stream`, whose lifetimes then share it.
    """

    def __init__(
        self,
        families: Sequence[Family],
        num_tasks: int | None = None,
        weights: Sequence[float] | None = None,
        pool: PoolScope = "lifetime",
    ) -> None:
        super().__init__(families, weights)
        self.num_tasks = len(self.families) if num_tasks is None else num_tasks
        if self.num_tasks < 1:
            raise ValueError(f"num_tasks: expected at least 1, got {num_tasks}")
        check_choice("pool", pool, PoolScope)
        self.pool = pool

    def entry(self, seed: int, lifetime: int, entry: int) -> Assignment:
        """Task `entry` of the pool with its instance."""
        owner = 0 if self.pool == "stream" else lifetime + 1
        task, instance_seed = self.draw(generator(seed, POOL, owner, entry), entry)
        return Assignment(task, instance_seed, entry)


class Recurring(Pooled):
    """The pool in order, over and over: A B C A B C ..., the same instances at every return."""

    def assign(self, seed: int, lifetime: int, index: int) -> Assignment:
        """Entry `index` mod `num_tasks` of the pool."""
        return self.entry(seed, lifetime, index % self.num_tasks)


class Independent(Pooled):
    """Independent uniform draws from the pool: returns come at unpredictable times."""

    def assign(self, seed: int, lifetime: int, index: int) -> Assignment:
        """A uniformly drawn entry of the pool."""
        entry = int(generator(seed, ORDER, lifetime, index).integers(self.num_tasks))
        return self.entry(seed, lifetime, entry)


class NeverRepeating(Schedule):
    """A new task and a new instance in every segment."""

    def __init__(self, families: Sequence[Family], weights: Sequence[float] | None = None) -> None:
        super().__init__(families, weights)

    def assign(self, seed: int, lifetime: int, index: int) -> Assignment:
        """A task drawn for this segment alone."""
        task, instance_seed = self.draw(generator(seed, FRESH, lifetime, index), index)
        return Assignment(task, instance_seed, index)


def _shares(weights: Sequence[float], num_families: int) -> Array:
    shares = np.array([float(weight) for weight in weights])
    if len(shares) != num_families or (shares < 0).any() or shares.sum() <= 0:
        raise ValueError(
            f"weights: expected {num_families} numbers >= 0 with a positive sum, "
            f"got {list(weights)}"
        )
    return np.asarray(shares / shares.sum())
