"""A never-ending stream of tasks: segment k of lifetime b is a function of (root seed, b, k).

A stream holds no position: whoever plays it keeps the cursor (`Crowd`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial, reduce
from importlib import import_module
from types import ModuleType
from typing import Literal

from .choices import check_choice
from .faults import OnError
from .gymnasium_simulator import GymnasiumSimulator
from .interface import Interface
from .lengths import RandomCount, RandomLength
from .schedule import Schedule
from .seeding import checked_seed
from .simulator import Simulator
from .task import Length, Segment
from .worker_simulator import WorkerSimulator
from .workers import Workers

Announcement = Literal["hidden", "announced"]
Backend = Literal["auto", "gymnasium", "envpool"]


class Stream:
    """Tasks in the order of a `schedule`, each kept for its own length, else for `length`.

    `length` may be random, and so hidden. `lifetime_segments` ends a lifetime after so many
    segments, a number of its own for each where that is random (None: it never ends). `announce`
    says whether the agent is told of a task switch through the input `task_start`. `backend` is
    `auto` (a vectorised simulator where all families have the same one), `gymnasium` (always step
    environments, the same bit for bit) or `envpool` (MiniGrid in C++, other layouts). `on_error`
    says what happens when an environment breaks: the error stops the run (`raise`), the episode
    ends and the next begins (`skip_episode`), or so does the segment (`replace_task`). `workers`
    processes step the environments side by side, or the run itself does (0). Raises ValueError for
    an invalid argument.
    """

    def __init__(
        self,
        schedule: Schedule,
        length: Length | RandomLength,
        seed: int,
        lifetime_segments: int | RandomCount | None = None,
        announce: Announcement = "hidden",
        backend: Backend = "auto",
        on_error: OnError = "raise",
        workers: int | Workers = 0,
    ) -> None:
        if isinstance(lifetime_segments, int) and lifetime_segments < 1:
            raise ValueError(f"lifetime_segments: expected at least 1, got {lifetime_segments}")
        check_choice("announce", announce, Announcement)
        check_choice("backend", backend, Backend)
        check_choice("on_error", on_error, OnError)
        self.workers = workers if isinstance(workers, Workers) else Workers(workers)
        if backend == "envpool":
            _pooled().check_pooled(schedule.families)
            if self.workers.count:
                raise ValueError(
                    f"workers: expected 0 with backend=envpool, got {self.workers.count}"
                )
        self.schedule = schedule
        self.length = length
        self.seed = checked_seed(seed)
        self.lifetime_segments = lifetime_segments
        self.announce = announce
        self.backend = backend
        self.on_error: OnError = on_error

    @cached_property
    def interface(self) -> Interface:
        """The contract that all tasks of the stream share."""
        return reduce(Interface.union, [family.interface for family in self.schedule.families])

    def segment(self, lifetime: int, index: int) -> Segment:
        """Segment `index` of a lifetime; needs none of the earlier ones."""
        task, seed, task_index = self.schedule.assign(self.seed, lifetime, index)
        length = task.length or self.length
        if isinstance(length, RandomLength):
            length = length.at(self.seed, lifetime, index)
        return Segment(task, seed, length, task_index)

    def num_segments(self, lifetime: int) -> int | None:
        """How many segments a lifetime has; None where it never ends."""
        if isinstance(self.lifetime_segments, RandomCount):
            return self.lifetime_segments.at(self.seed, lifetime)
        return self.lifetime_segments

    def simulator(self, num_rows: int) -> Simulator:
        """What can play `num_rows` lifetimes of this stream side by side."""
        make = self._maker(num_rows)
        if self.workers.count == 0:
            return make()
        return WorkerSimulator(self.interface, num_rows, make, self.workers)

    def _maker(self, num_rows: int) -> Callable[[], Simulator]:
        """What makes a simulator in whichever process calls it."""
        if self.backend == "envpool":
            return partial(_pooled().EnvPoolSimulator, self.interface, num_rows)
        types = {family.simulator_type() for family in self.schedule.families}
        if self.backend == "auto" and len(types) == 1:
            vectorised = types.pop()
            if vectorised is not None:
                return partial(vectorised, self.interface, num_rows)
        return partial(GymnasiumSimulator, self.interface, num_rows, self.on_error)


def _pooled() -> ModuleType:
    # Imported when used: the room of grids stands on streams.
    return import_module(".minigrid.envpool_simulator", __package__)
