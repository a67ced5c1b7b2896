"""What launchers on other libraries share: a missing package is said, jobs are asked in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from ..errors import UsageError, hint
from .member import Member
from .play import POLL_SECONDS, Outcome, Work


class Job(Protocol):
    """A member that was handed out."""

    def done(self) -> bool:
        """Whether it has ended, one way or another."""

    def result(self) -> Outcome | None:
        """What `play` returned; raises what went wrong on the way."""


def library(name: str, launcher: str) -> Any:
    """The package; raises UsageError that says how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(
            f"launcher={launcher}: needs the package {name} (pip install 'sojourn[{launcher}]')"
        ) from error


def check_options(options: Mapping[str, str], known: Sequence[str], launcher: str) -> None:
    """Raise UsageError for the first `launcher.KEY` that is not known."""
    for name in options:
        if name not in known:
            raise UsageError(
                f"launcher.{name}: no such option of launcher={launcher}; {hint(name, known)}"
            )


def in_turn(
    work: Work, members: Sequence[Member], jobs: int, submit: Callable[[Member], Job]
) -> Iterator[Outcome | None]:
    """Hand out members, at most `jobs` at a time, until all have ended; after a stop no new one."""
    queue = list(members)
    running: list[tuple[Member, Job, float]] = []
    while running or (queue and not work.stop.exists()):
        while queue and len(running) < jobs and not work.stop.exists():
            member = queue.pop(0)
            running.append((member, submit(member), time.monotonic()))
        for one in [one for one in running if one[1].done()]:
            running.remove(one)
            yield outcome_of(one[0], one[1].result, one[2])
        yield None
        time.sleep(POLL_SECONDS)


def outcome_of(
    member: Member, result: Callable[[], Outcome | None], begin: float
) -> Outcome | None:
    """What a member's job returned; where the job itself broke, that."""
    try:
        return result()
    except Exception as error:  # a lost machine or a timeout, told by the library's own classes
        lines = str(error).strip().splitlines() or [""]
        message = f"{type(error).__name__}: {lines[-1]}"
        return Outcome(member, time.monotonic() - begin, message)
