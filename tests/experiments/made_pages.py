"""Pages of made-up groups, for what a report shows and what a browser makes of it."""

from dataclasses import replace
from typing import Any

import numpy as np

from sojourn.experiments.comparisons.comparison import Comparison
from sojourn.experiments.drawing.panels import Curve, Grid, Panel, Picture
from sojourn.experiments.pages.page import Page

SECTIONS = [
    "summary",
    "cumulative_regret",
    "windowed_regret",
    "regret_split",
    "regret_by_episode",
    "regret_at_the_end",
    "performance_profile",
    "aggregates",
    "contrasts",
    "memory",
    "transfer",
    "cost",
    "settings",
    "runs",
]
PICTURES = SECTIONS[1:7]


def curve(label: str, count: int) -> Curve:
    x = np.arange(count, dtype=np.float64)
    mean = np.where(x % 7 == 3, np.nan, 1 / (1 + x))
    return Curve(label, x, mean, mean - 0.1, mean + 0.1, np.full(count, 3))


def made_page(labels: list[str], count: int = 30) -> Page:
    """A page about groups of these labels, `count` points a curve."""
    costs = {name: [1.0] * len(labels) for name in ("steps/s", "parameters", "state bytes")}
    header = ["group", "n", *costs, "comparator"]
    rows = [[label, "3", "1", "1", "1", "planner, provisional"] for label in labels]
    data: Any = {"group": labels, "n": [3] * len(labels), **costs}
    table = Comparison(header, rows, data, ["a note"])
    curves = [curve(label, count) for label in labels]
    panel = Panel("t", "steps", "regret", curves, borders=(5.0,))
    dots = Panel("t", "episode", "regret", curves, kind="points")
    pictures = {name: Picture(name, "A & B", "c", [panel, dots]) for name in PICTURES}
    runs = [(label, "f") for label in labels]
    return Page("A & B", table, table, None, None, pictures, [], runs)


def full_page() -> Page:
    """A page of two groups on which no section is empty."""
    page = made_page(["one", "two"])
    scores = np.array([[0.0, 0.4, 1.0], [np.nan, 0.6, 0.2]])
    counts = np.full(scores.shape, 3)
    columns, rows = ["a", "b", "c"], ["0", "1"]
    grid = Grid("one", "task", "lived", columns, rows, scores, scores, scores, counts)
    matrix = Picture("memory_matrix", "What a memory knows", "c", grids=[grid])
    memory = replace(page.pictures["windowed_regret"], name="memory")
    pictures = {**page.pictures, "memory": memory, "memory_matrix": matrix}
    table = page.aggregates
    return replace(
        page, contrasts=table, transfer=table, pictures=pictures, differences=["memory: one; two"]
    )
