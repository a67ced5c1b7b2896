"""One panel of a figure on matplotlib's axes: lines with bands, or points with whiskers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator

from .panels import COLOURS, STYLES, Curve, Panel, limits

CLEAR, FAINT, FEW = 0.18, 0.07, 6  # opacity of bands; many of them would hide the curves


def draw_panel(axis: Axes, panel: Panel, labels: Sequence[str], panels: Sequence[Panel]) -> None:
    """Draw `panel`; colours go by a curve's place in `labels`, limits by all panels of its unit."""
    draw = _draw_points if panel.kind == "points" else _draw_line
    for curve, shift in zip(panel.curves, panel.shifts(), strict=True):
        number = labels.index(curve.label)
        draw(axis, curve, number, shift, FAINT if len(panel.curves) > FEW else CLEAR)
    for border in panel.borders:
        axis.axvline(border, color="0.75", linewidth=0.8, zorder=0)
    if panel.reference is not None:
        name, x, y = panel.reference
        axis.plot(x, y, color="0.55", linewidth=1, linestyle=(0, (1, 1)), label=name)
    _dress(axis, panel)
    axis.set_yscale(panel.y_scale)
    axis.set_ylim(limits([other for other in panels if other.y_label == panel.y_label]))


def _draw_line(axis: Axes, curve: Curve, number: int, shift: float, alpha: float) -> None:
    del shift
    known, banded = np.isfinite(curve.mean), np.isfinite(curve.low)
    colour = COLOURS[number % len(COLOURS)]
    axis.plot(
        curve.x[known],
        curve.mean[known],
        color=colour,
        linestyle=_style(number),
        linewidth=1.6,
        marker="o" if known.sum() == 1 else None,
        label=curve.label,
    )
    axis.fill_between(
        curve.x[banded],
        curve.low[banded],
        curve.high[banded],
        color=colour,
        alpha=alpha,
        linewidth=0,
    )


def _draw_points(axis: Axes, curve: Curve, number: int, shift: float, alpha: float) -> None:
    del alpha
    whiskers = np.nan_to_num(np.stack([curve.mean - curve.low, curve.high - curve.mean]))
    axis.errorbar(
        curve.x + shift,
        curve.mean,
        yerr=np.maximum(whiskers, 0.0),
        color=COLOURS[number % len(COLOURS)],
        linestyle=_style(number),
        marker="o",
        markersize=4,
        linewidth=1.0,
        elinewidth=1.2,
        capsize=2,
        label=curve.label,
    )


def _dress(axis: Axes, panel: Panel) -> None:
    axis.set_title(panel.title, fontsize=10)
    axis.set_xlabel(panel.x_label, fontsize=9)
    axis.set_ylabel(panel.y_label, fontsize=9)
    if panel.kind == "points":
        axis.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    else:
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        axis.xaxis.set_major_locator(MaxNLocator(5))
        axis.set_xlim(left=panel.start)
    if not any(np.isfinite(curve.mean).any() for curve in panel.curves):
        axis.text(0.5, 0.5, panel.empty, transform=axis.transAxes, ha="center")
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)


def _style(number: int) -> Any:
    dashes = STYLES[number % len(STYLES)]
    return (0, dashes) if dashes else "-"
