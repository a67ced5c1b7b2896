"""What a person sees while a run lives: a bar on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

SECONDS_BETWEEN_LINES = 10.0


class Display(ABC):
    """Shows text that stays and a line about the present that is replaced."""

    @abstractmethod
    def say(self, content: RenderableType) -> None:
        """Print something that stays."""

    @abstractmethod
    def update(self, step: int, line: str) -> None:
        """Show how far the run is, in environment steps, and `line` about its present state."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class Quiet(Display):
    """Shows nothing."""

    def say(self, content: RenderableType) -> None:
        del content

    def update(self, step: int, line: str) -> None:
        del step, line


class Lines(Display):
    """Plain text for files and pipes: a line at most every ten seconds."""

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.console = plain_console()
        self._last = time.monotonic()

    def say(self, content: RenderableType) -> None:
        self.console.print(content, markup=False, highlight=False)

    def update(self, step: int, line: str) -> None:
        now = time.monotonic()
        if now - self._last < SECONDS_BETWEEN_LINES and step != self.total:
            return
        self._last = now
        of_total = f" of {self.total:,}" if self.total is not None else ""
        self.console.print(f"step {step:,}{of_total}  {line}", markup=False, highlight=False)


class Bar(Display):
    """A progress bar with time left; an endless run shows the time elapsed only."""

    def __init__(self, total: int | None, start: int) -> None:
        left = [TaskProgressColumn(), TimeRemainingColumn()] if total is not None else []
        self._progress = Progress(
            BarColumn(bar_width=20),
            *left,
            TimeElapsedColumn(),
            TextColumn("{task.completed:,.0f} steps  {task.description}", markup=False),
            console=Console(),
        )
        self._task = self._progress.add_task("", total=total, completed=start)
        self._progress.start()

    def say(self, content: RenderableType) -> None:
        self._progress.console.print(content, markup=False, highlight=False)

    def update(self, step: int, line: str) -> None:
        self._progress.update(self._task, completed=step, description=line)

    def close(self) -> None:
        self._progress.stop()


def choose_display(quiet: bool, total: int | None, start: int) -> Display:
    """The display that fits the place where standard output goes."""
    if quiet:
        return Quiet()
    return Bar(total, start) if sys.stdout.isatty() else Lines(total)


def plain_console() -> Console:
    """A console as wide as the terminal; wide enough for tables where there is none."""
    return Console() if sys.stdout.isatty() else Console(width=160, soft_wrap=True)
