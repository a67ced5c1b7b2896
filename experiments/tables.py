"""Tables that survive a kill: comma-separated files, one row at a time, flushed after every update.

A torn last line is dropped on reading. A checkpoint remembers how many rows a table had, and a
resumed run cuts it back to them, so that every step is in the table once. Missing values and NaN
are empty cells.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import RunError

Cell = float | int | str | bool | None
Columns = dict[str, NDArray[Any]]


class Table:
    """Appends rows to a file whose columns grow: a row with a new column rewrites the header.

    An existing file is continued; `keep` cuts it back to its first `keep` rows.
    """

    def __init__(self, path: Path, keep: int | None = None) -> None:
        self.path = path
        header, rows = _read_lines(path)
        kept = rows if keep is None else rows[:keep]
        self.columns: list[str] = header
        self.num_rows = len(kept)
        if header:
            _replace(path, header, kept)
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
        _, rows = _read_lines(self.path)
        empty = [""] * len(new)
        self.columns = [*self.columns, *new]
        _replace(self.path, self.columns, [[*row, *empty] for row in rows])
        self._file = self.path.open("a", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")

    def sync(self) -> None:
        """Make sure that the disk holds every row, before something else relies on it."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_table(path: Path) -> Columns:
    """Columns by name: float64 where every cell is a number or empty (NaN), else text."""
    header, rows = _read_lines(path)
    return {name: _column([row[i] for row in rows]) for i, name in enumerate(header)}


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


def _read_lines(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and complete rows; a last line without its end or some of its cells is torn.

    Raises RunError for a damaged line before it.
    """
    if not path.exists():
        return [], []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1].decode("utf-8", errors="replace")
    lines = list(csv.reader(io.StringIO(whole, newline="")))
    if not lines:
        return [], []
    header, rows = lines[0], lines[1:]
    if rows and len(rows[-1]) != len(header):
        rows.pop()
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise RunError(f"{path}: line {number} has {len(row)} of {len(header)} cells")
    return header, rows


def _replace(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    os.replace(temporary, path)


def _text(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return repr(float(cell)) if isinstance(cell, float) else str(cell)


def _column(cells: list[str]) -> NDArray[Any]:
    try:
        return np.array([float(cell) if cell else math.nan for cell in cells], dtype=np.float64)
    except ValueError:
        return np.array(cells)
