"""What a figure shows, before anything draws it: panels of curves with bands, in one palette."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..tables import Array as Array
from ..tables import Cell

# Okabe and Ito's palette, safe for colour-blind readers; dashes tell curves apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
STYLES: tuple[tuple[float, ...], ...] = ((), (4, 2), (6, 2, 1, 2), (5, 1, 1, 1, 1, 1), (1.5, 1.5))
SPREAD = 0.6  # of the step between two places, over which points stand side by side


@dataclass(frozen=True)
class Curve:
    """A mean over runs `[num_points]`; `low` and `high` are NaN where there is no band."""

    label: str
    x: Array
    mean: Array
    low: Array
    high: Array
    num_runs: Array

    def thinned(self, most: int) -> Curve:
        """At most `most` of its points, evenly spaced from the first to the last."""
        if len(self.x) <= most:
            return self
        kept = np.unique(np.linspace(0, len(self.x) - 1, most).round().astype(int))
        parts = (getattr(self, name)[kept] for name in ("x", "mean", "low", "high", "num_runs"))
        return Curve(self.label, *parts)


@dataclass(frozen=True)
class Panel:
    """One pair of axes, from `start` on. `kind` draws lines with bands or points with whiskers.

    `reference` draws a thin line of comparison: (label, x, y); `borders` are places on the x axis
    where something changes; `empty` is said where no curve has a known point. The y axis of a `log`
    panel shows powers of ten, and only what is above 0.
    """

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    reference: tuple[str, Array, Array] | None = None
    kind: Literal["lines", "points"] = "lines"
    borders: Sequence[float] = ()
    start: float | None = 0.0
    empty: str = "no finished episode"
    y_scale: Literal["linear", "log"] = "linear"

    def shifts(self) -> list[float]:
        """How far the points of every curve stand from their places: side by side where several
        share one.
        """
        places = [x for curve in self.curves for x in np.unique(curve.x)]
        if self.kind == "lines" or len(set(places)) == len(places):
            return [0.0] * len(self.curves)
        count = len(self.curves)
        return [SPREAD * ((place + 0.5) / count - 0.5) for place in range(count)]


@dataclass(frozen=True)
class Grid:
    """A heat map: means over runs `[num_rows, num_columns]`, NaN where nothing is known; 1 is full
    and 0 is no colour. `low`, `high` and `num_runs` are as in a curve.
    """

    title: str
    x_label: str
    y_label: str
    columns: Sequence[str]
    rows: Sequence[str]
    mean: Array
    low: Array
    high: Array
    num_runs: Array


@dataclass(frozen=True)
class Picture:
    """A figure as data: its file's `name` without an ending, what it says, and its panels or heat
    maps.
    """

    name: str
    title: str
    caption: str
    panels: Sequence[Panel] = ()
    grids: Sequence[Grid] = ()


def labels_of(panels: Sequence[Panel]) -> list[str]:
    """The labels of all curves, each once: a label has one colour everywhere."""
    return list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))


def limits(panels: Sequence[Panel]) -> tuple[float, float]:
    """Common limits of panels in one unit, from their means: a band over two runs dwarfs them.

    Of a linear axis also from the whiskers of points, as far as the means spread above and below.
    """
    drawn = [curve.mean for panel in panels for curve in panel.curves]
    drawn += [panel.reference[2] for panel in panels if panel.reference is not None]
    known = np.concatenate([np.zeros(0), *(values[np.isfinite(values)] for values in drawn)])
    if any(panel.y_scale == "log" for panel in panels):
        above = known[known > 0]
        low, high = (float(above.min()), float(above.max())) if len(above) else (1.0, 10.0)
        return low / 1.5, high * 1.5
    low, high = min(float(known.min(initial=0.0)), 0.0), float(known.max(initial=0.0))
    ends = [np.zeros(0)]
    for curve in (c for panel in panels if panel.kind == "points" for c in panel.curves):
        ends += [whisker[np.isfinite(whisker)] for whisker in (curve.low, curve.high)]
    reach = np.clip(np.concatenate(ends), low - (high - low), high + (high - low))
    low, high = float(reach.min(initial=low)), float(reach.max(initial=high))
    margin = 0.15 * (high - low) or 1.0
    return (low - margin if low < 0 else 0.0), high + margin


def panel_table(panels: Sequence[Panel]) -> dict[str, list[Cell]]:
    """The numbers of a figure as columns, a row for every point."""
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
    return columns


def grid_table(grids: Sequence[Grid]) -> dict[str, list[Cell]]:
    """The numbers of heat maps as columns, a row for every cell."""
    columns: dict[str, list[Cell]] = {
        name: [] for name in ("panel", "row", "column", "mean", "low", "high", "num_runs")
    }
    for grid in grids:
        for (row, column), mean in np.ndenumerate(grid.mean):
            columns["panel"].append(grid.title)
            columns["row"].append(grid.rows[row])
            columns["column"].append(grid.columns[column])
            columns["mean"].append(float(mean))
            columns["low"].append(float(grid.low[row, column]))
            columns["high"].append(float(grid.high[row, column]))
            columns["num_runs"].append(int(grid.num_runs[row, column]))
    return columns
