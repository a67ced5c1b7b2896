"""The table of a comparison: for the terminal, as Markdown and as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from ..folder import write_atomically
from ..markdown import markdown_table
from ..privileges import cell, privileges
from ..report import ordinal, regret_scale
from ..statistics import BOOTSTRAP_FROM, Interval, interval
from ..tables import Cell, write_table
from ..tracker import MAX_EPISODES
from .groups import Group
from .latex import latex_table

NAMED_GROUPS = 4  # whose numbers of runs a caption tells one by one

# Row -> where a run's summary has it: normalised, and as reward lost per episode.
EVALUATED = {
    "evaluation, normalised regret": ("all", "normalised"),
    "evaluation, lost reward per episode": ("lost_return", "mean"),
}


@dataclass(frozen=True)
class Comparison:
    """A table as text and as numbers (`data`: a column for every number), and remarks."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    data: dict[str, list[Cell]]
    notes: Sequence[str]


def plain_table(groups: Sequence[Group], last: float) -> Comparison:
    """A row for every group: regret at the end by episode of a task, 95 % intervals over runs."""
    columns = {"group": [group.label for group in groups]}
    columns["n"] = [str(len(group.runs)) for group in groups]
    data: dict[str, list[Cell]] = {"group": list(columns["group"])}
    for name, intervals in _regrets(groups, last).items():
        columns[name] = [str(found) for found in intervals]
        for part in ("mean", "low", "high", "num_runs"):
            data[f"{name}: {part}"] = [getattr(found, part) for found in intervals]
    for name, read in _FACTS.items():
        values = [read(group) for group in groups]
        columns[name] = [f"{value:,.0f}" if np.isfinite(value) else "?" for value in values]
        data[name] = list(values)
    columns["comparator"] = [comparator_of(run.summary for run in g.runs) for g in groups]
    data["comparator"] = list(columns["comparator"])
    told = [cell(privileges(group.runs[0].config)) for group in groups]
    columns["privileged"] = told
    data["privileged"] = list(told)
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    return Comparison(list(columns), rows, data, _notes(groups, last))


def _regrets(groups: Sequence[Group], last: float) -> dict[str, list[Interval]]:
    """Name -> interval of every group."""
    runs = [run for group in groups for run in group.runs]
    lived = [run.episodes for run in runs if len(run.episodes)]
    if lived and not any(episodes.regret().count for episodes in lived):
        return _returns(groups, last)
    found: dict[str, list[Interval]] = {}
    shown = range(min(MAX_EPISODES, max(group.num_indices for group in groups)))
    hides = any(np.isfinite(run.episodes.informed).any() for run in runs)
    for kind in ("normalised", "raw", "informed")[: 2 + hides]:
        for index in (*shown, None):
            name = f"{kind} regret, {'all episodes' if index is None else ordinal(index)}"
            found[name] = [group.final_regret(kind, last, index) for group in groups]
    if any(run.summary.get("evaluation") for group in groups for run in group.runs):
        for name, path in EVALUATED.items():
            found[name] = [_evaluated(group, *path) for group in groups]
    return found


def _returns(groups: Sequence[Group], last: float) -> dict[str, list[Interval]]:
    """What can be said where no task has a reference: returns, and how far from the best group."""
    returns = [group.final_returns(last) for group in groups]
    means = [interval(values).mean for values in returns]
    best = max((mean for mean in means if np.isfinite(mean)), default=np.nan)
    return {
        "return at the end": [interval(values) for values in returns],
        "relative regret": [interval(best - values) for values in returns],
    }


def rich_table(table: Comparison) -> Table:
    """For the terminal: a column for every group, since there are more numbers than groups."""
    shown = Table(title="Regret at the end of the runs", title_justify="left")
    shown.add_column("")
    for row in table.rows:
        shown.add_column(row[0], justify="right", overflow="fold")
    for number, name in enumerate(table.header[1:], start=1):
        shown.add_row(name, *(row[number] for row in table.rows))
    return shown


def write_tables(folder: Path, table: Comparison, groups: Sequence[Group]) -> None:
    """comparison.md, comparison.csv and comparison.tex."""
    lines = [markdown_table(table.header, table.rows)]
    lines += ["", *(f"* {note}" for note in table.notes), "", "Runs:", ""]
    lines += [f"* {group.label}: {run.path}" for group in groups for run in group.runs]
    lines += ["", "Configuration differences:", ""]
    lines += [f"* {line}" for line in differences(groups)]
    write_atomically(folder / "comparison.tex", latex_table(table.header, table.rows, table.notes))
    write_atomically(folder / "comparison.md", "\n".join(lines) + "\n")
    write_table(folder / "comparison.csv", table.data)


def _evaluated(group: Group, part: str, number: str) -> Interval:
    """A number of the evaluations on fresh lifetimes; NaN in runs that have none."""
    found = [(run.summary.get("evaluation") or {}).get(part, {}) for run in group.runs]
    values = [numbers.get(number) for numbers in found]
    return interval([np.nan if value is None else float(value) for value in values])


def _summarised(name: str) -> Callable[[Group], float]:
    """Mean over a group's runs of a number in their summaries; NaN where none has it."""

    def read(group: Group) -> float:
        values = [run.summary[name] for run in group.runs if name in run.summary]
        return float(np.mean(values)) if values else float("nan")

    return read


def _speed(group: Group) -> float:
    return float(np.mean([run.steps_per_second for run in group.runs]))


_FACTS: dict[str, Callable[[Group], float]] = {
    "steps/s": _speed,
    "parameters": _summarised("num_parameters"),
    "state bytes": _summarised("state_bytes"),
}


def comparator_of(summaries: Iterable[Mapping[str, Any]]) -> str:
    """Kinds of reference that regret is held against, provisional ones marked; ? where unknown."""
    kinds = {kind for summary in summaries for kind in summary.get("comparators", {}).values()}
    return ", ".join(sorted(kinds)) or "?"


def _notes(groups: Sequence[Group], last: float) -> list[str]:
    """What the numbers are, and which keys of the configurations differ."""
    part = f"the last {last:.0%} of the steps" if last < 1 else f"the last {last:.0f} episodes"
    summaries = [run.summary for group in groups for run in group.runs]
    notes = [
        f"Regret over {part}. {regret_scale(summaries)}",
        interval_note(groups),
    ]
    notes += [line for line in differences(groups) if not _explained(line, groups)]
    for group in groups:
        seeds = sorted(int(run.config.seed) for run in group.runs)
        notes.append(f"{group.label}: n = {len(seeds)}, seeds {', '.join(map(str, seeds))}")
    return notes


def differences(groups: Sequence[Group]) -> list[str]:
    """`key: value; value ...` for every key that differs, in the order of the groups."""
    return [
        f"{name.removeprefix('choices.')}: "
        + "; ".join(group.differences[name] for group in groups)
        for name in groups[0].differences
    ]


def _explained(line: str, groups: Sequence[Group]) -> bool:
    """Whether a differing key belongs to a file that was chosen differently."""
    top, dot, _ = line.split(":")[0].partition(".")
    return bool(dot) and f"choices.{top}" in groups[0].differences


def counts_note(groups: Sequence[Group]) -> str:
    """How many runs the groups have: by name as long as a caption can hold it."""
    counts = [len(group.runs) for group in groups]
    if len(set(counts)) == 1:
        return f"n = {counts[0]}" + (" each" if len(groups) > 1 else "")
    if len(groups) <= NAMED_GROUPS:
        return ", ".join(f"{group.label}: n = {len(group.runs)}" for group in groups)
    return f"n = {min(counts)} to {max(counts)}, for each group in the table"


def interval_note(groups: Sequence[Group]) -> str:
    """Which intervals are shown, and that a single run has none."""
    counts = [len(group.runs) for group in groups]
    parts = []
    if any(1 < count < BOOTSTRAP_FROM for count in counts):
        parts.append("t-interval")
    if any(count >= BOOTSTRAP_FROM for count in counts):
        parts.append("bootstrap over runs")
    note = f"95 % intervals over runs: {' or '.join(parts)}." if parts else ""
    single = "A single run (n = 1) has no interval." if 1 in counts else ""
    return f"{note} {single}".strip()
