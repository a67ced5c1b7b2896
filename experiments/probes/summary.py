"""A study's results as groups over seeds, and as tables: for the terminal, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from ..folder import write_atomically
from ..sizing import TOLERANCE
from ..statistics import Interval, interval
from ..tables import Cell, write_table
from .member import Result

NUMBERS = ("parameters", "state_bytes", "off", "seconds")
Rules = Mapping[str, Mapping[str, Mapping[float, float]]]
"""Rule -> table of `rules.measure_rule` -> x -> score."""


@dataclass(frozen=True)
class Group:
    """Members that differ in their seed only; those that failed are named in `errors`."""

    probe: str
    memory: str
    match: str
    control: str
    results: Sequence[Result]
    errors: Sequence[str]

    @property
    def label(self) -> str:
        """The memory, and what is unusual about the group."""
        unusual = [choice for choice in (self.match, self.control) if choice != "none"]
        return ", ".join([self.memory, *unusual])

    @property
    def score(self) -> Interval:
        """Over seeds."""
        return interval([result.score for result in self.results])

    def number(self, name: str) -> float:
        """Mean over seeds of one of `NUMBERS`; NaN when all members failed."""
        values = [result.numbers[name] for result in self.results]
        return float(np.mean(values)) if values else float("nan")


def group_results(results: Sequence[Result]) -> list[Group]:
    """Groups in the order of their first member."""
    found: dict[tuple[str, str, str, str], list[Result]] = {}
    for result in results:
        found.setdefault(result.member.group, []).append(result)
    return [
        Group(
            *key,
            [result for result in members if not result.error],
            [f"{r.member.name}: {r.error}" for r in members if r.error],
        )
        for key, members in found.items()
    ]


def overview(groups: Sequence[Group]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: a row for every memory, its mean score in every probe."""
    probes = list(dict.fromkeys(group.probe for group in groups))
    scores: dict[str, dict[str, str]] = {}
    for group in groups:
        mean = group.score.mean
        scores.setdefault(group.label, {})[group.probe] = f"{mean:.2f}" if mean == mean else "-"
    rows = [[label, *(found.get(p, "") for p in probes)] for label, found in scores.items()]
    return ["memory", *probes], rows


def detail(groups: Sequence[Group]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of one probe, best first: score, sizes and cost."""
    header = ["memory", "n", "score", "parameters", "state bytes", "off target", "seconds"]
    ordered = sorted(groups, key=lambda g: -np.nan_to_num(g.score.mean, nan=-np.inf))
    rows = []
    for group in ordered:
        off = group.number("off")
        mark = " (not matched)" if abs(off) > TOLERANCE else ""
        shown = "" if group.match == "none" else f"{off:+.1%}{mark}"
        counts = [_whole(group.number(name)) for name in ("parameters", "state_bytes")]
        seconds = _whole(group.number("seconds"))
        n = str(len(group.results))
        rows.append([group.label, n, str(group.score), *counts, shown, seconds])
    return header, rows


def rule_table(rules: Rules, name: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of one table of the rules alone."""
    header = ["rule", *(f"{x:g}" for x in next(iter(rules.values()))[name])]
    rows = [
        [rule, *(f"{score:.2f}" for score in tables[name].values())]
        for rule, tables in rules.items()
    ]
    return header, rows


def rich_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """For the terminal."""
    table = Table(title=title, title_justify="left")
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    return table


def write_summary(
    folder: Path, sections: Sequence[tuple[str, str]], groups: Sequence[Group]
) -> None:
    """probes.md from titled sections of Markdown, probes.csv with a row for every group."""
    text = "\n\n".join(f"## {title}\n\n{body}" for title, body in sections)
    write_atomically(folder / "probes.md", text + "\n")
    columns: dict[str, list[Cell]] = {
        name: [getattr(group, name) for group in groups]
        for name in ("probe", "memory", "match", "control")
    }
    columns["n"] = [len(group.results) for group in groups]
    for part in ("mean", "low", "high"):
        columns[f"score {part}"] = [float(getattr(group.score, part)) for group in groups]
    for name in NUMBERS:
        columns[name] = [group.number(name) for group in groups]
    columns["failed"] = [len(group.errors) for group in groups]
    write_table(folder / "probes.csv", columns)


def _whole(value: float) -> str:
    return f"{value:,.0f}" if np.isfinite(value) else "-"
