"""Figures for a paper: PNG and SVG, a legend beside the axes, the data beside the picture."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from ..tables import write_table
from .axes import draw_panel
from .panels import Curve as Curve
from .panels import Panel as Panel
from .panels import labels_of, panel_table

PANEL_SIZE = (4.2, 3.3)  # inches
SINGLE_PANEL_SIZE = (5.2, 3.6)
MOST_COLUMNS = 3  # of panels: more make a figure that no page can hold
DOTS_PER_INCH = 160
CHARACTERS_PER_INCH = 15  # of caption text
CAPTION_LINE = 0.14  # inches
LEGEND_CHARACTERS = 26
LONGEST_WORD = 40  # characters of a label that stay in one line
LEGEND_CHARACTER = 0.075  # inches
LEGEND_LINE = 0.17  # inches
LEGEND_HANDLE = 0.6  # inches


def draw(path: Path, title: str, caption: str, panels: Sequence[Panel]) -> None:
    """Write `path` (PNG), the same as SVG, and the data behind it as CSV, under the same name.

    Curves keep their colour by label over all panels; equal labels share one legend entry. Lines
    join the points that are known. The legend takes as many columns as its labels need.
    """
    width, height = PANEL_SIZE if len(panels) > 1 else SINGLE_PANEL_SIZE
    columns = min(len(panels), MOST_COLUMNS)
    rows = math.ceil(len(panels) / columns)
    body = height * rows
    legend = _Legend([*labels_of(panels), *_references(panels)], body)
    wrapped = textwrap.wrap(caption, int(CHARACTERS_PER_INCH * (width * columns + legend.width)))
    size = (width * columns + legend.width, body + 0.4 + CAPTION_LINE * len(wrapped))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).flatten()
    labels = labels_of(panels)
    for panel, axis in zip(panels, axes, strict=False):
        draw_panel(axis, panel, labels, panels)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    legend.add_to(figure)
    figure.supxlabel("\n".join(wrapped), fontsize=8, color="0.25")
    figure.suptitle(title, fontsize=11)
    save(figure, path)
    write_data(path.with_suffix(".csv"), panels)


def save(figure: Figure, path: Path) -> None:
    """Write `path` (PNG) and the same as SVG; same data, same bytes."""
    figure.savefig(path, dpi=DOTS_PER_INCH)
    with rc_context({"svg.hashsalt": "sojourn", "svg.fonttype": "none"}):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})


def write_data(path: Path, panels: Sequence[Panel]) -> None:
    """The numbers behind a figure, a row for every point."""
    write_table(path, panel_table(panels))


class _Legend:
    """A legend beside the axes, no higher than they are: its labels in lines, and its columns."""

    def __init__(self, labels: Sequence[str], height: float) -> None:
        self._folded = {label: _folded(label) for label in labels}
        lines = [line for text in self._folded.values() for line in text.splitlines()]
        self._columns = max(1, math.ceil(len(lines) * LEGEND_LINE / height))
        longest = max(map(len, lines), default=0)
        self.width = self._columns * (LEGEND_HANDLE + LEGEND_CHARACTER * longest)

    def add_to(self, figure: Figure) -> None:
        """Put it to the right of all axes of `figure`."""
        found: dict[str, Artist] = {}
        for axis in figure.axes:
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
                found.setdefault(str(label), handle)
        figure.legend(
            list(found.values()),
            [self._folded[label] for label in found],
            loc="outside right center",
            ncols=self._columns,
            frameon=False,
            fontsize=9,
        )


def _references(panels: Sequence[Panel]) -> list[str]:
    names = [panel.reference[0] for panel in panels if panel.reference is not None]
    return list(dict.fromkeys(names))


def _folded(label: str) -> str:
    """In lines of a legend; a key=value is torn only where it is longer than LONGEST_WORD."""
    words = [word for part in label.split() for word in textwrap.wrap(part, LONGEST_WORD)]
    lines = [""]
    for word in words:
        joined = f"{lines[-1]} {word}".strip()
        if lines[-1] and len(joined) > LEGEND_CHARACTERS:
            lines.append(word)
        else:
            lines[-1] = joined
    return "\n".join(lines)
