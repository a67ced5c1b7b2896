"""A never-ending stream of tasks: segment k of lifetime b is a function of (root seed, b, k).

A stream holds no position: whoever plays it keeps the cursor (`Crowd`).
"""

from __future__ import annotations

from functools import cached_property, reduce
from typing import Literal

from .gymnasium_simulator import GymnasiumSimulator
from .interface import Interface
from .schedule import Schedule
from .seeding import checked_seed
from .simulator import Simulator
from .task import Length, Segment

Announcement = Literal["hidden", "announced"]
Backend = Literal["auto", "gymnasium"]


class Stream:
    """Tasks in the order of a `schedule`, each kept for `length`.

    `lifetime_segments` ends a lifetime after so many segments (None: it never ends). `announce`
    says whether the agent is told of a task switch through the input `task_start`. `backend` is
    `auto` (a vectorised simulator where all families have the same one) or `gymnasium` (always
    step environments). Raises ValueError for an invalid argument.
    """

    def __init__(
        self,
        schedule: Schedule,
        length: Length,
        seed: int,
        lifetime_segments: int | None = None,
        announce: Announcement = "hidden",
        backend: Backend = "auto",
    ) -> None:
        if lifetime_segments is not None and lifetime_segments < 1:
            raise ValueError(f"lifetime_segments: expected at least 1, got {lifetime_segments}")
        if announce not in ("hidden", "announced"):
            raise ValueError(f"announce: expected 'hidden' or 'announced', got {announce!r}")
        if backend not in ("auto", "gymnasium"):
            raise ValueError(f"backend: expected 'auto' or 'gymnasium', got {backend!r}")
        self.schedule = schedule
        self.length = length
        self.seed = checked_seed(seed)
        self.lifetime_segments = lifetime_segments
        self.announce = announce
        self.backend = backend

    @cached_property
    def interface(self) -> Interface:
        """The contract that all tasks of the stream share."""
        return reduce(Interface.union, [family.interface for family in self.schedule.families])

    def segment(self, lifetime: int, index: int) -> Segment:
        """Segment `index` of a lifetime; needs none of the earlier ones."""
        task, seed, task_index = self.schedule.assign(self.seed, lifetime, index)
        return Segment(task, seed, self.length, task_index)

    def simulator(self, num_rows: int) -> Simulator:
        """What can play `num_rows` lifetimes of this stream side by side."""
        types = {family.simulator_type() for family in self.schedule.families}
        if self.backend == "auto" and len(types) == 1:
            vectorised = types.pop()
            if vectorised is not None:
                return vectorised(self.interface, num_rows)
        return GymnasiumSimulator(self.interface, num_rows)
