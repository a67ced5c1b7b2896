"""A worker process as seen from the run: orders go out, answers come back in time or never."""

from __future__ import annotations

import atexit
import multiprocessing
import multiprocessing.util  # its hook at exit must be registered before ours, to run after it
import os
import pickle
import signal
import time
from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector.utils import CloudpickleWrapper

from .interface import Array
from .worker_process import Answer, serve
from .workers import WorkerFailed, Workers

PATIENCE = 2.0
"""Seconds that workers have to close their environments before they are killed."""
IMPORTED = ("gymnasium.", "minigrid.", "sojourn.")
"""Packages that register their ids in every worker by being imported."""


class Worker:
    """One process, for `rows` of a crowd; raises WorkerFailed where it does not answer."""

    def __init__(self, number: int, rows: Array, workers: Workers) -> None:
        context = multiprocessing.get_context(workers.start)
        self.number, self.rows = number, rows
        self._timeout = workers.timeout
        self._pipe, theirs = context.Pipe()
        self._playing = context.RawArray("q", [-1])
        self._process = context.Process(  # type: ignore[attr-defined]
            target=serve, args=(theirs, self._playing), name=f"sojourn-worker-{number}", daemon=True
        )
        self._process.start()
        theirs.close()
        self._owner = os.getpid()
        _LIVING.add(self)

    @property
    def playing(self) -> int:
        """The row whose environment is being stepped; -1 where unknown."""
        return int(self._playing[0])

    def order(self, method: str, *arguments: Any) -> None:
        """Send an order; its `answer` must be fetched before the next one."""
        self._playing[0] = -1
        try:
            parcel = pickle.dumps((method, arguments))
        except Exception as error:
            raise WorkerFailed(f"cannot be sent to a worker ({error})") from error
        try:
            self._pipe.send_bytes(parcel)
        except OSError as error:
            raise WorkerFailed(self._death()) from error

    def answer(self) -> Answer:
        """What the order came to."""
        try:
            if not self._pipe.poll(self._timeout):
                raise WorkerFailed(f"gave no answer for {self._timeout:g} seconds")
            answer: Answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise WorkerFailed(self._death()) from error
        return answer

    def ask_to_stop(self) -> None:
        """Let the process close its environments and end."""
        if os.getpid() == self._owner:
            with suppress(OSError):
                self._pipe.send_bytes(pickle.dumps(None))

    def stop(self, patience: float) -> None:
        """Wait so many seconds for the process to end, then kill it."""
        if os.getpid() != self._owner or self not in _LIVING:
            return
        self._process.join(max(0.0, patience))
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        self._pipe.close()
        self._process.close()
        _LIVING.discard(self)

    def _death(self) -> str:
        self._process.join(PATIENCE)
        code = self._process.exitcode
        if code is None:
            return "closed its pipe"
        return (
            f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        )


def stop_all(workers: list[Worker], patience: float = PATIENCE) -> None:
    """End processes within `patience` seconds; those that have ended are left alone."""
    deadline = time.monotonic() + patience
    for worker in workers:
        worker.ask_to_stop()
    for worker in workers:
        worker.stop(deadline - time.monotonic())


def parcel(content: Any) -> CloudpickleWrapper:
    """`content` able to travel, with the functions of a script or a test; it arrives as `fn`."""
    return CloudpickleWrapper(content)


def registered_here() -> list[EnvSpec]:
    """Ids that a worker does not register by its imports."""
    specs = gymnasium.registry.values()
    return [spec for spec in specs if not str(spec.entry_point).startswith(IMPORTED)]


def blocks(num_rows: int, count: int) -> list[Array]:
    """Rows in at most `count` blocks of nearly equal size."""
    return [block for block in np.array_split(np.arange(num_rows), count) if len(block)]


_LIVING: set[Worker] = set()


@atexit.register
def _stop_living() -> None:
    stop_all(list(_LIVING), patience=0.0)
