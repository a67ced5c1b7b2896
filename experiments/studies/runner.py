"""Runs the members of a study through a launcher, and hands on a wish to stop.

On a signal every member saves before the study ends; a second one stops at once.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

from ..errors import UsageError, hint
from ..stopping import StopRequest
from .launch_joblib import joblib_members
from .launch_ray import ray_members
from .launch_submitit import submitit_members
from .member import Member, Places, state_of
from .play import POLL_SECONDS, TO_RUN, Outcome, Running, Work, end, kill_started, start

LOCAL = "local"
Say = Callable[[Outcome], None]


class Launcher(Protocol):
    """Runs members, at most `jobs` at a time, until the file `work.stop` exists.

    Yields how one ended, and None at least every second while it waits. Raises UsageError for
    options it does not know, before the first member is begun.
    """

    def __call__(
        self, work: Work, members: Sequence[Member], jobs: int, options: Mapping[str, str]
    ) -> Iterator[Outcome | None]: ...


def run_members(
    places: Places,
    members: Sequence[Member],
    jobs: int,
    say: Say,
    launcher: str = LOCAL,
    options: Mapping[str, str] | None = None,
) -> int | None:
    """Run them, at most `jobs` at a time; returns the signal that stopped it, if one did.

    Members that another process runs, or has finished by then, are left to it.
    """
    folder = places.folder.resolve()
    stop_file = folder / f".stop.{os.uname().nodename}.{os.getpid()}.{secrets.token_hex(4)}"
    work = Work(Places(folder), Path.cwd(), stop_file)
    outcomes = LAUNCHERS[launcher](work, members, jobs, options or {})
    stopping = StopRequest("update of every member", kill_started)
    with stopping as stop, closing(outcomes):  # type: ignore[type-var]
        try:
            for outcome in outcomes:
                if outcome is not None:
                    say(outcome)
                if stop.signal is not None:
                    stop_file.touch()
        finally:
            with suppress(OSError):
                stop_file.unlink(missing_ok=True)
        return stop.signal


def local_members(
    work: Work, members: Sequence[Member], jobs: int, options: Mapping[str, str]
) -> Iterator[Outcome | None]:
    """Processes of this machine."""
    for name in options:
        raise UsageError(f"launcher.{name}: launcher={LOCAL} has no options")
    queue, running = list(members), list[Running]()
    try:
        while (queue or running) and not work.stop.exists():
            while queue and len(running) < jobs:
                member = queue.pop(0)
                # Another study in this folder may have taken it since the queue was made.
                if state_of(work.places, member) in TO_RUN:
                    running.append(start(work, member))
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                yield end(work, one)
            yield None
            time.sleep(POLL_SECONDS)
    finally:
        for one in running:
            one.process.send_signal(signal.SIGINT)
        for one in running:
            one.process.wait()


LAUNCHERS: dict[str, Launcher] = {
    LOCAL: local_members,
    "joblib": joblib_members,
    "submitit": submitit_members,
    "ray": ray_members,
}


def check_launcher(name: str) -> None:
    """Raise UsageError naming the nearest for a launcher that does not exist."""
    if name not in LAUNCHERS:
        raise UsageError(f"launcher={name}: no such launcher; {hint(name, LAUNCHERS)}")
