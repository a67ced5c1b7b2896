"""Tables that survive a kill: comma-separated files, one row at a time, flushed after every update.

A torn last line is dropped on reading. A checkpoint remembers how many rows a table had, and a
resumed run cuts it back to them, so that every step is in the table once. Missing values and NaN
are empty cells.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import RunError

Cell = float | int | str | bool | None
Array = NDArray[Any]
Columns = dict[str, Array]

BLOCK_ROWS = 20_000  # rows held as text at a time: long runs have millions


class Table:
    """Appends rows to a file whose columns grow: a row with a new column rewrites the header.

    An existing file is continued; `keep` cuts it back to its first `keep` rows.
    """

    def __init__(self, path: Path, keep: int | None = None) -> None:
        self.path = path
        rows = _read_rows(path)
        self.columns: list[str] = next(rows, [])
        self.num_rows = _replace(path, self.columns, islice(rows, keep)) if self.columns else 0
        self._file = path.open("a", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")

    def append(self, rows: Iterable[Mapping[str, Cell]]) -> None:
        """Add rows and flush them to the file."""
        for row in rows:
            new = [name for name in row if name not in self.columns]
            if new:
                self._widen(new)
            self._writer.writerow([_text(row.get(name)) for name in self.columns])
            self.num_rows += 1
        self._file.flush()

    def _widen(self, new: Sequence[str]) -> None:
        self._file.close()
        rows = islice(_read_rows(self.path), 1, None)
        empty = [""] * len(new)
        self.columns = [*self.columns, *new]
        _replace(self.path, self.columns, ([*row, *empty] for row in rows))
        self._file = self.path.open("a", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")

    def retain(self, wanted: Callable[[Sequence[str]], bool]) -> None:
        """Keep only the rows whose cells, as text in the order of `columns`, are `wanted`."""
        if not self.columns:
            return
        self._file.close()
        rows = islice(_read_rows(self.path), 1, None)
        self.num_rows = _replace(self.path, self.columns, (row for row in rows if wanted(row)))
        self._file = self.path.open("a", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")

    def sync(self) -> None:
        """Make sure that the disk holds every row, before something else relies on it."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class LateTable:
    """A table that exists from its first row on; an existing file is cut back to `keep` rows."""

    def __init__(self, path: Path, keep: int) -> None:
        self.path = path
        self._table = Table(path, keep) if path.exists() else None

    @property
    def num_rows(self) -> int:
        return 0 if self._table is None else self._table.num_rows

    def append(self, rows: Iterable[Mapping[str, Cell]]) -> None:
        """Add rows and flush them to the file."""
        if self._table is None:
            self._table = Table(self.path)
        self._table.append(rows)

    def sync(self) -> None:
        """Make sure that the disk holds every row."""
        if self._table is not None:
            self._table.sync()

    def close(self) -> None:
        if self._table is not None:
            self._table.close()


def read_table(path: Path) -> Columns:
    """Columns by name: float64 where every cell is a number or empty (NaN), else text."""
    rows = _read_rows(path)
    header = next(rows, [])
    blocks: list[list[Array]] = [[] for _ in header]
    while block := list(islice(rows, BLOCK_ROWS)):
        for column, cells in zip(blocks, zip(*block, strict=True), strict=True):
            column.append(_column(cells))
    return {name: _join(path, i, blocks[i]) for i, name in enumerate(header)}


def write_table(path: Path, columns: Mapping[str, Iterable[Cell]]) -> None:
    """Write whole columns of equal length at once."""
    rows = zip(*columns.values(), strict=True)
    _replace(path, list(columns), [[_text(cell) for cell in row] for row in rows])


def last_rows(columns: Columns, key: Sequence[str]) -> Columns:
    """Only the last row of each `key`: later rows replace earlier ones; the order is kept."""
    if not columns:
        return columns
    latest = {values: i for i, values in enumerate(zip(*(columns[k] for k in key), strict=True))}
    chosen = np.array(sorted(latest.values()), dtype=np.int64)
    return {name: column[chosen] for name, column in columns.items()}


def _read_rows(path: Path) -> Iterator[list[str]]:
    """The header, if any, and every complete row, a row at a time.

    A last line without its end or some of its cells is torn and dropped. Raises RunError for a
    damaged line before it.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        whole = (line.decode("utf-8", errors="replace") for line in file if line.endswith(b"\n"))
        header: list[str] | None = None
        damaged: str | None = None
        for number, row in enumerate(csv.reader(whole), start=1):
            if damaged is not None:
                raise RunError(damaged)
            header = row if header is None else header
            if len(row) == len(header):
                yield row
            else:
                damaged = f"{path}: line {number} has {len(row)} of {len(header)} cells"


def _join(path: Path, index: int, blocks: list[Array]) -> Array:
    if len({block.dtype.kind for block in blocks}) > 1:  # text that looks like numbers for a while
        return np.array([row[index] for row in islice(_read_rows(path), 1, None)])
    return np.concatenate(blocks) if blocks else np.empty(0)


def _replace(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    """Write a file and put it in the place of the old one; returns the number of rows."""
    num_rows = 0
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow(row)
            num_rows += 1
    os.replace(temporary, path)
    return num_rows


def _text(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    # One row is one line: a kill can then tear the last row only.
    return repr(float(cell)) if isinstance(cell, float) else " ".join(str(cell).splitlines())


def _column(cells: Sequence[str]) -> Array:
    try:
        return np.array([float(cell) if cell else math.nan for cell in cells], dtype=np.float64)
    except ValueError:
        return np.array(cells)
