"""Plays Bernoulli bandits as arrays: all rows at once, bit for bit as the step environment does.

reward = 1 where u[row, t] < p_t[row, action]; the uniforms of an episode come from its seed.
"""

from __future__ import annotations

import numpy as np

from .bandit import BanditTask
from .interface import Array, Interface, Observation
from .simulator import Simulator, Transition
from .task import Segment


class BanditSimulator(Simulator):
    """Rows of bandits of any size; plays tasks of type `BanditTask` only."""

    def __init__(self, interface: Interface, num_rows: int) -> None:
        self.interface = interface
        self.num_rows = num_rows
        self._rows = np.arange(num_rows)
        self._means = np.zeros((2, num_rows, interface.num_actions))
        self._change = np.zeros(num_rows, np.int64)
        self._num_pulls = np.zeros(num_rows, np.int64)
        self._pull = np.zeros(num_rows, np.int64)
        self._uniforms = np.zeros((num_rows, 1))
        self._action_mask = np.zeros((num_rows, interface.num_actions), bool)
        self._tasks: list[BanditTask | None] = [None] * num_rows

    def begin_segment(self, row: int, segment: Segment) -> None:
        """Lay out the arms of the segment's task."""
        task = segment.task
        if not isinstance(task, BanditTask):
            raise ValueError(f"bandit simulator: expected a BanditTask, got {task!r}")
        num_arms = len(task.before)
        self._means[:, row] = 0.0
        self._means[0, row, :num_arms] = task.before
        self._means[1, row, :num_arms] = task.after
        self._change[row] = task.change
        self._num_pulls[row] = task.num_pulls
        self._action_mask[row] = np.arange(self.interface.num_actions) < num_arms
        self._tasks[row] = task
        missing = task.num_pulls - self._uniforms.shape[1]
        if missing > 0:
            self._uniforms = np.pad(self._uniforms, ((0, 0), (0, missing)))

    def begin_episode(self, row: int, seed: int) -> None:
        """Draw the rewards of an episode."""
        num_pulls = int(self._num_pulls[row])
        self._uniforms[row, :num_pulls] = np.random.default_rng(seed).random(num_pulls)
        self._pull[row] = 0

    def step(self, actions: Array, rows: Array | None = None) -> Transition:
        """Pull one arm per row."""
        played = self._rows if rows is None else rows
        pull = self._pull[played]
        moved = (pull >= self._change[played]).astype(np.int64)
        means = self._means[moved, played, actions]
        reward = (self._uniforms[played, pull] < means).astype(np.float32)
        self._pull[played] = pull + 1
        return Transition(
            reward,
            means.astype(np.float32),
            pull + 1 == self._num_pulls[played],
            np.zeros(len(played), bool),
        )

    def observation(self) -> Observation:
        """The constant channel of every row."""
        shown = self.interface.zeros(self.num_rows)
        shown["action_mask"] = self._action_mask.copy()
        return shown

    def optimal_return(self, row: int) -> float:
        """Exact, from the arms of the task."""
        return self._task(row).optimal_return()

    def floor_return(self, row: int) -> float:
        """Exact, from the arms of the task."""
        return self._task(row).floor_return()

    def _task(self, row: int) -> BanditTask:
        task = self._tasks[row]
        if task is None:
            raise RuntimeError(f"row {row}: no segment was begun")
        return task
