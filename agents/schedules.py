"""Hyper-parameters that change with progress: the share of the run's steps lived, in [0, 1]."""

from __future__ import annotations

from typing import Protocol


class Schedule(Protocol):
    """A number as a function of progress."""

    def __call__(self, progress: float) -> float: ...


class Constant:
    """The same value throughout."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self, progress: float) -> float:
        del progress
        return self.value


class Linear:
    """From `start` to `end` in a straight line, reached at progress `until` and kept."""

    def __init__(self, start: float, end: float, until: float = 1.0) -> None:
        if not 0.0 < until <= 1.0:
            raise ValueError(f"schedule.until: expected a number in (0, 1], got {until}")
        self.start, self.end, self.until = start, end, until

    def __call__(self, progress: float) -> float:
        fraction = min(max(progress, 0.0) / self.until, 1.0)
        return self.start + fraction * (self.end - self.start)


class Horizon:
    """A discount whose horizon 1 / (1 - discount) grows in a straight line (horizon curriculum)."""

    def __init__(self, start: float, end: float, until: float = 1.0) -> None:
        for name, discount in (("start", start), ("end", end)):
            if not 0.0 <= discount < 1.0:
                raise ValueError(f"schedule.{name}: expected a number in [0, 1), got {discount}")
        self._horizon = Linear(1.0 / (1.0 - start), 1.0 / (1.0 - end), until)

    def __call__(self, progress: float) -> float:
        return 1.0 - 1.0 / self._horizon(progress)


def as_schedule(value: float | Schedule) -> Schedule:
    """A plain number is a constant schedule."""
    return value if callable(value) else Constant(float(value))
