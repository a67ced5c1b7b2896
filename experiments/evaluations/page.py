"""The page of an evaluation: what carrying a memory is worth, what is forgotten, what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..comparisons.comparison import Comparison
from ..drawing.panels import Picture
from ..pages.document import Pictures, charts_of, noted, render, said
from ..pages.markup import paragraphs
from ..tables import Cell
from .conditions import DESCRIPTIONS
from .findings import Findings
from .in_short import in_short
from .measures import Row
from .report import ABSENT, cell_text

PAGE = "report.html"
# Key -> heading, codes of the measures in its table, pictures, what is said where there is neither.
SECTIONS: Mapping[str, tuple[str, Sequence[str], Sequence[str], str]] = {
    "episode": ("Regret by episode of a task", ("M1", "M2"), ("regret_by_episode",), ""),
    "task": ("Regret by task of a life", ("M4", "M10", "M11"), ("regret_by_task",), ""),
    "split": ("Transient and residual regret", ("M3",), ("regret_split",), ""),
    "transfer": (
        "Transfer: what having lived is worth",
        ("M5", "M8", "M9", "M15", "pair"),
        ("utility",),
        "Lives of one task have nothing to carry over.",
    ),
    "forgetting": (
        "Forgetting: what is known after every task",
        ("M6", "M7", "M16"),
        ("memory_matrix", "memory_horizon", "outer_matrix"),
        "No matrix: tasks must change within a life (probe_lifetimes=0 leaves it out).",
    ),
    "tail": ("Tail", ("M12",), (), ""),
    "plasticity": (
        "Plasticity: whether it can still learn",
        ("M13",),
        (),
        "Lives were too short to be measured at their start and at their end.",
    ),
    "cost": ("Cost", ("M14",), (), ""),
}


def evaluation_page(found: Findings, shown: Sequence[Picture]) -> str:
    """The page as text, with the notes of the evaluation under its first table."""

    def sections(pictures: Pictures, labels: Sequence[str]) -> dict[str, tuple[str, str]]:
        made = sections_of(found.rows, pictures, labels)
        notes = Comparison((), (), {}, found.notes)
        return made | {"how": ("How it was measured", noted(notes))}

    return render(found.title, {picture.name: picture for picture in shown}, sections)


def sections_of(
    rows: Sequence[Row], pictures: Pictures, labels: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Key -> (heading, table and charts) of everything that was measured."""
    short = in_short(rows)
    made = {"short": ("In short", paragraphs(short))} if short else {}
    for key, (heading, codes, names, empty) in SECTIONS.items():
        table = measures_table([row for row in rows if row.code in codes])
        charts = "".join(charts_of(pictures[name], labels) for name in names if name in pictures)
        content = charts + (noted(table) if table.rows else "")
        if key == "episode":
            content += paragraphs(_conditions(table.header[1:]))
        if content or empty:
            made[key] = (heading, content or said(empty))
    return made


def _conditions(names: Sequence[str]) -> list[str]:
    """What becomes of the memory under every condition."""
    return [f"{name}: {DESCRIPTIONS[name]}" for name in names]


def measures_table(rows: Sequence[Row]) -> Comparison:
    """A line for every measure that is known, a column for every condition."""
    known = [row for row in rows if cell_text(row) != ABSENT]
    conditions = list(dict.fromkeys(row.condition for row in known))
    measures = list(dict.fromkeys(row.measure for row in known))
    cells = {(row.measure, row.condition): row for row in known}
    header = ["measure", *conditions]
    text = [[name, *(_text(cells.get((name, one))) for one in conditions)] for name in measures]
    data: dict[str, list[Cell]] = {"measure": list(measures)}
    for one in conditions:
        found = [cells.get((name, one)) for name in measures]
        for part in ("mean", "low", "high", "num_runs"):
            numbers = [None if row is None else getattr(row.value, part) for row in found]
            data[f"{one}: {part}"] = numbers
    notes = [f"{row.measure}, {row.condition}: {row.note}" for row in known if row.note]
    return Comparison(header, text, data, [note for note in notes if "never" not in note])


def _text(row: Row | None) -> str:
    return "" if row is None else cell_text(row)
