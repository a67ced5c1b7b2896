"""The figures of a study: learning and difficulty curves of a probe, all memories on all probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..drawing.figures import DOTS_PER_INCH, draw
from ..drawing.panels import COLOURS, Curve, Panel
from ..statistics import band
from .member import Result
from .summary import Group
from .task import Task

MOST_CURVES = len(COLOURS)  # more could not be told apart
CELL_SIZE = (0.95, 0.3)  # inches of the overview


def draw_probe(folder: Path, probe: str, task: Task, groups: Sequence[Group]) -> None:
    """`PROBE.png` and its data: training score by update, test score by size of the task."""
    known = [group for group in groups if group.results]
    if not known:
        return
    best = sorted(known, key=lambda group: -group.score.mean)[:MOST_CURVES]
    shown = [group for group in known if group in best]
    panels = []
    for title, x_label, name in (
        ("Training", "updates", "training"),
        ("Test", f"{task.size_name}", "by_size"),
    ):
        curves = [_curve(group, name) for group in shown]
        ends = np.array([0.0, max(float(curve.x[-1]) for curve in curves)])
        chance = ("chance", ends, np.full(2, task.chance))
        panels.append(Panel(title, x_label, "score", curves, chance))
    counts = sorted({len(group.results) for group in shown})
    caption = f"Mean over seeds (n = {', '.join(map(str, counts))}), 95 % t-bands where n > 1."
    if len(shown) < len(known):
        caption += f" The {len(shown)} best of {len(known)} memories."
    draw(folder / f"{probe}.png", probe, caption, panels)


def draw_overview(
    folder: Path, header: Sequence[str], rows: Sequence[Sequence[str]], chances: Mapping[str, float]
) -> None:
    """`probes.png`: scores as numbers, on a scale from chance (white) to 1."""
    probes, labels = header[1:], [row[0] for row in rows]
    floors = np.array([chances[probe] for probe in probes])
    scores = np.array([[_number(cell) for cell in row[1:]] for row in rows])
    size = (2.4 + CELL_SIZE[0] * len(probes), 1.4 + CELL_SIZE[1] * len(rows))
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    shade = np.clip((scores - floors) / (1 - floors), 0, 1)
    axis.imshow(shade, cmap="Blues", vmin=0, vmax=1.15, aspect="auto")
    for (row, column), score in np.ndenumerate(scores):
        if np.isfinite(score):
            dark = shade[row, column] > 0.7
            colour = "white" if dark else "black"
            axis.text(column, row, f"{score:.2f}", ha="center", va="center", color=colour, size=8)
    axis.set_xticks(range(len(probes)), probes, rotation=30, ha="left", size=8)
    axis.set_yticks(range(len(labels)), labels, size=8)
    axis.xaxis.tick_top()
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    figure.supxlabel("Mean test score; white is chance, dark is 1.", fontsize=8, color="0.25")
    figure.savefig(folder / "probes.png", dpi=DOTS_PER_INCH)


def _curve(group: Group, name: str) -> Curve:
    def values(result: Result) -> Mapping[float, float]:
        found: Mapping[float, float] = getattr(result, name)
        return found

    x: Any = np.array(list(values(group.results[0])))
    found = band(np.array([list(values(result).values()) for result in group.results]))
    return Curve(group.label, x, found.mean, found.low, found.high, found.num_runs)


def _number(cell: str) -> float:
    return float(cell) if cell not in ("", "-") else float("nan")
