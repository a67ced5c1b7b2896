"""Plays recall games as arrays: all rows at once, bit for bit as `RecallEnv` does."""

from __future__ import annotations

import numpy as np

from .interface import Array, Interface, Observation
from .recall import NOTHING, NUM_SUITS, RecallTask
from .simulator import Simulator, Transition
from .task import Segment


class RecallSimulator(Simulator):
    """Rows of games of any length; plays tasks of type `RecallTask` only."""

    def __init__(self, interface: Interface, num_rows: int) -> None:
        self.interface = interface
        self.num_rows = num_rows
        self._rows = np.arange(num_rows)
        self._shown = np.zeros((num_rows, 1), np.int64)
        self._targets = np.zeros((num_rows, 1), np.int64)
        self._num_steps = np.zeros(num_rows, np.int64)
        self._scale = np.zeros(num_rows)
        self._step = np.zeros(num_rows, np.int64)
        self._tasks: list[RecallTask | None] = [None] * num_rows

    def begin_segment(self, row: int, segment: Segment) -> None:
        """Take up the game of the segment's task."""
        task = segment.task
        if not isinstance(task, RecallTask):
            raise ValueError(f"recall simulator: expected a RecallTask, got {task!r}")
        game = task.game
        self._tasks[row] = task
        self._num_steps[row] = game.num_steps
        self._scale[row] = 1.0 / game.num_answers
        missing = game.num_steps + 1 - self._shown.shape[1]
        if missing > 0:
            self._shown = np.pad(self._shown, ((0, 0), (0, missing)))
            self._targets = np.pad(self._targets, ((0, 0), (0, missing)))

    def begin_episode(self, row: int, seed: int) -> None:
        """Shuffle and lay out the cards."""
        task = self._tasks[row]
        if task is None:
            raise RuntimeError(f"row {row}: no segment was begun")
        shown, targets = task.game.deal(seed)
        self._shown[row, : len(shown)] = shown
        self._targets[row, : len(targets)] = targets
        self._step[row] = 0

    def step(self, actions: Array, rows: Array | None = None) -> Transition:
        """One answer per row."""
        played = self._rows if rows is None else rows
        step = self._step[played]
        target = self._targets[played, step]
        sign = np.where(target == NOTHING, 0.0, np.where(actions == target, 1.0, -1.0))
        reward = (sign * self._scale[played]).astype(np.float32)
        self._step[played] = step + 1
        ended = step + 1 == self._num_steps[played]
        return Transition(reward, reward.copy(), ended, np.zeros(len(played), bool))

    def observation(self) -> Observation:
        """The card that every row sees."""
        shown = self.interface.zeros(self.num_rows)
        shown["discrete"][:] = self._shown[self._rows, self._step]
        suits = np.arange(self.interface.num_actions) < NUM_SUITS
        shown["action_mask"] = np.tile(suits, (self.num_rows, 1))
        return shown

    def optimal_return(self, row: int) -> float:
        """1: every card can be known when it is asked for."""
        del row
        return 1.0

    def floor_return(self, row: int) -> float:
        """-1/2: a random suit is right one time in four."""
        del row
        return -0.5
