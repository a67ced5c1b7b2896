"""Tables of an endless life: of bounded size, and the same after a kill as without one.

    thinned   row n stays while n is a multiple of the stride: the least power of two with which
              the rows written so far fit. They spread evenly over the whole life
    newest    row n stays while it is one of the newest

The first column numbers the rows from 0. Rows are dropped at checkpoints only. Which rows are kept
depends on how many were written and on nothing else, and what was dropped once stays dropped: rows
that a killed process wrote after its checkpoint are cut off and written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ..tables import Cell, Table

Kept = Callable[[int, int, int], bool]
"""Whether row `number` stays when `count` rows were written and about `most` may be kept."""


def thinned(number: int, count: int, most: int) -> bool:
    """Every stride-th row, the stride doubling as life goes on."""
    stride = 1
    while -(-count // stride) > most:
        stride *= 2
    return number % stride == 0


def newest(number: int, count: int, most: int) -> bool:
    """The last `most` rows."""
    return number >= count - most


class BoundedTable:
    """At most `most` rows after every `bound`; `count` rows were written before this process."""

    def __init__(self, path: Path, kept: Kept, most: int, count: int = 0) -> None:
        self.kept, self.most, self.count = kept, most, count
        self._table = Table(path)
        self._table.retain(lambda row: int(row[0]) < count)

    def append(self, rows: Iterable[Mapping[str, Cell]]) -> None:
        """Number the rows, add them and flush them to the file."""
        numbered = [{"number": self.count + i, **row} for i, row in enumerate(rows)]
        self._table.append(numbered)
        self.count += len(numbered)

    def bound(self) -> None:
        """Drop the rows that are too many and make sure that the disk holds the others."""
        # Whenever, not only when full: a resumed table may be short and its new rows too many.
        self._table.retain(lambda row: self.kept(int(row[0]), self.count, self.most))
        self._table.sync()

    def close(self) -> None:
        """Close the file."""
        self._table.close()
