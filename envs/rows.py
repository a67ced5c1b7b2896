"""Where the rows of a crowd stand in their lives, and what they did in the running episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from .interface import PREVIOUS_PARTS, Array, Interface, Observation

MAX_LOGGED_ACTIONS = 100_000
"""Longer episodes cannot be replayed: they start again when a life is restored."""


@dataclass
class RowCounters:
    """Cursors, running sums and agent inputs: arrays `[num_rows]`.

    Indices: `lifetime`, `segment` of the lifetime, `episode` of the segment. Steps lived so far:
    `lifetime_step`, `segment_step`, `episode_step`. The rest are sums over the running episode and
    what the agent is told next; `previous_parts` `[num_rows, num_parts - 1]` is what followed the
    first part of the previous action.
    """

    num_actions: int
    lifetime: Array
    segment: Array
    episode: Array
    lifetime_step: Array
    segment_step: Array
    episode_step: Array
    total_return: Array
    expected_return: Array
    previous_action: Array
    previous_parts: Array
    previous_reward: Array
    episode_start: Array
    task_start: Array

    @classmethod
    def blank(cls, num_rows: int, interface: Interface) -> RowCounters:
        """All zero and False, no previous action yet."""
        counts = [np.zeros(num_rows, np.int64) for _ in range(6)]
        sums = [np.zeros(num_rows, np.float64) for _ in range(2)]
        parts = np.zeros((num_rows, interface.num_parts - 1), np.float32)
        none_yet = np.full(num_rows, interface.num_actions)
        previous = [none_yet, parts, np.zeros(num_rows, np.float32)]
        flags = [np.zeros(num_rows, bool) for _ in range(2)]
        arrays = (*counts, *sums, *previous, *flags)
        return cls(interface.num_actions, *arrays)

    def enter_lifetime(self, row: int, lifetime: int, announced: bool) -> None:
        """A row stands at the first step of a lifetime."""
        self.lifetime[row] = lifetime
        self.lifetime_step[row] = 0
        self.previous_action[row] = self.num_actions
        self.previous_parts[row] = self.previous_reward[row] = 0.0
        self.enter_segment(row, 0, announced)

    def enter_segment(self, row: int, segment: int, announced: bool) -> None:
        """A row stands at the first step of a segment."""
        self.segment[row] = segment
        self.segment_step[row] = self.episode[row] = 0
        self.task_start[row] = announced

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
        if actions.ndim == 1:
            self.previous_action[:] = actions
        else:
            self.previous_action[:] = actions[:, 0]
            self.previous_parts[:] = actions[:, 1:]
        self.previous_reward[:] = reward
        self.episode_start[:] = False
        self.task_start[:] = False

    def inputs(self) -> Observation:
        """Copies of what the agent is told beside the channels and the action mask."""
        told = {
            "previous_action": self.previous_action.copy(),
            "previous_reward": self.previous_reward.copy(),
            "episode_start": self.episode_start.copy(),
            "task_start": self.task_start.copy(),
        }
        if self.previous_parts.shape[1]:
            told[PREVIOUS_PARTS] = self.previous_parts.copy()
        return told

    def state_dict(self) -> dict[str, Array]:
        """Copies of all arrays by name."""
        return {name: getattr(self, name).copy() for name in _arrays()}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Take over what `state_dict` gave."""
        for name in _arrays():
            getattr(self, name)[:] = state[name]


def _arrays() -> list[str]:
    return [field.name for field in fields(RowCounters) if field.name != "num_actions"]


class ActionLog:
    """The actions of every row's running episode, at two bytes a step or four a part."""

    def __init__(self, num_rows: int, interface: Interface) -> None:
        self._rows = np.arange(num_rows)
        few = interface.num_actions <= np.iinfo(np.int16).max
        dtype: type = np.int16 if few else np.int32
        parts: tuple[int, ...] = ()
        if interface.num_parts > 1:
            dtype, parts = np.float32, (interface.num_parts,)
        self._table: Array = np.zeros((num_rows, 64, *parts), dtype)
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
        room = min(2 * size, MAX_LOGGED_ACTIONS)
        shape = (len(self._rows), room, *self._table.shape[2:])
        wider = np.zeros(shape, self._table.dtype)
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
