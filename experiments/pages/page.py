"""report.html: a comparison as one page that needs nothing but itself.

Style, script and data are inside; charts are drawn without the script, which adds values on hover.
With many groups points are left out of the curves until the page is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.resources import files
from typing import Any

from ..comparison import Comparison
from ..panels import COLOURS, Array, Picture, labels_of
from .chart import chart, colour, dashes
from .heat import heat_map
from .markup import json_script, paragraphs, table, tag

MAX_BYTES = 3_000_000
MOST_POINTS = (200, 100, 50, 25, 12, 6)  # of a curve, the first that keeps the page small
FEW = 6  # groups whose bands can be told apart
SECTIONS = {  # name of a picture -> heading of its section, what is said where there is no data
    "cumulative_regret": ("Cumulative regret", "No run has finished an episode."),
    "windowed_regret": ("Regret over life", "No run has finished an episode."),
    "regret_split": ("Transient and residual regret", "No run has finished a task."),
    "regret_by_episode": ("Regret by episode of a task", "No run has finished an episode."),
    "regret_at_the_end": ("Regret at the end", "No run has finished an episode."),
    "performance_profile": ("Performance profile", "No run has finished an episode."),
    "memory": ("Memory over life", "No run has diagnostics: train with diagnostics_every=50."),
}
NO_TRANSFER = "No run has an evaluation: sojourn evaluate RUN."
NO_MATRIX = "No evaluation has a matrix: tasks must change within a life, and come again."
NO_CONTRASTS = (
    "No reference group: give reference=GROUP (and declared=GROUPS for Holm's adjustment), or "
    "compare with a group of the GRU."
)
MATRIX = "memory_matrix"
COSTS = ("group", "n", "steps/s", "parameters", "state bytes")


@dataclass(frozen=True)
class Page:
    """What a page shows; `runs` are (group, folder)."""

    title: str
    summary: Comparison
    aggregates: Comparison
    contrasts: Comparison | None
    transfer: Comparison | None
    pictures: Mapping[str, Picture]
    differences: Sequence[str]
    runs: Sequence[tuple[str, str]]


def render(page: Page) -> str:
    """The page as text of at most MAX_BYTES, unless six points a curve are still too many."""
    text = ""
    for most in MOST_POINTS:
        text = _document(page, most)
        if len(text.encode()) <= MAX_BYTES:
            break
    return text


def _document(page: Page, most: int) -> str:
    pictures = {name: _thinned(picture, most) for name, picture in page.pictures.items()}
    panels = [panel for picture in pictures.values() for panel in picture.panels]
    labels = labels_of(panels)
    sections = _sections(page, pictures, labels)
    links = [tag("a", escape(head), {"href": f"#{key}"}) for key, (head, _) in sections.items()]
    bodies = [
        tag("section", tag("h2", escape(head), {"id": key}) + body, {"data-section": key})
        for key, (head, body) in sections.items()
    ]
    bar = tag("nav", " ".join(links), {"aria-label": "sections"}) + _legend(labels)
    body = tag("h1", escape(page.title)) + tag("header", bar, {"class": "bar"})
    # Many bands on top of each other would hide the curves.
    body += tag("main", "".join(bodies), {"class": "many"} if len(labels) > FEW else {})
    body += json_script("labels", labels) + json_script("points", _points(pictures, labels))
    body += tag("script", _asset("script.js"))
    colours = "".join(f"--c{number}:{value};" for number, value in enumerate(COLOURS))
    head = '<meta charset="utf-8"/><meta name="viewport" content="width=device-width"/>'
    head += tag("title", escape(page.title))
    head += tag("style", f":root{{{colours}}}\n{_asset('style.css')}")
    document = tag("html", tag("head", head) + tag("body", body), {"lang": "en"})
    return f"<!DOCTYPE html>\n{document}\n"


def _sections(
    page: Page, pictures: Mapping[str, Picture], labels: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Key -> (heading, content), in the order of the page."""
    shown = {
        name: (head, _picture(pictures[name], labels) if name in pictures else _said(empty))
        for name, (head, empty) in SECTIONS.items()
    }
    beside = _noted(page.contrasts) if page.contrasts else _said(NO_CONTRASTS)
    settings = paragraphs(page.differences) or _said("All settings but the seed are equal.")
    runs = paragraphs([f"{label}: {path}" for label, path in page.runs])
    memory = shown.pop("memory")
    return {
        "summary": ("Summary", _noted(page.summary)),
        **shown,
        "aggregates": ("Mean, IQM and tail", _noted(page.aggregates)),
        "contrasts": ("Differences from the reference group", beside),
        "memory": memory,
        "transfer": ("Transfer and forgetting", _transfer(page, labels)),
        "cost": ("Cost", table(_costs(page.summary))),
        "settings": ("Settings that differ", settings),
        "runs": ("Runs", runs),
    }


def _said(text: str) -> str:
    return tag("p", escape(text))


def _noted(shown: Comparison) -> str:
    return table(shown) + paragraphs(shown.notes)


def _transfer(page: Page, labels: Sequence[str]) -> str:
    """The table of the evaluations and the heat maps of what memories know."""
    if page.transfer is None:
        return _said(NO_TRANSFER)
    matrix = page.pictures.get(MATRIX)
    return _noted(page.transfer) + (_picture(matrix, labels) if matrix else _said(NO_MATRIX))


def _costs(summary: Comparison) -> Comparison:
    """The columns of the main table that tell what a group costs."""
    places = [summary.header.index(name) for name in COSTS]
    rows = [[row[place] for place in places] for row in summary.rows]
    return Comparison(COSTS, rows, summary.data, ())


def _picture(picture: Picture, labels: Sequence[str]) -> str:
    charts = "".join(
        tag("div", chart(panel, picture.panels, labels, f"{picture.name}-{number}"))
        for number, panel in enumerate(picture.panels)
    )
    charts += "".join(
        tag("div", heat_map(grid, f"{picture.name}-map-{number}"), {"class": "scroll"})
        for number, grid in enumerate(picture.grids)
    )
    data = f"Data: {picture.name}.csv; pictures: {picture.name}.svg and .png."
    return tag("div", charts, {"class": "maps" if picture.grids else "charts"}) + paragraphs(
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
