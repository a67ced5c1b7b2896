"""A NumPy encoding of a MiniGrid grid that notices every change of the grid and of its objects.

codes[x, y] = (object, colour, state), with a border of walls around. Nothing announces a change
(environments and users write cells and open doors as they please), so what shows now is compared
with what was encoded.

Source: `minigrid.core.grid.Grid.encode`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from minigrid.core.constants import OBJECT_TO_IDX
from minigrid.core.grid import Grid
from minigrid.core.world_object import Ball, Box, Door, Floor, Goal, Key, Lava, Wall

from ..interface import Array

EMPTY = (OBJECT_TO_IDX["empty"], 0, 0)
FAMILIAR = frozenset({Wall, Floor, Door, Key, Ball, Box, Goal, Lava})
"""Classes whose code depends on their colour and, for doors, `is_open` and `is_locked` alone.

The `type` of an object belongs to its class and never changes.
"""


def cell_codes(cells: Sequence[Any]) -> list[tuple[int, int, int]]:
    """(object, colour, state) of every cell."""
    return [EMPTY if cell is None else cell.encode() for cell in cells]


class GridCodes:
    """The codes of the grid it was last updated to.

    `padded`: uint8 `[width + 2 border, height + 2 border, 3]`; `content`: the codes inside the
    border as bytes.
    """

    def __init__(self, border: int) -> None:
        self.border = border
        self.shape = (0, 0)
        self.padded: Array = np.empty((0, 0, 3), np.uint8)
        self.content = b""
        self._cells: list[Any] = []
        self._objects: list[Any] = []
        self._colours: list[str] = []
        self._doors: list[Any] = []
        self._door_states: list[tuple[bool, bool]] = []

    def is_outdated(self, grid: Grid) -> bool:
        """Whether anything that shows in `grid` differs from the codes."""
        return (
            grid.grid != self._cells
            or [(door.is_open, door.is_locked) for door in self._doors] != self._door_states
            or [thing.color for thing in self._objects] != self._colours
            or (grid.width, grid.height) != self.shape
        )

    def update(self, grid: Grid) -> bool:
        """Encode `grid`; False, and outdated ever after, where an object is not `FAMILIAR`."""
        cells = list(grid.grid)
        self._cells = []
        self._objects = [cell for cell in cells if cell is not None]
        if not FAMILIAR.issuperset(map(type, self._objects)):
            return False
        self._write(cell_codes(cells), grid)
        self._cells = cells
        self._colours = [thing.color for thing in self._objects]
        self._doors = [thing for thing in self._objects if type(thing) is Door]
        self._door_states = [(door.is_open, door.is_locked) for door in self._doors]
        return True

    def _write(self, codes: list[tuple[int, int, int]], grid: Grid) -> None:
        width, height, border = grid.width, grid.height, self.border
        if (width, height) != self.shape:
            self.shape = (width, height)
            self.padded = np.empty((width + 2 * border, height + 2 * border, 3), np.uint8)
            self.padded[:] = Wall().encode()
        self.content = b"".join(map(bytes, codes))
        rows = np.frombuffer(self.content, np.uint8).reshape(height, width, 3)
        self.padded[border : border + width, border : border + height] = rows.swapaxes(0, 1)
