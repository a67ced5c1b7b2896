"""Heat maps for a paper: PNG and SVG, every cell with its number, and the data beside them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..tables import write_table
from .figures import CAPTION_LINE, CHARACTERS_PER_INCH, MOST_COLUMNS, save
from .panels import Grid, grid_table

CELL = (0.5, 0.34)  # inches
FRAME = (1.1, 1.0)  # inches around the cells
SMALLEST = 2.6  # inches a map is wide at least, so that its title fits
TITLE = 38  # characters of a line


def draw_grids(path: Path, title: str, caption: str, grids: Sequence[Grid]) -> None:
    """Write `path` (PNG), the same as SVG, and every cell as CSV, under the same name."""
    columns = min(len(grids), MOST_COLUMNS)
    rows = math.ceil(len(grids) / columns)
    most_rows = max(grid.mean.shape[0] for grid in grids)
    most_columns = max(grid.mean.shape[1] for grid in grids)
    width = columns * max(SMALLEST, FRAME[0] + CELL[0] * most_columns)
    wrapped = textwrap.wrap(caption, int(CHARACTERS_PER_INCH * width))
    height = rows * (FRAME[1] + CELL[1] * most_rows) + 0.4 + CAPTION_LINE * len(wrapped)
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).flatten()
    for grid, axis in zip(grids, axes, strict=False):
        _draw(axis, grid)
    for axis in axes[len(grids) :]:
        axis.set_axis_off()
    figure.supxlabel("\n".join(wrapped), fontsize=8, color="0.25")
    figure.suptitle(textwrap.fill(title, int(CHARACTERS_PER_INCH * width * 0.7)), fontsize=11)
    save(figure, path)
    write_table(path.with_suffix(".csv"), grid_table(grids))


def _draw(axis: Axes, grid: Grid) -> None:
    axis.imshow(np.clip(grid.mean, 0, 1), cmap="Blues", vmin=0, vmax=1.15, aspect="auto")
    for (row, column), mean in np.ndenumerate(grid.mean):
        if np.isfinite(mean):
            colour = "white" if mean > 0.7 else "black"
            axis.text(column, row, f"{mean:.2f}", ha="center", va="center", color=colour, size=8)
    axis.set_title(textwrap.fill(grid.title, TITLE), fontsize=10)
    axis.set_xlabel(grid.x_label, fontsize=9)
    axis.set_ylabel(grid.y_label, fontsize=9)
    axis.set_xticks(range(len(grid.columns)), list(grid.columns), size=8)
    axis.set_yticks(range(len(grid.rows)), list(grid.rows), size=8)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
