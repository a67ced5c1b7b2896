"""The figures of an evaluation: regret by episode, utility by segment, what memories know."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .episodes import Array
from .evaluation_measures import CARRIED, TWIN
from .figures import COLOURS, DOTS_PER_INCH, Curve, Panel, write_data
from .measures.forgetting import Matrix
from .measures.lifetimes import regret_of_index
from .measures.lives import Lives
from .measures.paired import paired_regret
from .statistics import interval
from .tables import Cell, write_table

CELL_INCHES = 0.52
MOST_EPISODES = 40
SPREAD = 0.5  # of the step between two places, over which the conditions stand side by side
MARKERS = "osD^vPX"
UNIT = "Mean over n = {n} lifetimes of one agent, 95 % intervals over lifetimes."


def draw_figures(folder: Path, title: str, tables: Mapping[str, Lives]) -> None:
    """regret_by_episode and, where tasks change, utility: PNG and CSV each."""
    unit = UNIT.format(n=len(np.unique(tables[CARRIED].lifetime)))
    curves = [_by_episode(name, lives) for name, lives in tables.items()]
    scale = f"{unit} Normalised regret: 0 = reference, 1 = uniform random policy."
    panel = Panel("Regret by episode of a task", "episode of a task", "normalised regret", curves)
    draw_points(folder / "regret_by_episode.png", title, scale, panel)
    if TWIN in tables:
        curve = _utility(tables[CARRIED], tables[TWIN])
        if len(curve.x) > 1:
            name = "regret of the reset twin - regret"
            panel = Panel("Utility U of having lived", "segment of life", name, [curve])
            note = f"{unit} Above 0 the carried memory helps; the twin is reset at every task."
            draw_points(folder / "utility.png", title, note, panel)


def draw_points(path: Path, title: str, caption: str, panel: Panel) -> None:
    """Means with whiskers at whole-numbered places, curves side by side; PNG and data as CSV."""
    figure = Figure(figsize=(6.6, 4.2), layout="constrained")
    axis = figure.subplots()
    count = len(panel.curves)
    for number, curve in enumerate(panel.curves):
        shift = SPREAD * ((number + 0.5) / count - 0.5)
        whiskers = np.nan_to_num(np.stack([curve.mean - curve.low, curve.high - curve.mean]))
        axis.errorbar(
            curve.x + shift,
            curve.mean,
            yerr=whiskers,
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=4,
            linewidth=1.0,
            elinewidth=1.2,
            capsize=2,
            label=curve.label,
        )
    axis.axhline(0.0, color="0.55", linewidth=1, linestyle=(0, (1, 1)))
    axis.set_title(panel.title, fontsize=10)
    axis.set_xlabel(panel.x_label, fontsize=9)
    axis.set_ylabel(panel.y_label, fontsize=9)
    axis.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    if count > 1:
        figure.legend(loc="outside right center", frameon=False, fontsize=9)
    figure.suptitle(title, fontsize=11)
    figure.supxlabel(textwrap.fill(caption, 95), fontsize=8, color="0.25")
    figure.savefig(path, dpi=DOTS_PER_INCH)
    write_data(path.with_suffix(".csv"), [panel])


def draw_matrix(folder: Path, title: str, matrix: Matrix, how: str) -> None:
    """memory_matrix.png and .csv: mean score on every task by age of the memory."""
    mean = _mean_over_lives(matrix.scores)
    rows, columns = mean.shape
    size = (max(4.0, 1.6 + CELL_INCHES * columns), 1.9 + CELL_INCHES * rows)
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    axis.imshow(np.clip(mean, 0, 1), cmap="Blues", vmin=0, vmax=1.15, aspect="auto")
    for (row, column), score in np.ndenumerate(mean):
        if np.isfinite(score):
            colour = "white" if score > 0.7 else "black"
            axis.text(column, row, f"{score:.2f}", ha="center", va="center", color=colour, size=8)
    axis.set_xticks(range(columns), [str(i + 1) for i in range(columns)], size=8)
    axis.set_yticks(range(rows), [str(row) for row in range(rows)], size=8)
    axis.set_xlabel("task, in the order of first visits", size=9)
    axis.set_ylabel("segments lived by the memory", size=9)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    figure.suptitle(f"What the memory knows\n{title}", fontsize=9)
    caption = f"Score: 1 = reference, 0 = random. Mean over n = {len(matrix.scores)} lifetimes. "
    figure.supxlabel(textwrap.fill(caption + how, int(12 * size[0])), fontsize=7, color="0.25")
    figure.savefig(folder / "memory_matrix.png", dpi=DOTS_PER_INCH)
    table: dict[str, list[Cell]] = {"segments_lived": list(range(rows))}
    table |= {f"task_{i + 1}": [float(x) for x in mean[:, i]] for i in range(columns)}
    write_table(folder / "memory_matrix.csv", table)


def _mean_over_lives(scores: Array) -> Array:
    known = np.isfinite(scores)
    count = known.sum(axis=0)
    total = np.where(known, scores, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _by_episode(name: str, lives: Lives) -> Curve:
    last = min(int(lives.episode.max(initial=-1)) + 1, MOST_EPISODES)
    found = [regret_of_index(lives, index) for index in range(last)]
    return _curve(name, np.arange(1, last + 1), found)


def _utility(carried: Lives, twin: Lives) -> Curve:
    paired = paired_regret(carried, twin)
    segments = np.unique(paired.segment)
    return _curve("U", segments + 1, [paired.of_segment(int(s)) for s in segments])


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
