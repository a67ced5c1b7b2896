"""A heat map as SVG: every cell with its number in it and all of them on hover."""

from __future__ import annotations

import math
from html import escape

from ..drawing.panels import Grid
from .markup import tag

CELL, GAP = 46, 2
LEFT, TOP, BOTTOM = 58, 30, 44
TITLE_CHARACTER = 8  # pixels
FULL = 0.55  # from this share of colour on, the number is written in the colour of the ground


def heat_map(grid: Grid, name: str) -> str:
    """The grid as an `<svg>` of the id `name`; the colour of a cell is clipped to 0 .. 1."""
    rows, columns = grid.mean.shape
    width = max(LEFT + columns * CELL + 12, TITLE_CHARACTER * len(grid.title) + 16)
    height = TOP + rows * CELL * 0.7 + BOTTOM
    parts = [
        _text(8, 16, grid.title, "start", "title"),
        _text(LEFT + columns * CELL / 2, height - 8, grid.x_label),
    ]
    middle = TOP + rows * CELL * 0.35
    turned = {"x": 14, "y": middle, "transform": f"rotate(-90 14 {middle:g})"}
    parts.append(tag("text", escape(grid.y_label), turned | {"text-anchor": "middle"}))
    for column, label in enumerate(grid.columns):
        parts.append(_text(LEFT + (column + 0.5) * CELL, height - BOTTOM + 16, label, kind="tick"))
    for row, label in enumerate(grid.rows):
        parts.append(_text(LEFT - 8, TOP + (row + 0.5) * CELL * 0.7 + 4, label, "end", "tick"))
        parts += [_cell(grid, row, column) for column in range(columns)]
    attributes = {
        "id": name,
        "class": "heat",
        "viewBox": f"0 0 {width:g} {height:g}",
        "style": f"width:{width:g}px",
        "role": "img",
        "aria-label": f"{grid.title}: {grid.y_label} by {grid.x_label}",
    }
    return tag("svg", "".join(parts), attributes)


def _cell(grid: Grid, row: int, column: int) -> str:
    mean = float(grid.mean[row, column])
    if not math.isfinite(mean):
        return ""
    low, high = float(grid.low[row, column]), float(grid.high[row, column])
    between = f" [{low:.4g}, {high:.4g}]" if math.isfinite(low) else ""
    said = f"{mean:.4g}{between}, n = {grid.num_runs[row, column]}"
    x, y = LEFT + column * CELL, TOP + row * CELL * 0.7
    share = min(max(mean, 0.0), 1.0)
    box = {
        "x": x,
        "y": f"{y:g}",
        "width": CELL - GAP,
        "height": f"{CELL * 0.7 - GAP:g}",
        "class": "cell",
        "fill-opacity": f"{share:.3f}",
    }
    kind = "full" if share > FULL else "faint"
    number = _text(x + CELL / 2 - GAP / 2, y + CELL * 0.35 + 4, f"{mean:.2f}", kind=kind)
    return tag("g", tag("title", escape(said)) + tag("rect", "", box) + number)


def _text(x: float, y: float, text: str, anchor: str = "middle", kind: str = "") -> str:
    attributes = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    return tag("text", escape(text), attributes | ({"class": kind} if kind else {}))
