"""Schedules that move: by list, in shuffled rounds, with blurred boundaries, along a path, nested.

    Curriculum   segment k plays the stage that k falls into; the last one stays, or all come again
    Shuffled     every round plays the whole pool in an order of its own
    Blurry       entry floor((k + 1/2 + w (u_k - 1/2)) / n) of the pool, u_k ~ U(0, 1): within w / 2
                 segments of a boundary the next task comes with a chance that rises linearly
    Drifting     segment k plays the point k of a path through the parameters of one family
    Nested       n segments of one schedule, n of the next ..., each going on where it stopped

k counts segments. All are functions of (root seed, lifetime, k) alone.
Source of blurred boundaries: Aljundi et al. 2019, Task-free continual learning, arXiv:1812.03596.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

import numpy as np

from .choices import check_choice
from .schedule import BLUR, FRESH, NESTED, ORDER, PATH, Assignment, Pooled, PoolScope, Schedule
from .seeding import draw_seed, generator
from .task import Family, Task

Then = Literal["last", "again"]


class Curriculum(Schedule):
    """Family j for `stays[j]` segments, one after another, a new task in each of them.

    `then` says what follows the list: its `last` family for ever, or all of it `again`.
    """

    def __init__(
        self,
        families: Sequence[Family],
        stays: Sequence[int],
        then: Then = "last",
    ) -> None:
        super().__init__(families, None)
        if len(stays) != len(self.families) or min(stays, default=0) < 1:
            raise ValueError(
                f"stays: expected {len(self.families)} numbers >= 1, got {list(stays)}"
            )
        check_choice("then", then, Then)
        self.stays = tuple(stays)
        self.then = then
        self._ends = np.array(list(accumulate(stays)))

    def assign(self, seed: int, lifetime: int, index: int) -> Assignment:
        """A task drawn for this segment alone, from the family of its stage."""
        total = int(self._ends[-1])
        place = index % total if self.then == "again" else min(index, total - 1)
        stage = int(np.searchsorted(self._ends, place, side="right"))
        task, instance_seed = self.draw(generator(seed, FRESH, lifetime, index), stage)
        return Assignment(task, instance_seed, index)


class Shuffled(Pooled):
    """The pool in rounds: every task once per round, each round in an order of its own."""

    def assign(self, seed: int, lifetime: int, index: int) -> Assignment:
        """The entry whose turn it is in the round of this segment."""
        turn, place = divmod(index, self.num_tasks)
        order = generator(seed, ORDER, lifetime, turn).permutation(self.num_tasks)
        return self.entry(seed, lifetime, int(order[place]))


class Blurry(Pooled):
    """The pool in order, `stay` segments each, mixed over `width` segments around a boundary.

    A width of 0 is a recurring pool whose tasks stay; the first task is not mixed with the last.
    Raises ValueError for a width that is not within 0 and `stay`.
    """

    def __init__(
        self,
        families: Sequence[Family],
        stay: int,
        width: int,
        num_tasks: int | None = None,
        weights: Sequence[float] | None = None,
        pool: PoolScope = "lifetime",
    ) -> None:
        super().__init__(families, num_tasks, weights, pool)
        if stay < 1:
            raise ValueError(f"stay: expected at least 1, got {stay}")
        if not 0 <= width <= stay:
            nearest = min(max(width, 0), stay)
            raise ValueError(f"width: expected 0 to {stay}, got {width}; nearest is {nearest}")
        self.stay = stay
        self.width = width

    def assign(self, seed: int, lifetime: int, index: int) -> Assignment:
        """The entry on the side of the boundary that this segment falls on."""
        shift = self.width * (generator(seed, BLUR, lifetime, index).random() - 0.5)
        visit = max(int((index + 0.5 + shift) // self.stay), 0)
        return self.entry(seed, lifetime, visit % self.num_tasks)


class DriftingFamily(Family):
    """A family whose tasks lie on paths: `time` moves along the path that `rng` draws."""

    @abstractmethod
    def draw_at(self, rng: np.random.Generator, time: int) -> Task:
        """The task at a time 0, 1, 2, ... of the path; closed form, no earlier time is needed."""

    def draw(self, rng: np.random.Generator) -> Task:
        """The first task of a path."""
        return self.draw_at(rng, 0)


class Drifting(Schedule):
    """One family whose parameters move a little from segment to segment, on a path per lifetime."""

    def __init__(self, family: DriftingFamily) -> None:
        if not isinstance(family, DriftingFamily):
            raise ValueError(f"family: expected a DriftingFamily, got {family!r}")
        super().__init__([family], None)
        self._family = family

    def assign(self, seed: int, lifetime: int, index: int) -> Assignment:
        """Point `index` of the lifetime's path."""
        task = self._family.draw_at(generator(seed, PATH, lifetime), index)
        instance_seed = draw_seed(generator(seed, FRESH, lifetime, index))
        return Assignment(task, instance_seed, index)


class Nested(Schedule):
    """A stream of streams: `stay` segments of every schedule in turn."""

    def __init__(self, schedules: Sequence[Schedule], stay: int) -> None:
        for schedule in schedules:
            if not isinstance(schedule, Schedule):
                raise ValueError(f"schedules: expected Schedule objects, got {schedule!r}")
            if schedule.follows_agent:
                raise ValueError(f"schedules: {type(schedule).__name__} cannot be nested")
        if stay < 1:
            raise ValueError(f"stay: expected at least 1, got {stay}")
        super().__init__([family for inner in schedules for family in inner.families], None)
        self.schedules = tuple(schedules)
        self.stay = stay

    def assign(self, seed: int, lifetime: int, index: int) -> Assignment:
        """The next segment of the schedule whose turn it is; no two share a task index."""
        visit, place = divmod(index, self.stay)
        turn, which = divmod(visit, len(self.schedules))
        inner_seed = draw_seed(generator(seed, NESTED, which))
        inner = self.schedules[which].assign(inner_seed, lifetime, turn * self.stay + place)
        return inner._replace(task_index=inner.task_index * len(self.schedules) + which)
