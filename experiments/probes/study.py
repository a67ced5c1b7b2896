"""Runs the members of a study, side by side if wanted; what has been found is never lost.

A signal lets the running members end, a second one stops at once; the same command then goes on.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from ..stopping import StopRequest
from .member import Member, Result, read_result, run_member, use_one_thread, write_result

POLL_SECONDS = 0.5
DIED = "the process died, perhaps for want of memory"

Say = Callable[[Result], None]


def finished(folder: Path, members: Sequence[Member]) -> dict[Member, Result]:
    """Results on disk; failed members are left out, they are tried again."""
    found = {member: read_result(folder, member) for member in members}
    return {member: result for member, result in found.items() if result and not result.error}


def run_study(folder: Path, members: Sequence[Member], jobs: int, say: Say) -> int | None:
    """Run members and write their row files; returns the signal that stopped it, if one did."""
    with StopRequest("member") as stop:
        results = _in_turn(members, stop) if jobs == 1 else _side_by_side(members, jobs, stop)
        for result in results:
            write_result(folder, result)
            say(result)
        return stop.signal


def _in_turn(members: Sequence[Member], stop: StopRequest) -> Iterator[Result]:
    use_one_thread()
    for member in members:
        if stop.signal is not None:
            return
        yield run_member(member)


def _side_by_side(members: Sequence[Member], jobs: int, stop: StopRequest) -> Iterator[Result]:
    """A process that dies takes its pool along; what it left undone is then tried one by one."""
    undone = yield from _in_a_pool(members, jobs, stop)
    for member in undone:
        if stop.signal is not None:
            return
        if (yield from _in_a_pool([member], 1, stop)):
            yield Result(member, error=DIED)


def _in_a_pool(
    members: Sequence[Member], jobs: int, stop: StopRequest
) -> Generator[Result, None, list[Member]]:
    """Returns the members that were running or waiting when a process died."""
    undone: list[Member] = []
    context = get_context("spawn")  # forked threads of torch may hang
    with ProcessPoolExecutor(jobs, context, _begin_work, (os.getpid(),)) as pool:
        waiting: dict[Future[Result], Member] = {}
        queue = list(members)
        while queue or waiting:
            if stop.signal is not None:
                queue.clear()
            # Only what runs is handed out, so that a stop leaves nothing in the pool's own queue.
            while queue and len(waiting) < jobs and not undone:
                member = queue.pop(0)
                waiting[pool.submit(run_member, member)] = member
            for future in wait(waiting, POLL_SECONDS, FIRST_COMPLETED).done:
                member = waiting.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    undone.append(member)
            if undone and not waiting:
                return [*undone, *queue]
    return undone


def _begin_work(parent: int) -> None:
    """The parent alone answers to Ctrl-C; a worker whose parent is gone ends itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_one_thread()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
