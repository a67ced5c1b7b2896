"""report.html: a comparison as one page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ..comparisons.comparison import Comparison
from ..drawing.panels import Picture
from . import document
from .document import charts_of, noted, said
from .markup import paragraphs, table, tag

SINGLE = "No run has finished {}, or all tasks have one episode: there is nothing to tell apart."
SECTIONS = {  # name of a picture -> heading of its section, what is said where there is no data
    "cumulative_regret": ("Cumulative regret", "No run has finished an episode."),
    "windowed_regret": ("Regret over life", "No run has finished an episode."),
    "regret_split": ("Transient and residual regret", SINGLE.format("a task")),
    "regret_by_episode": ("Regret by episode of a task", SINGLE.format("an episode")),
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
MATRICES = ("memory_matrix", "outer_matrix")
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
    """The page as text (`document.render`)."""
    return document.render(
        page.title, page.pictures, lambda pictures, labels: _sections(page, pictures, labels)
    )


def _sections(
    page: Page, pictures: Mapping[str, Picture], labels: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Key -> (heading, content), in the order of the page."""
    shown = {
        name: (head, charts_of(pictures[name], labels) if name in pictures else said(empty))
        for name, (head, empty) in SECTIONS.items()
    }
    beside = noted(page.contrasts) if page.contrasts else said(NO_CONTRASTS)
    settings = paragraphs(page.differences) or said("All settings but the seed are equal.")
    runs = paragraphs([f"{label}: {path}" for label, path in page.runs])
    memory = shown.pop("memory")
    return {
        "summary": ("Summary", noted(page.summary)),
        **shown,
        "aggregates": ("Mean, IQM and tail", noted(page.aggregates)),
        "contrasts": ("Differences from the reference group", beside),
        "memory": memory,
        "transfer": ("Transfer and forgetting", _transfer(page, labels)),
        "cost": ("Cost", table(_costs(page.summary))),
        "settings": ("Settings that differ", settings),
        "runs": ("Runs", runs),
    }


def _transfer(page: Page, labels: Sequence[str]) -> str:
    """The table of the evaluations and the heat maps of what memories know."""
    if page.transfer is None:
        return said(NO_TRANSFER)
    maps = [page.pictures[name] for name in MATRICES if name in page.pictures]
    drawn = "".join(tag("h3", escape(one.title)) + charts_of(one, labels) for one in maps)
    return noted(page.transfer) + (drawn or said(NO_MATRIX))


def _costs(summary: Comparison) -> Comparison:
    """The columns of the main table that tell what a group costs."""
    places = [summary.header.index(name) for name in COSTS]
    rows = [[row[place] for place in places] for row in summary.rows]
    return Comparison(COSTS, rows, summary.data, ())
