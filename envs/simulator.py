"""What plays the episodes: rows that each hold one running episode of one task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from .faults import EnvironmentFault
from .interface import Array, Interface, Observation
from .task import Segment

KINDS = (np.float32, np.float32, bool, bool)
"""Element types of the four arrays of a transition."""


@dataclass(frozen=True)
class Transition:
    """The outcome of one step, an entry per played row, in arrays of their own.

    `reward` and `expected_reward` are float32, the latter NaN where nobody knows it; `terminated`
    and `truncated` are bool. `faults` tells of the rows whose environment broke in this step: their
    episode cannot go on.
    """

    reward: Array
    expected_reward: Array
    terminated: Array
    truncated: Array
    faults: Mapping[int, EnvironmentFault] = field(default_factory=dict)


class Simulator(ABC):
    """`num_rows` independent episodes stepped together.

    Everything random in an episode comes from its seed, so the same actions replay it exactly:
    that is how a life is restored in the middle of an episode. One that does not `replays` begins
    it again.
    """

    replays = True

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
        """Play one action per row; all rows when `rows` is None.

        `actions` int64 `[len(rows)]`, or float32 `[len(rows), num_parts]` as `Interface` says.
        """

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

    def informed_return(self, row: int, episode: int) -> float:
        """Best expected return of a row's instance for who does not know what its task hides.

        `episode` counts those of the task; NaN where unknown.
        """
        del row, episode
        return float("nan")

    def close(self) -> None:
        """Release whatever the rows hold."""
