"""Moves on an empty square grid, and the uniformly random walk on it, exactly.

    occupancy_t = occupancy_{t-1} P,   h_t(x, y) = P(walk from x enters y within t steps)
    h_t(x, y) = sum_z P(x, z) ([z = y] + [z != y] h_{t-1}(z, y)),   h_0 = 0

Source: hitting probabilities of Markov chains, Norris (1997), section 1.3.
"""

from __future__ import annotations

import numpy as np

from .interface import Array

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))
"""Up, down, left, right, stay, as (row, column)."""


class GridWalk:
    """`size` x `size` cells, numbered row x size + column; walls stop a move where it stands.

    `successors` int64 `[cells, 5]`, `distances` int64 `[cells, cells]` (Manhattan), `centre` and
    `other_cells`, all but the centre.
    """

    def __init__(self, size: int) -> None:
        cells = np.arange(size**2)
        place = np.stack(np.divmod(cells, size), 1)
        moved = (place[:, None] + np.array(MOVES)).clip(0, size - 1)
        self.successors = moved[..., 0] * size + moved[..., 1]
        self.distances = np.abs(place[:, None] - place).sum(2)
        self.centre = int(size // 2 * size + size // 2)
        self.other_cells = cells[cells != self.centre]
        self._chances = (self.successors[..., None] == cells).mean(1)

    def occupancy(self, num_steps: int) -> Array:
        """P(walk from the centre is in a cell after step t), `[num_steps, cells]`, t = 1, 2, ..."""
        here = np.eye(len(self._chances))[self.centre]
        rows = []
        for _ in range(num_steps):
            here = here @ self._chances
            rows.append(here)
        return np.array(rows)

    def hits_within(self, num_steps: int) -> Array:
        """P(walk from x enters y within t steps), `[num_steps + 1, cells x, cells y]`."""
        entered = np.zeros((num_steps + 1, *self._chances.shape))
        same = np.eye(len(self._chances))
        for step in range(1, num_steps + 1):
            entered[step] = self._chances @ np.maximum(same, entered[step - 1])
        return entered
