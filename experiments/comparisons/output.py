"""Everything a comparison leaves in its folder: tables, pictures, their data and report.html."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..folder import write_atomically
from ..pages.page import Page, render
from ..report import regret_scale
from ..tables import write_table
from .comparison import Comparison, differences, plain_table, write_tables
from .contrasts import aggregate_table, contrast_table, contrasts, declare
from .evaluated import evaluations, transfer_table
from .figures import draw_pictures, matrix_pictures, pictures
from .groups import Group
from .latex import latex_table

REPORT = "report.html"


@dataclass(frozen=True)
class Request:
    """`last`: the end of a run, as `RunResult.final_episodes` takes it; `reference` and `declared`
    as `contrasts.declare` takes them. `left_out`: notes on runs that were skipped.
    """

    last: float = 0.1
    reference: str = ""
    declared: str = ""
    left_out: Sequence[str] = ()


def write_comparison(folder: Path, groups: Sequence[Group], request: Request) -> Comparison:
    """Write all of it; returns the main table. Raises UsageError before anything is written."""
    declared = declare(groups, request.reference, request.declared)
    table = plain_table(groups, request.last)
    table = replace(table, notes=[*request.left_out, *table.notes])
    scale = regret_scale(run.summary for group in groups for run in group.runs)
    aggregates = _with(scale, aggregate_table(groups, request.last))
    beside = _with(scale, contrast_table(contrasts(groups, declared, request.last)))
    evaluated = evaluations(groups)
    transfer = transfer_table(groups, evaluated)
    found = [*pictures(groups, request.last), *matrix_pictures(groups, evaluated)]
    folder.mkdir(parents=True, exist_ok=True)
    write_tables(folder, table, groups)
    _write(folder, "aggregates", aggregates)
    if beside.rows:
        _write(folder, "contrasts", beside)
    if transfer.rows:
        _write(folder, "transfer", transfer)
    draw_pictures(folder, found)
    page = Page(
        title=found[0].title,
        summary=table,
        aggregates=aggregates,
        contrasts=beside if beside.rows else None,
        transfer=transfer if transfer.rows else None,
        pictures={picture.name: picture for picture in found},
        differences=differences(groups),
        runs=[(group.label, str(run.path)) for group in groups for run in group.runs],
    )
    write_atomically(folder / REPORT, render(page))
    return table


def _with(note: str, table: Comparison) -> Comparison:
    return replace(table, notes=[*table.notes, note])


def _write(folder: Path, name: str, table: Comparison) -> None:
    write_table(folder / f"{name}.csv", table.data)
    write_atomically(folder / f"{name}.tex", latex_table(table.header, table.rows, table.notes))
