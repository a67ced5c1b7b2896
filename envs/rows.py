"""Where the rows of a crowd stand in their lives, and what they did in the running episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from .interface import Array

MAX_LOGGED_ACTIONS = 100_000
"""Longer episodes cannot be replayed: they start again when a life is restored."""


@dataclass
class RowCounters:
    """Cursors, running sums and agent inputs: arrays `[num_rows]`.

    Indices: `lifetime`, `segment` of the lifetime, `episode` of the segment. Steps lived so far:
    `lifetime_step`, `segment_step`, `episode_step`. The rest are sums over the running episode and
    what the agent is told next.
    """

    lifetime: Array
    segment: Array
    episode: Array
    lifetime_step: Array
    segment_step: Array
    episode_step: Array
    total_return: Array
    expected_return: Array
    previous_action: Array
    previous_reward: Array
    episode_start: Array
    task_start: Array

    @classmethod
    def blank(cls, num_rows: int) -> RowCounters:
        """All zero and False."""
        counts = [np.zeros(num_rows, np.int64) for _ in range(6)]
        sums = [np.zeros(num_rows, np.float64) for _ in range(2)]
        previous = [np.zeros(num_rows, np.int64), np.zeros(num_rows, np.float32)]
        flags = [np.zeros(num_rows, bool) for _ in range(2)]
        return cls(*counts, *sums, *previous, *flags)

    def begin_episode(self, row: int) -> None:
        """A row's running sums start anew."""
        self.episode_step[row] = 0
        self.total_return[row] = self.expected_return[row] = 0.0
        self.episode_start[row] = True

    def count_step(self, actions: Array, reward: Array, expected_reward: Array) -> None:
        """Every row lived one step."""
        self.lifetime_step += 1
        self.segment_step += 1
        self.episode_step += 1
        self.total_return += reward
        self.expected_return += expected_reward
        self.previous_action[:] = actions
        self.previous_reward[:] = reward
        self.episode_start[:] = False
        self.task_start[:] = False

    def state_dict(self) -> dict[str, Array]:
        """Copies of all arrays by name."""
        return {field.name: getattr(self, field.name).copy() for field in fields(self)}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Take over what `state_dict` gave."""
        for field in fields(self):
            getattr(self, field.name)[:] = state[field.name]


class ActionLog:
    """The actions of every row's running episode, at two bytes a step."""

    def __init__(self, num_rows: int) -> None:
        self._rows = np.arange(num_rows)
        self._table = np.zeros((num_rows, 64), np.int16)
        self._length = np.zeros(num_rows, np.int64)

    def append(self, actions: Array) -> None:
        """One more action for every row."""
        size = self._table.shape[1]
        if size < MAX_LOGGED_ACTIONS and self._length.max() >= size:
            self._make_room()
        self._table[self._rows, self._length % MAX_LOGGED_ACTIONS] = actions
        self._length += 1

    def _make_room(self) -> None:
        size = self._table.shape[1]
        wider = np.zeros((len(self._rows), min(2 * size, MAX_LOGGED_ACTIONS)), np.int16)
        wider[:, :size] = self._table
        self._table = wider

    def restart(self, row: int) -> None:
        """A row begins an episode."""
        self._length[row] = 0

    def of(self, row: int) -> Array:
        """The actions since the episode began; none when they were too many to keep."""
        length = int(self._length[row])
        return self._table[row, : length if length <= MAX_LOGGED_ACTIONS else 0].copy()

    def put(self, row: int, actions: Array) -> None:
        """Replace the log of one row."""
        while len(actions) > self._table.shape[1]:
            self._make_room()
        self._table[row, : len(actions)] = actions
        self._length[row] = len(actions)
