"""Runs members in processes of their own, one thread each, resuming what was cut.

A member is an ordinary `sojourn train`: what it learns does not depend on who started it. A signal
is handed on, so that every member saves before the study ends; a second one stops at once.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import RunError
from ..folder import read_json
from ..stopping import StopRequest
from .member import Member, Places, state_of, write_row

POLL_SECONDS = 0.2
TO_RUN = ("new", "started")


@dataclass(frozen=True)
class Outcome:
    """How a member ended; `error` is empty when it finished."""

    member: Member
    seconds: float
    error: str = ""


Say = Callable[[Outcome], None]


@dataclass(frozen=True)
class _Running:
    member: Member
    process: subprocess.Popen[bytes]
    start: float


def run_members(places: Places, members: Sequence[Member], jobs: int, say: Say) -> int | None:
    """Run them, at most `jobs` at a time; returns the signal that stopped it, if one did.

    Members that another process runs, or has finished by then, are left to it.
    """
    queue, running = list(members), list[_Running]()
    with StopRequest() as stop:
        try:
            while (queue or running) and stop.signal is None:
                while queue and len(running) < jobs:
                    member = queue.pop(0)
                    # Another study in this folder may have taken it since the queue was made.
                    if state_of(places, member) in TO_RUN:
                        running.append(_start(places, member))
                for one in [one for one in running if one.process.poll() is not None]:
                    running.remove(one)
                    say(_end(places, one))
                time.sleep(POLL_SECONDS)
        finally:
            _stop(running)
        return stop.signal


def _stop(running: Sequence[_Running]) -> None:
    """Ask the members to stop and wait for them; they save first."""
    for one in running:
        one.process.send_signal(signal.SIGINT)
    for one in running:
        one.process.wait()


def _start(places: Places, member: Member) -> _Running:
    state, run = state_of(places, member), places.run(member)
    if state == "started":
        words = [f"resume={run}"]
    else:
        shutil.rmtree(run, ignore_errors=True)  # a run that never reached its first checkpoint
        words = [*member.words, f"folder={run}"]
    run.parent.mkdir(parents=True, exist_ok=True)
    places.output(member).parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "sojourn.experiments.command", "train", *words]
    command += ["quiet=true", "num_threads=1"]
    with places.output(member).open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            start_new_session=True,  # the study alone answers to Ctrl-C
        )
    return _Running(member, process, time.monotonic())


def _end(places: Places, one: _Running) -> Outcome:
    seconds = time.monotonic() - one.start
    if one.process.returncode == 0:
        try:
            write_row(places, one.member)
            return Outcome(one.member, seconds)
        except RunError as error:
            return Outcome(one.member, seconds, str(error))
    return Outcome(one.member, seconds, _cause(places, one))


def _cause(places: Places, one: _Running) -> str:
    """The reason that the run wrote down, else the last line it printed."""
    status = places.run(one.member) / "status.json"
    message = str(read_json(status).get("message", "")) if status.exists() else ""
    lines = places.output(one.member).read_text(encoding="utf-8", errors="replace").split("\n")
    printed = [line for line in lines if line.strip()]
    last = printed[-1] if printed else "nothing was printed"
    return message or f"{last} (exit code {one.process.returncode})"
