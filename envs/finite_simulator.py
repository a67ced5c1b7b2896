"""Plays finite decision processes as arrays: all rows at once, bit for bit as `FiniteEnv` does.

Row b holds the tables of its task, padded to the largest that any row has met.
"""

from __future__ import annotations

import numpy as np

from .finite_model import FiniteModel
from .finite_task import MOVE, NOISE, FiniteTask, start_of
from .hashed_noise import normals, uniforms
from .interface import Array, Interface, Observation
from .simulator import Simulator, Transition
from .task import Segment

NEVER = 2.0
"""What no uniform reaches: the cumulative chance of successors that a row does not have."""


class FiniteSimulator(Simulator):
    """Rows of decision processes of any size; plays tasks of type `FiniteTask` only."""

    def __init__(self, interface: Interface, num_rows: int) -> None:
        self.interface = interface
        self.num_rows = num_rows
        self._rows = np.arange(num_rows)
        self._tables = _Tables(num_rows, (1, interface.num_actions, 1))
        self._horizon = np.zeros(num_rows, np.int64)
        self._reward_noise = np.zeros(num_rows)
        self._seed = np.zeros(num_rows, np.int64)
        self._step = np.zeros(num_rows, np.int64)
        self._start = np.zeros(num_rows, np.int64)
        self._state = np.zeros(num_rows, np.int64)
        self._action_mask = np.zeros((num_rows, interface.num_actions), bool)
        self._tasks: list[FiniteTask | None] = [None] * num_rows

    def begin_segment(self, row: int, segment: Segment) -> None:
        """Lay out the tables of the segment's task."""
        task = segment.task
        if not isinstance(task, FiniteTask):
            raise ValueError(f"finite simulator: expected a FiniteTask, got {task!r}")
        model = task.model
        self._tables = self._tables.grown(model)
        self._tables.put(row, model)
        self._horizon[row] = model.horizon
        self._reward_noise[row] = model.reward_noise
        self._action_mask[row] = np.arange(self.interface.num_actions) < model.num_actions
        self._tasks[row] = task

    def begin_episode(self, row: int, seed: int) -> None:
        """Go to the start that the seed draws."""
        starts = self._task(row).model.starts
        self._seed[row] = seed
        self._step[row] = 0
        self._start[row] = start_of(seed, len(starts))
        self._state[row] = starts[self._start[row]]

    def step(self, actions: Array, rows: Array | None = None) -> Transition:
        """Play one action per row."""
        played = self._rows if rows is None else rows
        tables, step, seed = self._tables, self._step[played], self._seed[played]
        pair = (played, self._state[played], actions)
        branch = np.zeros(len(played), np.int64)
        if tables.successors.shape[3] > 1:
            branch = (uniforms(seed, step, MOVE)[:, None] >= tables.cumulative[pair]).sum(1)
        after = tables.successors[(*pair, branch)]
        reward, noise = tables.rewards[(*pair, branch)], self._reward_noise[played]
        if noise.any():
            reward = reward + noise * normals(seed, step, NOISE)
        self._state[played] = after
        self._step[played] = step + 1
        return Transition(
            reward.astype(np.float32),
            tables.means[pair].astype(np.float32),
            (step + 1 == self._horizon[played]) | tables.final[played, after],
            np.zeros(len(played), bool),
        )

    def observation(self) -> Observation:
        """What every row shows of its state."""
        shown = self.interface.zeros(self.num_rows)
        shown["discrete"][:] = self._tables.shown[self._rows, self._state]
        shown["action_mask"] = self._action_mask.copy()
        return shown

    def optimal_return(self, row: int) -> float:
        """Exact, from the tables of the task."""
        return float(self._task(row).values.optimal[self._start[row]])

    def floor_return(self, row: int) -> float:
        """Exact, from the tables of the task."""
        return float(self._task(row).values.floor[self._start[row]])

    def _task(self, row: int) -> FiniteTask:
        task = self._tasks[row]
        if task is None:
            raise RuntimeError(f"row {row}: no segment was begun")
        return task


class _Tables:
    """The tables of all rows, `[num_rows, S, A, N]` and their like."""

    def __init__(self, num_rows: int, size: tuple[int, int, int]) -> None:
        num_states, num_actions, _ = size
        self.size = size
        self.successors = np.zeros((num_rows, *size), np.int32)
        self.cumulative = np.full((num_rows, *size), NEVER)
        self.rewards = np.zeros((num_rows, *size))
        self.means = np.zeros((num_rows, num_states, num_actions))
        self.shown = np.zeros((num_rows, num_states), np.int64)
        self.final = np.zeros((num_rows, num_states), bool)

    def grown(self, model: FiniteModel) -> _Tables:
        """These tables where a model fits in, else larger ones with the same contents."""
        needed = model.successors.shape
        if all(new <= old for new, old in zip(needed, self.size, strict=True)):
            return self
        states, actions, branches = (
            max(new, old) for new, old in zip(needed, self.size, strict=True)
        )
        wider = _Tables(len(self.final), (states, actions, branches))
        for name in ("successors", "cumulative", "rewards", "means", "shown", "final"):
            old = getattr(self, name)
            getattr(wider, name)[tuple(slice(length) for length in old.shape)] = old
        return wider

    def put(self, row: int, model: FiniteModel) -> None:
        """Write the tables of a model into a row; what lies beyond them is never reached."""
        states, actions, branches = model.successors.shape
        self.successors[row, :states, :actions, :branches] = model.successors
        if self.size[2] > 1:
            self.cumulative[row, :states, :actions] = NEVER
            self.cumulative[row, :states, :actions, :branches] = model.cumulative()
        self.rewards[row, :states, :actions, :branches] = model.rewards
        self.means[row, :states, :actions] = model.mean_rewards()
        self.shown[row, :states] = model.shown
        self.final[row, :states] = model.final
