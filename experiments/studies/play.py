"""One member in a process of its own, wherever that is: the unit that every launcher hands out.

A member is an ordinary `sojourn train`: what it learns does not depend on who started it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ..errors import RunError
from ..folder import read_json
from ..stopping import StopRequest
from .member import Member, Places, state_of, write_row

POLL_SECONDS = 0.2
TO_RUN = ("new", "started")
# What this process has started; killing one that has ended is no fault.
_started: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Outcome:
    """How a member ended; `error` is empty when it finished."""

    member: Member
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class Work:
    """Where members run from and write to, on every machine alike; the file `stop` asks for the end
    of all that runs, as no signal reaches other machines.
    """

    places: Places
    directory: Path
    stop: Path


@dataclass(frozen=True)
class Running:
    """A member's process, and when it was started."""

    member: Member
    process: subprocess.Popen[bytes]
    begin: float


def play(work: Work, member: Member) -> Outcome | None:
    """Run a member to its end; None where it was stopped, or is left to another process.

    A signal, which is what a cluster sends before it takes a machine back, makes the member save.
    """
    if work.stop.exists() or state_of(work.places, member) not in TO_RUN:
        return None
    with StopRequest(at_once=kill_started) as stop:
        running = start(work, member)
        told = False
        while running.process.poll() is None:
            if not told and (stop.signal is not None or work.stop.exists()):
                running.process.send_signal(signal.SIGINT)
                told = True
            time.sleep(POLL_SECONDS)
    return None if told and running.process.returncode != 0 else end(work, running)


def start(work: Work, member: Member) -> Running:
    """Begin a member's process, or let it go on where it was cut."""
    places = work.places
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
            cwd=work.directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            start_new_session=True,  # the study alone answers to Ctrl-C
        )
    _started.append(process)
    return Running(member, process, time.monotonic())


def kill_started() -> None:
    """End what this process has started at once: with it nobody would be left to ask them."""
    for process in _started:
        process.kill()


def end(work: Work, one: Running) -> Outcome:
    """What became of a process that has ended; a finished member leaves its row."""
    seconds = time.monotonic() - one.begin
    if one.process.returncode == 0:
        try:
            write_row(work.places, one.member)
            return Outcome(one.member, seconds)
        except RunError as error:
            return Outcome(one.member, seconds, str(error))
    return Outcome(one.member, seconds, _cause(work.places, one))


def _cause(places: Places, one: Running) -> str:
    """The reason that the run wrote down, else the last line it printed."""
    status = places.run(one.member) / "status.json"
    message = str(read_json(status).get("message", "")) if status.exists() else ""
    lines = places.output(one.member).read_text(encoding="utf-8", errors="replace").split("\n")
    printed = [line for line in lines if line.strip()]
    last = printed[-1] if printed else "nothing was printed"
    return message or f"{last} (exit code {one.process.returncode})"
