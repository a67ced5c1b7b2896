"""The page a run ends with: how regret fell, and what its agent carries over, forgets and costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .comparisons.comparison import Comparison
from .drawing.panels import Picture
from .evaluate import open_folder, write_findings
from .evaluations.figures import pictures
from .evaluations.findings import Findings
from .evaluations.living import carry_out
from .evaluations.page import PAGE, sections_of
from .evaluations.request import request
from .folder import write_atomically
from .loading import agent_of
from .pages.document import Pictures, Sections, charts_of, noted, render
from .report import ordinal, regret_picture
from .results import RunResult
from .stopping import StopRequest
from .tables import Cell

COSTS = {
    "steps per second in training": "steps_per_second",
    "parameters": "num_parameters",
    "bytes of memory state per lifetime": "state_bytes",
}


def write_end_page(result: RunResult, stop: StopRequest, say: Callable[[str], None]) -> Path | None:
    """Evaluate a run's newest checkpoint under `evaluation.conditions` and write its page.

    The evaluation lies in the run's `evaluations`, like any other. None when asked to stop.
    """
    conditions = ",".join(result.config.evaluation.conditions)
    words = [str(result.path), f"conditions={conditions}"]
    wanted = request(words)
    agent = agent_of(wanted.trained, wanted.content)
    open_folder(wanted, words)
    found = carry_out(wanted, agent, stop, say)
    if found is None:
        return None
    write_findings(wanted, found)
    path = result.path / PAGE
    write_atomically(path, end_page(result, found, pictures(found)))
    return path


def end_page(result: RunResult, found: Findings, shown: Sequence[Picture]) -> str:
    """The page as text: training first, then every section of the evaluation."""
    training = regret_picture(result)

    def sections(thinned: Pictures, labels: Sequence[str]) -> Sections:
        made = sections_of(found.rows, thinned, labels)
        cost, costs = made.pop("cost"), _costs(result.summary)
        start = charts_of(thinned[training.name], labels) + noted(_training(result.summary))
        notes = Comparison((), (), {}, found.notes)
        short = {"short": made.pop("short")} if "short" in made else {}
        return {
            **short,
            "training": ("Regret over training", start),
            **made,
            "cost": (cost[0], noted(costs) + cost[1]),
            "how": ("How it was measured", noted(notes)),
        }

    return render(
        training.title, {picture.name: picture for picture in (training, *shown)}, sections
    )


def _training(summary: Mapping[str, Any]) -> Comparison:
    """Normalised regret by episode of a task at the start and at the end of training."""
    parts = ("regret_start", "regret_end")
    count = max(len(summary[part]["by_episode"]) for part in parts)
    names = [f"regret, {ordinal(index)} episode" for index in range(count)]
    names += ["regret, all episodes"]
    header = ("episode of a task", "first 10 % of the steps", "last 10 %")
    data: dict[str, list[Cell]] = {header[0]: list(names)}
    for name, part in zip(header[1:], parts, strict=True):
        found = [one["normalised"] for one in summary[part]["by_episode"]]
        found += [None] * (count - len(found))
        data[name] = [*found, summary[part]["all"]["normalised"]]
    columns = [[_text(cell) for cell in data[name]] for name in header[1:]]
    rows = [list(row) for row in zip(names, *columns, strict=True)]
    kinds = ", ".join(sorted(set(summary["comparators"].values())))
    note = f"Normalised regret: 0 = reference ({kinds}), 1 = uniform random policy."
    return Comparison(header, rows, data, [note])


def _costs(summary: Mapping[str, Any]) -> Comparison:
    data: dict[str, list[Cell]] = {name: [summary[key]] for name, key in COSTS.items()}
    return Comparison(list(data), [[f"{summary[key]:,.0f}" for key in COSTS.values()]], data, [])


def _text(cell: Cell) -> str:
    return f"{cell:.3f}" if isinstance(cell, float) else "-"
