"""Memories as they were when tasks ended, kept while a life goes on.

(lifetime b, age k) -> S after segments 0 .. k - 1 of lifetime b
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from tensordict import TensorDict

from .moment import Moment
from .treatment import Treatment


class Snapshots:
    """Memories by (lifetime, age), filled by `Watch`.

    Holds `state_bytes` for every segment lived: not for a memory that grows with every token.
    """

    def __init__(self) -> None:
        self._chunks: list[TensorDict] = []
        self._places: dict[tuple[int, int], tuple[int, int]] = {}

    def __contains__(self, key: tuple[int, int]) -> bool:
        return key in self._places

    def add(self, keys: Sequence[tuple[int, int]], state: TensorDict) -> None:
        """Keep a copy of a state of `len(keys)` rows under their (lifetime, age)."""
        self._places |= {key: (len(self._chunks), row) for row, key in enumerate(keys)}
        self._chunks.append(state.clone())

    def oldest(self, lifetime: int) -> int:
        """The greatest age at which a lifetime is known; raises KeyError for an unknown one."""
        ages = [age for known, age in self._places if known == lifetime]
        if not ages:
            raise KeyError(f"lifetime {lifetime}: no task of it has ended")
        return max(ages)

    def stack(self, keys: Sequence[tuple[int, int]]) -> TensorDict:
        """The memories of (lifetime, age) `keys`, in this order: a state of `len(keys)` rows."""
        found = [self._places[key] for key in keys]
        rows = [self._chunks[chunk][place : place + 1] for chunk, place in found]
        return torch.cat(rows)


class Watch:
    """An intervention that changes nothing and copies every memory whose task has just ended.

    For one crowd, from the start of its lives. A memory is seen when its next task begins: look
    once more after the last step.
    """

    def __init__(self, snapshots: Snapshots) -> None:
        self.snapshots = snapshots
        self._last: Moment | None = None

    def treat(self, state: TensorDict, moment: Moment) -> Treatment:
        """Copy the rows whose segment is over; the state goes on as it is."""
        last, ended = self._last, np.flatnonzero(moment.starts_task)
        if last is not None and len(ended):
            ages = (last.segment[ended] + 1).tolist()
            keys = list(zip(last.lifetime[ended].tolist(), ages, strict=True))
            self.snapshots.add(keys, state[torch.from_numpy(ended)])
        self._last = moment
        return Treatment(state)
