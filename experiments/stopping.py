"""Being asked to stop: a first signal ends the run at the next safe point, a second at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """A context in which SIGINT and SIGTERM are remembered instead of raised.

    They are let through where they were blocked: Ray blocks SIGINT in its workers, and whatever a
    worker starts inherits that.

    `unit` names what is brought to its end before stopping; `at_once` is called before a second
    signal ends the process.
    """

    def __init__(self, unit: str = "update", at_once: Callable[[], None] | None = None) -> None:
        self.unit, self.at_once = unit, at_once
        self.signal: int | None = None
        self._previous: dict[int, Any] = {}
        self._blocked: set[Any] = set()

    def __enter__(self) -> StopRequest:
        for number in SIGNALS:
            self._previous[number] = signal.signal(number, self._receive)
        self._blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._blocked)
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.signal is not None:
            if self.at_once is not None:
                self.at_once()
            os._exit(exit_code(number))  # asked twice: nothing more is written
        self.signal = number
        os.write(2, f"\nstopping after this {self.unit}; once more to quit at once\n".encode())


def exit_code(number: int) -> int:
    """The shell's convention for a process ended by a signal."""
    return 128 + number
