"""The table of a study, made from the row files of its members alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Table

from ..comparisons.comparison import comparator_of
from ..privileges import cell
from ..statistics import Interval, interval
from .member import Member, Places, read_row

Row = Mapping[str, Any]

# Column -> path in a run's summary.
REGRETS = {
    "regret, first episode": ("regret_end", "by_episode", 0, "normalised"),
    "regret, last episode": ("regret_end", "by_episode", -1, "normalised"),
    "regret, all": ("regret_end", "all", "normalised"),
    "evaluation, regret": ("evaluation", "all", "normalised"),
    "evaluation, lost reward": ("evaluation", "lost_return", "mean"),
}
BY_EPISODE = ("regret, first episode", "regret, last episode")  # one number where tasks have one
FACTS = {
    "parameters": ("num_parameters",),
    "state bytes": ("state_bytes",),
    "steps": ("steps",),
}


def study_rows(places: Places, members: Sequence[Member]) -> tuple[list[str], list[list[str]]]:
    """Header and a row for every group: n seeds, 95 % intervals over runs, sizes, comparator."""
    groups: dict[str, list[Row]] = {}
    for member in members:
        row = read_row(places, member)
        if row is not None:
            groups.setdefault(member.group, []).append(row["summary"])
    shown = [name for name, path in REGRETS.items() if _any(groups, path)]
    if all(len(row["regret_end"]["by_episode"]) <= 1 for rows in groups.values() for row in rows):
        shown = [name for name in shown if name not in BY_EPISODE]
    header = ["group", "n", *shown, *FACTS, "comparator", "privileged"]
    rows = []
    for label, summaries in groups.items():
        cells = [str(_interval(summaries, REGRETS[name])) for name in shown]
        facts = [f"{_interval(summaries, path).mean:,.0f}" for path in FACTS.values()]
        told = summaries[0].get("privileges")
        privileged = "?" if told is None else cell(told)
        rows.append(
            [label, str(len(summaries)), *cells, *facts, comparator_of(summaries), privileged]
        )
    return header, rows


def rich_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """For the terminal."""
    table = Table(title="Normalised regret in the last 10 % of training", title_justify="left")
    for column in header:
        if column == "group":
            table.add_column(column, no_wrap=True)
        else:
            table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _interval(summaries: Sequence[Row], path: Sequence[Any]) -> Interval:
    return interval([_read(summary, path) for summary in summaries])


def _any(groups: Mapping[str, Sequence[Row]], path: Sequence[Any]) -> bool:
    return any(np.isfinite(_read(row, path)) for rows in groups.values() for row in rows)


def _read(summary: Any, path: Sequence[Any]) -> float:
    for key in path:
        if summary is None or (isinstance(key, int) and not summary):
            return float("nan")
        summary = summary[key]
    return float("nan") if summary is None else float(summary)
