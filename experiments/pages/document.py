"""One page that needs nothing but itself: headings, charts, tables and a legend that hides curves.

Style, script and data are inside; charts are drawn without the script, which adds values on hover.
With many curves points are left out of them until the page is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any

from ..comparisons.comparison import Comparison
from ..drawing.panels import COLOURS, Array, Picture, labels_of
from .chart import chart, colour, dashes
from .heat import heat_map
from .markup import json_script, paragraphs, table, tag

MAX_BYTES = 3_000_000
MOST_POINTS = (200, 100, 50, 25, 12, 6)  # of a curve, the first that keeps the page small
FEW = 6  # labels whose bands can be told apart

Pictures = Mapping[str, Picture]
Sections = Mapping[str, tuple[str, str]]
"""Key of a section -> its heading and its content as HTML, in the order of the page."""


def render(
    title: str, pictures: Pictures, sections: Callable[[Pictures, Sequence[str]], Sections]
) -> str:
    """The page as text of at most MAX_BYTES, unless six points a curve are still too many.

    `sections` is given the pictures, thinned, and the labels of their curves.
    """
    text = ""
    for most in MOST_POINTS:
        thinned = {name: _thinned(picture, most) for name, picture in pictures.items()}
        panels = [panel for picture in thinned.values() for panel in picture.panels]
        labels = labels_of(panels)
        text = _document(title, thinned, labels, sections(thinned, labels))
        if len(text.encode()) <= MAX_BYTES:
            break
    return text


def _document(title: str, pictures: Pictures, labels: Sequence[str], sections: Sections) -> str:
    links = [tag("a", escape(head), {"href": f"#{key}"}) for key, (head, _) in sections.items()]
    bodies = [
        tag("section", tag("h2", escape(head), {"id": key}) + body, {"data-section": key})
        for key, (head, body) in sections.items()
    ]
    bar = tag("nav", " ".join(links), {"aria-label": "sections"}) + _legend(labels)
    body = tag("h1", escape(title)) + tag("header", bar, {"class": "bar"})
    # Many bands on top of each other would hide the curves.
    body += tag("main", "".join(bodies), {"class": "many"} if len(labels) > FEW else {})
    body += json_script("labels", labels) + json_script("points", _points(pictures, labels))
    body += tag("script", _asset("script.js"))
    colours = "".join(f"--c{number}:{value};" for number, value in enumerate(COLOURS))
    head = '<meta charset="utf-8"/><meta name="viewport" content="width=device-width"/>'
    head += tag("title", escape(title))
    head += tag("style", f":root{{{colours}}}\n{_asset('style.css')}")
    document = tag("html", tag("head", head) + tag("body", body), {"lang": "en"})
    return f"<!DOCTYPE html>\n{document}\n"


def said(text: str) -> str:
    """A sentence in place of what there is no data for."""
    return tag("p", escape(text))


def noted(shown: Comparison) -> str:
    """A table with the remarks on it."""
    return table(shown) + paragraphs(shown.notes)


def charts_of(picture: Picture, labels: Sequence[str]) -> str:
    """The charts or heat maps of a picture, with its caption and where its data lies."""
    shown = "".join(
        tag("div", chart(panel, picture.panels, labels, f"{picture.name}-{number}"))
        for number, panel in enumerate(picture.panels)
    )
    shown += "".join(
        tag("div", heat_map(grid, f"{picture.name}-map-{number}"), {"class": "scroll"})
        for number, grid in enumerate(picture.grids)
    )
    data = f"Data: {picture.name}.csv; pictures: {picture.name}.svg and .png."
    return tag("div", shown, {"class": "maps" if picture.grids else "charts"}) + paragraphs(
        [picture.caption, data]
    )


def _legend(labels: Sequence[str]) -> str:
    boxes = []
    for number, label in enumerate(labels):
        line = {
            "x1": 0,
            "x2": 34,
            "y1": 5,
            "y2": 5,
            "stroke": colour(number),
            "stroke-width": 2.5,
            "stroke-dasharray": dashes(number),
        }
        swatch = tag("svg", tag("line", "", line), {"viewBox": "0 0 34 10", "aria-hidden": "true"})
        box = f'<input type="checkbox" checked="checked" value="{number}"/>'
        boxes.append(tag("label", box + swatch + tag("span", escape(label))))
    return tag("div", "".join(boxes), {"class": "legend"})


def _points(pictures: Mapping[str, Picture], labels: Sequence[str]) -> dict[str, Any]:
    """Chart -> its curves as numbers, by the name that the chart has in the page."""
    return {
        f"{picture.name}-{number}": [
            {"label": labels.index(curve.label)}
            | {name: _plain(getattr(curve, name)) for name in ("x", "mean", "low", "high")}
            | {"num_runs": [int(value) for value in curve.num_runs]}
            for curve in panel.curves
        ]
        for picture in pictures.values()
        for number, panel in enumerate(picture.panels)
    }


def _plain(values: Array) -> list[float | None]:
    """JSON has no NaN: what is not known is null."""
    return [float(value) if math.isfinite(value) else None for value in values]


def _thinned(picture: Picture, most: int) -> Picture:
    panels = [replace(p, curves=[c.thinned(most) for c in p.curves]) for p in picture.panels]
    return replace(picture, panels=panels)


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
