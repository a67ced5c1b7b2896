"""How fast updates go, and what that makes of those that are left.

seconds = updates left x mean seconds of the updates measured; range: x their fastest and slowest
"""

from __future__ import annotations

from dataclasses import dataclass, field

NUM_MEASURED = 5  # updates after the first, which also pays for what is made once


@dataclass(frozen=True)
class Duration:
    """Seconds: expected, and at the speed of the fastest and of the slowest update measured."""

    mean: float
    low: float
    high: float

    def __add__(self, other: Duration) -> Duration:
        return Duration(self.mean + other.mean, self.low + other.low, self.high + other.high)

    def __mul__(self, times: float) -> Duration:
        return Duration(self.mean * times, self.low * times, self.high * times)

    def __str__(self) -> str:
        return f"{clock(self.mean)} ({clock(self.low)} to {clock(self.high)})"


@dataclass
class Pace:
    """Collects the seconds of a process's first updates."""

    seconds: list[float] = field(default_factory=list)
    _skipped: bool = False

    def add(self, seconds: float) -> bool:
        """One more update; True when the last one that is needed has been measured."""
        if not self._skipped:
            self._skipped = True
            return False
        if self.measured:
            return False
        self.seconds.append(seconds)
        return self.measured

    @property
    def measured(self) -> bool:
        """Whether enough updates have been seen."""
        return len(self.seconds) >= NUM_MEASURED

    def per_update(self) -> Duration:
        """Raises ValueError before the second update."""
        if not self.seconds:
            raise ValueError("pace: no update has been measured yet")
        mean = sum(self.seconds) / len(self.seconds)
        return Duration(mean, min(self.seconds), max(self.seconds))


def clock(seconds: float) -> str:
    """Seconds in words: 8 s, 12 min, 3.5 h, 2.1 days."""
    for unit, size, most in (("s", 1, 100), ("min", 60, 100), ("h", 3600, 48)):
        if seconds < most * size:
            value = seconds / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds / 86400:.1f} days"
