"""The pictures of a comparison: regret over the life of runs, by episode, over runs and tasks, and
what memories hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..drawing.figures import draw
from ..drawing.grids import draw_grids
from ..drawing.panels import Curve, Panel, Picture
from ..report import ordinal, regret_scale
from ..statistics import Interval, band
from ..tracker import MAX_EPISODES
from .comparison import counts_note, interval_note
from .contrast_statistics import interquartile_mean, share_at_most
from .evaluated import Evaluated, matrix_grids
from .groups import Group
from .time_axis import common_borders, memory_panels

STEPS, REGRET = "environment steps", "normalised regret"
PROFILE_POINTS = 61

# R-matrix -> its heading, and what its rows are.
KNOWN = {
    "memory_matrix": (
        "What memories know",
        "of a life with the memory as it was after so many segments",
    ),
    "outer_matrix": (
        "What outer parameters know",
        "of training with a fresh memory and the checkpoint of this step",
    ),
}


def pictures(groups: Sequence[Group], last: float) -> list[Picture]:
    """Every picture that the groups have data for; `last` is the end of a run, as in tables."""
    title, caption = f"Regret on {_streams(groups)}", _caption(groups)
    borders = common_borders(groups)
    if borders:
        caption += " Grey lines: every lifetime meets its next task."
    windowed = [_curve(group, group.stack("normalised")) for group in groups]
    single = max(group.num_indices for group in groups) == 1  # then both would say it again
    found = {
        "cumulative_regret": [_cumulative(groups, borders)],
        "windowed_regret": [Panel("Windowed regret", STEPS, REGRET, windowed, borders=borders)],
        "regret_split": [] if single else _split(groups, borders),
        "regret_by_episode": []
        if single
        else [_by_episode(groups, index) for index in _indices(groups)],
        "regret_at_the_end": _at_the_end(groups, last),
        "performance_profile": [_profile(groups, last)],
    }
    notes = {
        "regret_split": " Regret of a segment = transient, lost before it reached its final level, "
        "+ residual, what that level (its last tenth) lacks; at the step where segments ended.",
        "performance_profile": " Share of a run's tasks at or below a regret: higher is better.",
    }
    drawn = [
        Picture(name, title, caption + notes.get(name, ""), panels)
        for name, panels in found.items()
        if panels
    ]
    held = memory_panels(groups, STEPS)
    if held:
        of = " Means over layers and heads; half-lives without end are left out."
        drawn.append(
            Picture("memory", f"Memory on {_streams(groups)}", _over_runs(groups) + of, held)
        )
    return drawn


def draw_pictures(folder: Path, found: Sequence[Picture]) -> None:
    """Write each picture as PNG, SVG and CSV."""
    for one in found:
        path = folder / f"{one.name}.png"
        if one.grids:
            draw_grids(path, one.title, one.caption, one.grids)
        else:
            draw(path, one.title, one.caption, one.panels)


def matrix_pictures(groups: Sequence[Group], found: Sequence[Sequence[Evaluated]]) -> list[Picture]:
    """What memories and outer parameters know of every task, a heat map for every group that was
    evaluated.
    """
    drawn = []
    for name, (heading, rows) in KNOWN.items():
        grids = matrix_grids(name, groups, found)
        if grids:
            counts = ", ".join(
                f"{grid.title}: n = {grid.num_runs.max(initial=0)}" for grid in grids
            )
            caption = (
                f"Score on every task {rows}: 1 = reference, 0 = uniform random policy. Mean over "
                f"runs ({counts})."
            )
            drawn.append(Picture(name, f"{heading}, {_streams(groups)}", caption, grids=grids))
    return drawn


def _indices(groups: Sequence[Group]) -> range:
    return range(min(MAX_EPISODES, max(group.num_indices for group in groups)))


def _cumulative(groups: Sequence[Group], borders: Sequence[float]) -> Panel:
    longest = max(groups, key=lambda group: float(group.step[-1]))
    step = np.append(0, longest.step)
    widths = {int(group.runs[0].config.num_lifetimes) for group in groups}
    # A random policy climbs by one per step of a lifetime: one line for one number of lifetimes.
    random = ("uniform random policy", step, step / widths.pop()) if len(widths) == 1 else None
    curves = []
    for group in groups:
        values = group.stack("cumulative")
        origin = np.zeros((len(values), 1))
        curves.append(_curve(group, np.hstack([origin, values]), np.append(0, group.step)))
    return Panel(
        "Cumulative regret, mean over parallel lives",
        STEPS,
        f"{REGRET} × steps",
        curves,
        random,
        borders=borders,
    )


def _split(groups: Sequence[Group], borders: Sequence[float]) -> list[Panel]:
    """What adapting to tasks cost, and what stayed."""
    found = [group.stack_split() for group in groups]
    return [
        Panel(
            title,
            STEPS,
            f"{REGRET} of a segment",
            [_curve(group, both[part]) for group, both in zip(groups, found, strict=True)],
            borders=borders,
            empty="no segment has ended",
        )
        for part, title in enumerate(("Transient: adapting to a task", "Residual: what stays"))
    ]


def _by_episode(groups: Sequence[Group], index: int) -> Panel:
    having = [group for group in groups if index < group.num_indices]
    curves = [_curve(group, group.stack_episode(index)) for group in having]
    return Panel(f"{ordinal(index)} episode of a task", STEPS, REGRET, curves)


def _at_the_end(groups: Sequence[Group], last: float) -> list[Panel]:
    """By episode of a task, and the interquartile mean of every group over its runs."""
    curves = [
        _points(
            group.label,
            [(index + 1, group.final_regret("normalised", last, index)) for index in found],
        )
        for group in groups
        if (found := range(min(MAX_EPISODES, group.num_indices)))
    ]
    middle = [
        _points(group.label, [(place, interquartile_mean(group.final_values("normalised", last)))])
        for place, group in enumerate(groups, start=1)
    ]
    by_episode = Panel(
        "At the end, by episode of a task", "episode of a task", REGRET, curves, kind="points"
    )
    robust = Panel(
        "At the end, interquartile mean over runs",
        "group, in the order of the legend",
        f"{REGRET}, IQM",
        middle,
        kind="points",
    )
    return [by_episode, robust] if curves else [robust]


def _profile(groups: Sequence[Group], last: float) -> Panel:
    scores = [group.final_by_task(last) for group in groups]
    # Between the reference and random play, the same places whatever groups are compared.
    thresholds = np.linspace(0.0, 1.2, PROFILE_POINTS)
    curves = []
    for group, values in zip(groups, scores, strict=True):
        curve = _curve(group, share_at_most(values, thresholds), thresholds)
        # A t-interval knows no ends; a share has them.
        curves.append(replace(curve, low=curve.low.clip(0, 1), high=curve.high.clip(0, 1)))
    return Panel("Performance profile", f"{REGRET} of a task", "share of tasks and runs", curves)


def _points(label: str, found: Sequence[tuple[int, Interval]]) -> Curve:
    return Curve(
        label,
        np.array([x for x, _ in found]),
        mean=np.array([one.mean for _, one in found]),
        low=np.array([one.low for _, one in found]),
        high=np.array([one.high for _, one in found]),
        num_runs=np.array([one.num_runs for _, one in found], np.int64),
    )


def _curve(group: Group, values: Any, step: Any = None) -> Curve:
    found = band(values)
    x = group.step if step is None else step
    return Curve(group.label, x, found.mean, found.low, found.high, found.num_runs)


def _caption(groups: Sequence[Group]) -> str:
    scale = regret_scale(run.summary for group in groups for run in group.runs)
    return f"{_over_runs(groups)} {scale}"


def _over_runs(groups: Sequence[Group]) -> str:
    return f"Mean over runs ({counts_note(groups)}). {interval_note(groups)}"


def _streams(groups: Sequence[Group]) -> str:
    streams = {str(run.config.choices.stream) for group in groups for run in group.runs}
    return ", ".join(sorted(streams))
