"""Plays carts and poles as arrays: all rows at once, bit for bit as `CartPoleEnv` does."""

from __future__ import annotations

import numpy as np

from .cart_pole import SEEN, CartPoleTask, advance, has_fallen, starts_of
from .interface import Array, Interface, Observation
from .simulator import Simulator, Transition
from .task import Segment


class CartPoleSimulator(Simulator):
    """Rows of carts and poles with physics of their own; plays tasks of type `CartPoleTask`."""

    def __init__(self, interface: Interface, num_rows: int) -> None:
        self.interface = interface
        self.num_rows = num_rows
        self._state = np.zeros((num_rows, 4), order="F")  # columns are computed with
        self._physics = np.zeros((num_rows, 6), order="F")
        self._offset = np.zeros((num_rows, 4), order="F")
        self._num_seen = interface.channels["vector"].shape[0]
        self._seen = np.zeros((num_rows, 4), np.int64)
        self._shown = np.zeros((num_rows, 4), bool)
        self._max_steps = np.zeros(num_rows, np.int64)
        self._step = np.zeros(num_rows, np.int64)
        self._action_mask = np.zeros((num_rows, interface.num_actions), bool)
        self._action_mask[:, :2] = True
        self._picking: set[int] = set()  # rows that show only some parts of their state
        self._starting: dict[int, int] = {}  # seeds of rows that have not drawn their first state

    def begin_segment(self, row: int, segment: Segment) -> None:
        """Take over the hidden parameters of the segment's task."""
        task = segment.task
        if not isinstance(task, CartPoleTask):
            raise ValueError(f"cart-pole simulator: expected a CartPoleTask, got {task!r}")
        seen = SEEN[task.shows]
        self._physics[row] = task.physics
        self._offset[row] = task.offset
        self._seen[row, : len(seen)] = seen
        self._shown[row] = np.arange(4) < len(seen)
        self._max_steps[row] = task.max_steps
        if len(seen) == 4:
            self._picking.discard(row)
        else:
            self._picking.add(row)

    def begin_episode(self, row: int, seed: int) -> None:
        """Begin near the upright position, drawn with the other rows that begin."""
        self._starting[row] = seed
        self._step[row] = 0

    def _draw_starts(self) -> None:
        if self._starting:
            self._state[list(self._starting)] = starts_of(list(self._starting.values()))
            self._starting.clear()

    def step(self, actions: Array, rows: Array | None = None) -> Transition:
        """One push per row."""
        self._draw_starts()
        played = slice(None) if rows is None else rows
        moved = advance(self._state[played], actions, self._physics[played])
        step = self._step[played] + 1
        self._state[played] = moved
        self._step[played] = step
        fell = has_fallen(moved)
        reward = np.ones(len(actions), np.float32)
        late = (step == self._max_steps[played]) & ~fell
        return Transition(reward, reward.copy(), fell, late)

    def observation(self) -> Observation:
        """What every row shows of its state."""
        self._draw_starts()
        parts = self._state + self._offset
        if self._picking:
            parts = np.where(self._shown, np.take_along_axis(parts, self._seen, axis=1), 0.0)
        vector = parts[:, : self._num_seen].astype(np.float32, order="C")
        return {"vector": vector, "action_mask": self._action_mask.copy()}

    def optimal_return(self, row: int) -> float:
        """The limit: a linear controller reaches it."""
        return float(self._max_steps[row])
