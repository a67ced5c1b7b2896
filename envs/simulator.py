"""What plays the episodes: rows that each hold one running episode of one task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from .interface import Array, Interface, Observation
from .task import Segment


@dataclass(frozen=True)
class Transition:
    """The outcome of one step, an entry per played row, in arrays of their own.

    `reward` and `expected_reward` are float32, the latter NaN where nobody knows it; `terminated`
    and `truncated` are bool.
    """

    reward: Array
    expected_reward: Array
    terminated: Array
    truncated: Array


class Simulator(ABC):
    """`num_rows` independent episodes stepped together.

    Everything random in an episode comes from its seed, so the same actions replay it exactly:
    that is how a life is restored in the middle of an episode.
    """

    interface: Interface
    num_rows: int

    @abstractmethod
    def __init__(self, interface: Interface, num_rows: int) -> None: ...

    @abstractmethod
    def begin_segment(self, row: int, segment: Segment) -> None:
        """Put the segment's task into a row; an episode must begin before the row is stepped."""

    @abstractmethod
    def begin_episode(self, row: int, seed: int) -> None:
        """Start an episode; fixed instances get the same seed every time."""

    @abstractmethod
    def step(self, actions: Array, rows: Array | None = None) -> Transition:
        """Play one action per row (int64 `[len(rows)]`; all rows when `rows` is None)."""

    @abstractmethod
    def observation(self) -> Observation:
        """Fresh copies of the channels and the `action_mask` as every row now sees them."""

    @abstractmethod
    def optimal_return(self, row: int) -> float:
        """Best return of the instance a row just began; NaN where unknown."""

    def floor_return(self, row: int) -> float:
        """Random policy's return on the instance a row just began; NaN where unknown."""
        del row
        return float("nan")

    def close(self) -> None:
        """Release whatever the rows hold."""
