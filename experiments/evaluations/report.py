"""The tables of an evaluation: for the terminal, as Markdown, as CSV and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from ..folder import write_atomically
from ..markdown import markdown_table
from ..measures.card import card_of
from ..report import ordinal
from ..tables import Cell, write_table
from ..tracker import MAX_EPISODES
from .findings import Findings
from .matrix import CHECKPOINTS, OF_TRAINING
from .measures import CARRIED, Row

HEADLINES = (
    "regret, all episodes",
    *(f"regret, {ordinal(index)} episode" for index in range(MAX_EPISODES)),
    "regret minus carried",
)
WITHOUT_REFERENCE = ("return per episode", "return minus carried")
ABSENT = "-"


def write_tables(folder: Path, found: Findings) -> None:
    """measures.csv, measures.json and evaluation.md."""
    rows = found.rows
    columns: dict[str, list[Cell]] = {
        "code": [row.code for row in rows],
        "measure": [row.measure for row in rows],
        "condition": [row.condition for row in rows],
        "mean": [row.value.mean for row in rows],
        "low": [row.value.low for row in rows],
        "high": [row.value.high for row in rows],
        "num_lifetimes": [row.value.num_runs for row in rows],
        "note": [row.note for row in rows],
    }
    write_table(folder / "measures.csv", columns)
    names = list(columns)
    cells = zip(*columns.values(), strict=True)
    plain = [dict(zip(names, map(_finite, row), strict=True)) for row in cells]
    for told in plain:
        card = card_of(str(told["measure"]))
        told["formula"] = None if card is None else card.formula
    content = {
        "title": found.title,
        "notes": list(found.notes),
        "comparators": dict(found.comparators),
        "measures": plain,
    }
    write_atomically(folder / "measures.json", json.dumps(content, indent=2) + "\n")
    write_atomically(folder / "evaluation.md", markdown(rows, found.title, found.notes))


def markdown(rows: Sequence[Row], title: str, notes: Sequence[str]) -> str:
    """A line for every measure, a column for every condition."""
    conditions = list(dict.fromkeys(row.condition for row in rows))
    lines = [f"# {title}", "", *(f"* {note}" for note in notes), ""]
    told: list[list[str]] = []
    cells = {(row.measure, row.condition): cell_text(row) for row in rows}
    for code, measure in dict.fromkeys((row.code, row.measure) for row in rows):
        shown = [cells.get((measure, name), "") for name in conditions]
        if any(cell not in ("", ABSENT) for cell in shown):
            told.append([code, measure, *shown])
    lines.append(markdown_table(["", "measure", *conditions], told, num_texts=2))
    remarks = [
        f"* {row.measure}, {row.condition}: {row.note}"
        for row in rows
        if row.note and row.code != "M10"
    ]
    if remarks:
        lines += ["", "What stands behind some of them:", "", *remarks]
    return "\n".join(lines) + "\n"


def rich_table(rows: Sequence[Row]) -> Table:
    """The headline numbers: a line for every condition; returns where no task has a reference."""
    present = {row.measure for row in rows if cell_text(row) != ABSENT}
    shown = [name for name in HEADLINES if name in present]
    what = "normalised regret" if shown else "no task has a reference"
    shown = shown or [name for name in WITHOUT_REFERENCE if name in present]
    table = Table(title=f"Held-out lifetimes, {what}", title_justify="left")
    table.add_column("condition")
    for name in shown:
        table.add_column(name.removeprefix("regret, "), justify="right", overflow="fold")
    cells = {(row.measure, row.condition): cell_text(row) for row in rows}
    lived = (row.condition for row in rows if row.measure in shown)
    for condition in dict.fromkeys(lived):
        table.add_row(condition, *(cells.get((name, condition), "") for name in shown))
    return table


def lines(rows: Sequence[Row]) -> list[str]:
    """One line for each number that is no column of the headline table."""
    codes = ("M5", "M8", "M15", "M6", "M7", "M9")
    found = [row for row in rows if row.code in codes and cell_text(row) != ABSENT]
    found = [row for row in found if row.code != "M9" or row.condition == CARRIED]
    return [
        f"{row.measure}: {cell_text(row)}, n = {row.value.num_runs} lifetimes{_whose(row)}"
        + (f" ({row.note})" if row.note else "")
        for row in found
    ]


def _whose(row: Row) -> str:
    """The matrix of outer parameters has lives of its own."""
    return f" {OF_TRAINING}" if row.condition == CHECKPOINTS else ""


def cell_text(row: Row) -> str:
    """A value as it is printed: with its interval, a median with its share, a cost in full."""
    if math.isnan(row.value.mean):
        return ABSENT
    if row.code == "M10":
        median = row.value.mean
        return f"{'never' if math.isinf(median) else f'{median:g}'} ({row.note})"
    if row.code == "M14":
        return f"{row.value.mean:,.0f}"
    if math.isinf(row.value.mean):
        return "beyond all that was lived"
    return str(row.value)


def _finite(cell: Cell) -> Cell:
    """JSON has neither NaN nor infinity: both are null there."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
