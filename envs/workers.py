"""How many processes play a crowd's environments, and what is said when one of them fails.

Every worker process has a simulator of its own for a block of rows, so that slow environments use
all cores; what is lived is the same, bit for bit, as without workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .choices import check_choice

Start = Literal["spawn", "fork", "forkserver"]


class WorkerFailed(RuntimeError):
    """A worker process died, hung or raised; the message names worker, task, row and seed."""


@dataclass(frozen=True)
class Workers:
    """`count` processes (0: environments are stepped in the run's own), begun by `start`.

    `spawn` and `forkserver` begin with a fresh interpreter, which imports again what tasks name;
    `fork` copies the running one, threads left out. One that takes longer than `timeout` seconds
    for an order (a step of all its rows, a reset) counts as hung. Raises ValueError for an invalid
    argument.
    """

    count: int
    start: Start = "spawn"
    timeout: float = 120.0

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"workers: expected at least 0, got {self.count}")
        check_choice("workers.start", self.start, Start)
        if not self.timeout > 0:
            raise ValueError(f"workers.timeout: expected seconds > 0, got {self.timeout}")
