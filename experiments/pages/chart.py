"""A panel as SVG: axes, bands, lines or points, task borders; colours come from the page's style.

Every curve is a group of class `curve` with the number of its label, so that a script can hide it
or read its points off the picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np
from matplotlib.ticker import EngFormatter, Locator, LogLocator, MaxNLocator

from ..drawing.panels import COLOURS, STYLES, Array, Curve, Panel, limits
from .markup import tag

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 20, 30, 44
NUM_TICKS = 5
MANY_DECADES = 3  # of a logarithmic axis, from which on only powers of ten are marked
OUTSIDE = 0.5  # of the height: bands that reach further are cut


@dataclass(frozen=True)
class Scale:
    """From numbers to pixels of a chart."""

    x: tuple[float, float]
    y: tuple[float, float]
    y_scale: Literal["linear", "log"] = "linear"

    @classmethod
    def of(cls, panel: Panel, panels: Sequence[Panel]) -> Scale:
        """The limits of a panel; panels in one unit share those of the y axis."""
        places = [curve.x[np.isfinite(curve.mean)] for curve in panel.curves]
        places += [panel.reference[1]] if panel.reference is not None else []
        known = np.concatenate([np.zeros(0), *places])
        low = float(known.min()) if len(known) else 0.0
        high = float(known.max()) if len(known) else 1.0
        if panel.kind == "points":
            low, high = low - 0.5, high + 0.5
        elif panel.start is not None:
            low = panel.start
        same = [other for other in panels if other.y_label == panel.y_label]
        return cls((low, high if high > low else low + 1.0), limits(same), panel.y_scale)

    def across(self, x: float) -> float:
        """Pixels from the left."""
        low, high = self.x
        return LEFT + (x - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def down(self, y: float) -> float:
        """Pixels from the top; far outside the axes it stays near their edge."""
        low, high = self.y
        if self.y_scale == "log":
            share = math.log(y / low) / math.log(high / low) if y > 0 else -OUTSIDE
        else:
            share = (y - low) / (high - low)
        share = min(max(share, -OUTSIDE), 1 + OUTSIDE)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def chart(panel: Panel, panels: Sequence[Panel], labels: Sequence[str], name: str) -> str:
    """The panel as an `<svg>` whose elements are named after `name`."""
    scale = Scale.of(panel, panels)
    parts = [_frame(panel, scale)]
    borders = [b for b in panel.borders if scale.x[0] <= b <= scale.x[1]]
    parts += [
        _line(scale.across(b), TOP, scale.across(b), HEIGHT - BOTTOM, "border") for b in borders
    ]
    if panel.reference is not None:
        title, x, y = panel.reference
        path = tag("path", tag("title", escape(title)), {"d": _path(scale, x, y), "class": "aim"})
        parts.append(path)
    curves = [
        _curve(panel, curve, labels.index(curve.label), scale, shift)
        for curve, shift in zip(panel.curves, panel.shifts(), strict=True)
    ]
    clip = tag(
        "rect",
        "",
        {
            "x": LEFT,
            "y": TOP - 8,
            "width": WIDTH - LEFT - RIGHT + 6,
            "height": HEIGHT - TOP - BOTTOM + 12,
        },
    )
    parts.append(tag("clipPath", clip, {"id": f"{name}-clip"}))
    parts.append(tag("g", "".join(curves), {"clip-path": f"url(#{name}-clip)"}))
    if not any(np.isfinite(curve.mean).any() for curve in panel.curves):
        parts.append(_text(WIDTH / 2, HEIGHT / 2, panel.empty, "middle"))
    attributes = {
        "id": name,
        "class": "chart",
        "viewBox": f"0 0 {WIDTH} {HEIGHT}",
        "role": "img",
        "tabindex": 0,
        "aria-label": f"{panel.title}: {panel.y_label} over {panel.x_label}",
        "data-x0": repr(scale.x[0]),
        "data-x1": repr(scale.x[1]),
        "data-left": LEFT,
        "data-right": WIDTH - RIGHT,
        "data-top": TOP,
        "data-bottom": HEIGHT - BOTTOM,
    }
    return tag("svg", "".join(parts), attributes)


def dashes(number: int) -> str:
    """The dash pattern of a label by its place, as SVG wants it."""
    pattern = STYLES[number % len(STYLES)]
    return " ".join(f"{length * 2:g}" for length in pattern) or "none"


def colour(number: int) -> str:
    """The style variable of a label's colour."""
    return f"var(--c{number % len(COLOURS)})"


def _frame(panel: Panel, scale: Scale) -> str:
    """Title, axis labels, ticks and grid."""
    parts = [_text(LEFT, 16, panel.title, "start", "title")]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, panel.x_label, "middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    attributes = {
        "x": 14,
        "y": f"{middle:g}",
        "text-anchor": "middle",
        "transform": f"rotate(-90 14 {middle:g})",
    }
    parts.append(tag("text", escape(panel.y_label), attributes))
    whole = panel.kind == "points"
    for value, text in _ticks(scale.x, MaxNLocator(NUM_TICKS, integer=whole, min_n_ticks=1)):
        parts.append(_text(scale.across(value), HEIGHT - BOTTOM + 15, text, "middle", "tick"))
    for value, text in _ticks(scale.y, _up(scale)):
        y = scale.down(value)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y, "grid"))
        parts.append(_text(LEFT - 6, y + 4, text, "end", "tick"))
    parts.append(_line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis"))
    return "".join(parts)


def _up(scale: Scale) -> Locator:
    if scale.y_scale == "log":
        few = math.log10(scale.y[1] / scale.y[0]) < MANY_DECADES
        return LogLocator(subs=(1.0, 3.0) if few else (1.0,))
    return MaxNLocator(NUM_TICKS, min_n_ticks=1)


def _ticks(ends: tuple[float, float], locator: Locator) -> list[tuple[float, str]]:
    values = [float(v) for v in locator.tick_values(*ends) if ends[0] <= v <= ends[1]]
    form = EngFormatter(sep="")
    large = max(map(abs, ends)) >= 1000
    return [(v, form(v) if large else f"{v:.6g}") for v in values]


def _curve(panel: Panel, curve: Curve, number: int, scale: Scale, shift: float) -> str:
    drawn = _points if panel.kind == "points" else _lines
    inner = tag("title", escape(curve.label)) + drawn(curve, scale, number, shift)
    attributes = {"class": "curve", "data-curve": number, "style": f"--c:{colour(number)}"}
    return tag("g", inner, attributes)


def _lines(curve: Curve, scale: Scale, number: int, shift: float) -> str:
    del shift
    known, banded = np.isfinite(curve.mean), np.isfinite(curve.low)
    x = np.concatenate([curve.x[banded], curve.x[banded][::-1]])
    y = np.concatenate([curve.high[banded], curve.low[banded][::-1]])
    band = tag("path", "", {"d": _path(scale, x, y) + "Z", "class": "band"}) if len(x) else ""
    if known.sum() == 1:
        at = {
            "cx": _pixels(scale.across(float(curve.x[known][0]))),
            "cy": _pixels(scale.down(float(curve.mean[known][0]))),
            "r": 3,
            "class": "dot",
        }
        return band + tag("circle", "", at)
    path = {
        "d": _path(scale, curve.x[known], curve.mean[known]),
        "class": "line",
        "stroke-dasharray": dashes(number),
    }
    return band + (tag("path", "", path) if known.any() else "")


def _points(curve: Curve, scale: Scale, number: int, shift: float) -> str:
    parts, x = [], curve.x + shift
    known = np.isfinite(curve.mean)
    if known.sum() > 1:
        path = {
            "d": _path(scale, x[known], curve.mean[known]),
            "class": "thin",
            "stroke-dasharray": dashes(number),
        }
        parts.append(tag("path", "", path))
    for index in np.flatnonzero(known):
        across = scale.across(float(x[index]))
        if math.isfinite(curve.low[index]):
            ends = (scale.down(float(curve.low[index])), scale.down(float(curve.high[index])))
            parts.append(_line(across, ends[0], across, ends[1], "whisker"))
        at = {
            "cx": _pixels(across),
            "cy": _pixels(scale.down(float(curve.mean[index]))),
            "r": 3.5,
            "class": "dot",
        }
        said = f"{curve.label}: {curve.mean[index]:.4g}, n = {curve.num_runs[index]}"
        parts.append(tag("circle", tag("title", escape(said)), at))
    return "".join(parts)


def _path(scale: Scale, x: Array, y: Array) -> str:
    pairs = (
        f"{_pixels(scale.across(float(a)))} {_pixels(scale.down(float(b)))}"
        for a, b in zip(x, y, strict=True)
    )
    return "M" + "L".join(pairs)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    ends = dict(zip(("x1", "y1", "x2", "y2"), map(_pixels, (x1, y1, x2, y2)), strict=True))
    return tag("line", "", ends | {"class": kind})


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    attributes = {"x": _pixels(x), "y": _pixels(y), "text-anchor": anchor}
    return tag("text", escape(text), attributes | ({"class": kind} if kind else {}))


def _pixels(value: float) -> str:
    return f"{value:.1f}"
