"""The figures of an evaluation: regret by episode and task, its split, utility, what is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..drawing.figures import draw
from ..drawing.grids import draw_grids
from ..drawing.panels import Curve, Grid, Panel, Picture
from ..episodes import Array
from ..measures.forgetting import Matrix
from ..measures.horizon import retained
from ..measures.lifetimes import regret_of_index
from ..measures.lives import Lives
from ..measures.paired import paired_regret
from ..measures.segments import Segments, reached, segments_of
from ..statistics import band, interval
from ..tables import Cell, write_table
from .findings import Findings, Outer
from .matrix import OF_TRAINING
from .measures import CARRIED, TWIN

MOST_PLACES = 40
UNIT = "Mean over n = {n} lifetimes of one agent, 95 % intervals over lifetimes."
SCALE = "Normalised regret: 0 = reference, 1 = uniform random policy."
KNOWN = "Score: 1 = reference, 0 = uniform random policy."


def pictures(found: Findings) -> list[Picture]:
    """All figures that there is something to show in."""
    carried = found.tables[CARRIED]
    unit = UNIT.format(n=len(np.unique(carried.lifetime)))
    segments = segments_of(carried)
    shown: list[Picture | None] = [_by_episode(found, unit), _by_task(found, unit)]
    shown.append(_split(segments, found.title, unit))
    if TWIN in found.tables:
        shown.append(_utility(carried, found.tables[TWIN], found.title, unit))
    if found.matrix is not None:
        shown += list(_of_memories(found.matrix, found.title))
    if found.outer is not None:
        shown.append(_of_parameters(found.outer, found.title))
    return [picture for picture in shown if picture is not None]


def draw_figures(folder: Path, shown: Sequence[Picture]) -> None:
    """PNG, SVG and data as CSV of every picture; a matrix is a row of its CSV for every row."""
    for picture in shown:
        path = folder / f"{picture.name}.png"
        if picture.grids:
            draw_grids(path, picture.title, picture.caption, picture.grids)
            write_table(path.with_suffix(".csv"), wide_table(picture.grids[0]))
        else:
            draw(path, picture.title, picture.caption, picture.panels)


def _by_episode(found: Findings, unit: str) -> Picture:
    curves = []
    for name, lives in found.tables.items():
        last = min(int(lives.episode.max(initial=-1)) + 1, MOST_PLACES)
        values = [regret_of_index(lives, index) for index in range(last)]
        curves.append(_curve(name, np.arange(1, last + 1), values))
    title = "Regret by episode of a task"
    return _picture("regret_by_episode", found.title, f"{unit} {SCALE}", title, curves, "episode")


def _by_task(found: Findings, unit: str) -> Picture:
    curves = []
    for name, lives in found.tables.items():
        segments = segments_of(lives)
        curves.append(_by_segment(name, segments, segments.regret))
    title = "Regret by task of a life"
    return _picture("regret_by_task", found.title, f"{unit} {SCALE}", title, curves, "segment")


def _split(segments: Segments, heading: str, unit: str) -> Picture:
    parts = {"transient": segments.transient, "residual": segments.residual}
    curves = [_by_segment(name, segments, values) for name, values in parts.items()]
    note = f"{unit} Regret of the carried life = transient (adapting) + residual (what stays)."
    title = "Transient and residual regret by task of a life"
    return _picture("regret_split", heading, note, title, curves, "segment")


def _utility(carried: Lives, twin: Lives, heading: str, unit: str) -> Picture | None:
    paired = paired_regret(carried, twin)
    places = reached(paired.segment)[:MOST_PLACES]
    if len(places) < 2:
        return None
    curve = _curve("U", places + 1, [paired.of_segment(int(place)) for place in places])
    note = f"{unit} Above 0 the carried memory helps; the twin is reset at every task."
    title = "Utility U of having lived"
    shown = _picture("utility", heading, note, title, [curve], "segment")
    return shown


def _of_memories(matrix: Matrix, heading: str) -> Iterator[Picture]:
    parts = [str(row) for row in range(matrix.num_parts + 1)]
    labels = ("What the memory knows", "task, by first visit", "segments lived")
    note = f"{KNOWN} Mean over n = {len(matrix.scores)} lifetimes; rows are snapshots of memory."
    tasks = [str(task + 1) for task in range(matrix.scores.shape[2])]
    yield Picture("memory_matrix", heading, note, grids=[_grid(matrix, labels, parts, tasks)])
    retention = retained(matrix)
    curve = _curve("retained", np.arange(matrix.num_parts), list(retention.T))
    title = "Score by segments since the last visit"
    yield _picture("memory_horizon", heading, note, title, [curve], "lag")


def _of_parameters(outer: Outer, heading: str) -> Picture:
    labels = ("What the outer parameters know", "task", "environment step")
    rows = [f"{step / 1e3:,.0f}k" if step >= 1000 else str(step) for step in outer.steps]
    tasks = [str(number + 1) for number in range(len(outer.tasks))]
    named = "; ".join(f"{number}: {name}" for number, name in zip(tasks, outer.tasks, strict=True))
    note = (
        f"{KNOWN} Mean over n = {len(outer.matrix.scores)} lifetimes {OF_TRAINING}; rows are "
        f"checkpoints of training, each with a fresh memory. Tasks: {named}."
    )
    return Picture("outer_matrix", heading, note, grids=[_grid(outer.matrix, labels, rows, tasks)])


def _grid(
    matrix: Matrix, labels: tuple[str, str, str], rows: Sequence[str], tasks: Sequence[str]
) -> Grid:
    title, x_label, y_label = labels
    lives, *shape = matrix.scores.shape
    means = band(matrix.scores.reshape(lives, -1))
    parts = (means.mean, means.low, means.high, means.num_runs)
    return Grid(title, x_label, y_label, tasks, rows, *(part.reshape(shape) for part in parts))


def wide_table(grid: Grid) -> dict[str, list[Cell]]:
    """Means as a table, a row for every row of the matrix."""
    table: dict[str, list[Cell]] = {grid.y_label.replace(" ", "_"): list(grid.rows)}
    for number in range(len(grid.columns)):
        table[f"task_{number + 1}"] = [float(mean) for mean in grid.mean[:, number]]
    return table


X_LABELS = {
    "episode": ("episode of a task", "normalised regret"),
    "segment": ("task of a life, in the order of living", "normalised regret"),
    "lag": ("segments since the last visit", "score"),
}


def _picture(
    name: str, heading: str, caption: str, title: str, curves: Sequence[Curve], kind: str
) -> Picture:
    panel = Panel(title, *X_LABELS[kind], curves, kind="points", empty="no whole segment")
    return Picture(name, heading, caption, [panel])


def _by_segment(label: str, segments: Segments, values: Array) -> Curve:
    places = reached(segments.segment)[:MOST_PLACES]
    return _curve(label, places + 1, [values[segments.segment == place] for place in places])


def _curve(label: str, x: Array, values: Sequence[Array]) -> Curve:
    found = [interval(numbers) for numbers in values]
    return Curve(
        label,
        x,
        mean=np.array([one.mean for one in found]),
        low=np.array([one.low for one in found]),
        high=np.array([one.high for one in found]),
        num_runs=np.array([one.num_runs for one in found], np.int64),
    )
