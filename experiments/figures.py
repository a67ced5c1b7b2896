"""Figures for a paper: curves with bands, a legend beside the axes, the data beside the picture."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import NDArray

from .tables import Cell, write_table

Array = NDArray[Any]

# Okabe and Ito's palette, safe for colour-blind readers; line styles tell curves apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
STYLES = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)))
PANEL_SIZE = (4.2, 3.3)  # inches
SINGLE_PANEL_SIZE = (5.2, 3.6)
DOTS_PER_INCH = 160
CHARACTERS_PER_INCH = 16  # of caption text
LEGEND_CHARACTERS = 26
LEGEND_WIDTH = 1.8  # inches


@dataclass(frozen=True)
class Curve:
    """A mean over runs `[num_points]`; `low` and `high` are NaN where there is no band."""

    label: str
    x: Array
    mean: Array
    low: Array
    high: Array
    num_runs: Array


@dataclass(frozen=True)
class Panel:
    """One pair of axes. `reference` draws a thin line of comparison: (label, x, y)."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    reference: tuple[str, Array, Array] | None = None


def draw(path: Path, title: str, caption: str, panels: Sequence[Panel]) -> None:
    """Write `path` (PNG) and the data behind it as CSV under the same name.

    Curves keep their colour by label over all panels; equal labels share one legend entry. Lines
    join the points that are known.
    """
    width, height = PANEL_SIZE if len(panels) > 1 else SINGLE_PANEL_SIZE
    figure = Figure(
        figsize=(width * len(panels) + LEGEND_WIDTH, height + 0.8), layout="constrained"
    )
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
    for panel, axis in zip(panels, axes, strict=True):
        _draw_panel(axis, panel, labels)
        axis.set_ylim(_limits([other for other in panels if other.y_label == panel.y_label]))
    handles = {h.get_label(): h for axis in axes for h in axis.get_lines() if h.get_label()}
    shown = {name: handle for name, handle in handles.items() if not str(name).startswith("_")}
    figure.legend(
        list(shown.values()),
        [_folded(str(name)) for name in shown],
        loc="outside right center",
        frameon=False,
        fontsize=9,
    )
    wrapped = textwrap.fill(caption, int(CHARACTERS_PER_INCH * width * len(panels)))
    figure.supxlabel(wrapped, fontsize=8, color="0.25")
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=DOTS_PER_INCH)
    write_data(path.with_suffix(".csv"), panels)


def _draw_panel(axis: Axes, panel: Panel, labels: Sequence[str]) -> None:
    for curve in panel.curves:
        number = labels.index(curve.label)
        colour = COLOURS[number % len(COLOURS)]
        style = STYLES[number % len(STYLES)]
        known = np.isfinite(curve.mean)
        axis.plot(
            curve.x[known],
            curve.mean[known],
            color=colour,
            linestyle=style,
            linewidth=1.6,
            marker="o" if known.sum() == 1 else None,
            label=curve.label,
        )
        banded = np.isfinite(curve.low)
        axis.fill_between(
            curve.x[banded],
            curve.low[banded],
            curve.high[banded],
            color=colour,
            alpha=0.18,
            linewidth=0,
        )
    if panel.reference is not None:
        name, x, y = panel.reference
        axis.plot(x, y, color="0.55", linewidth=1, linestyle=(0, (1, 1)), label=name)
    axis.set_title(panel.title, fontsize=10)
    axis.set_xlabel(panel.x_label, fontsize=9)
    axis.set_ylabel(panel.y_label, fontsize=9)
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.xaxis.set_major_locator(MaxNLocator(5))
    if not any(np.isfinite(curve.mean).any() for curve in panel.curves):
        axis.text(0.5, 0.5, "no finished episode", transform=axis.transAxes, ha="center")
    axis.set_xlim(left=0)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)


def _limits(panels: Sequence[Panel]) -> tuple[float, float]:
    """Common limits of panels in one unit, from their means: a band over two runs dwarfs them."""
    drawn = [curve.mean for panel in panels for curve in panel.curves]
    drawn += [panel.reference[2] for panel in panels if panel.reference is not None]
    known = np.concatenate([np.zeros(1), *(values[np.isfinite(values)] for values in drawn)])
    low, high = float(known.min()), float(known.max())
    margin = 0.15 * (high - low) or 1.0
    return (low - margin if low < 0 else 0.0), high + margin


def _folded(label: str) -> str:
    """In lines of a legend; a key=value is never torn."""
    return textwrap.fill(label, LEGEND_CHARACTERS, break_long_words=False, break_on_hyphens=False)


def write_data(path: Path, panels: Sequence[Panel]) -> None:
    """The numbers behind a figure, a row for every point."""
    columns: dict[str, list[Cell]] = {
        name: [] for name in ("panel", "curve", "x", "mean", "low", "high", "num_runs")
    }
    for panel in panels:
        for curve in panel.curves:
            count = len(curve.x)
            columns["panel"] += [panel.title] * count
            columns["curve"] += [curve.label] * count
            for name in ("x", "mean", "low", "high"):
                columns[name] += [float(value) for value in getattr(curve, name)]
            columns["num_runs"] += [int(value) for value in curve.num_runs]
    write_table(path, columns)
