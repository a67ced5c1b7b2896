"""Lengths that nobody can count down: segments and lifetimes that end at a hidden random time.

length ~ uniform over low .. high, a function of (root seed, lifetime, segment) alone
"""

from __future__ import annotations

from dataclasses import dataclass

from .schedule import COUNT, LENGTH
from .seeding import generator
from .task import Length, LengthUnit


@dataclass(frozen=True)
class RandomLength:
    """A segment of `low` to `high` episodes or steps, drawn anew for each."""

    low: int
    high: int
    unit: LengthUnit = "steps"

    def __post_init__(self) -> None:
        _check("segment length", self.low, self.high)
        Length(self.low, self.unit)  # raises for an unknown unit

    def at(self, seed: int, lifetime: int, index: int) -> Length:
        """The length of segment `index` of a lifetime."""
        rng = generator(seed, LENGTH, lifetime, index)
        return Length(int(rng.integers(self.low, self.high + 1)), self.unit)


@dataclass(frozen=True)
class RandomCount:
    """A lifetime of `low` to `high` segments, drawn anew for each."""

    low: int
    high: int

    def __post_init__(self) -> None:
        _check("lifetime_segments", self.low, self.high)

    def at(self, seed: int, lifetime: int) -> int:
        """How many segments a lifetime has."""
        return int(generator(seed, COUNT, lifetime).integers(self.low, self.high + 1))


def _check(name: str, low: int, high: int) -> None:
    if not 1 <= low <= high:
        raise ValueError(f"{name}: expected 1 <= low <= high, got {low} and {high}")
