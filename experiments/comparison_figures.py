"""The figures of a comparison: regret over the life of a run, its sum, and by episode of a task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .comparison import interval_note
from .figures import Curve, Panel, draw
from .groups import Group
from .report import ordinal, regret_scale
from .statistics import band
from .tracker import MAX_EPISODES

STEPS, REGRET = "environment steps", "normalised regret"


def draw_figures(folder: Path, groups: Sequence[Group]) -> None:
    """Write cumulative_regret, windowed_regret and regret_by_episode, each as PNG and CSV."""
    title, caption = _title(groups), _caption(groups)
    draw(folder / "cumulative_regret.png", title, caption, [_cumulative(groups)])
    windowed = [_curve(group, group.stack("normalised")) for group in groups]
    panel = Panel("Windowed regret", STEPS, REGRET, windowed)
    draw(folder / "windowed_regret.png", title, caption, [panel])
    panels = [
        _by_episode(groups, index)
        for index in range(min(MAX_EPISODES, max(group.num_indices for group in groups)))
    ]
    if panels:
        draw(folder / "regret_by_episode.png", title, caption, panels)


def _cumulative(groups: Sequence[Group]) -> Panel:
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
    )


def _by_episode(groups: Sequence[Group], index: int) -> Panel:
    having = [group for group in groups if index < group.num_indices]
    curves = [_curve(group, group.stack_episode(index)) for group in having]
    return Panel(f"{ordinal(index)} episode of a task", STEPS, REGRET, curves)


def _curve(group: Group, values: Any, step: Any = None) -> Curve:
    found = band(values)
    x = group.step if step is None else step
    return Curve(group.label, x, found.mean, found.low, found.high, found.num_runs)


def _caption(groups: Sequence[Group]) -> str:
    counts = ", ".join(f"{group.label}: n = {len(group.runs)}" for group in groups)
    scale = regret_scale(run.summary for group in groups for run in group.runs)
    return f"Mean over runs ({counts}). {interval_note(groups)} {scale}"


def _title(groups: Sequence[Group]) -> str:
    streams = {str(run.config.choices.stream) for group in groups for run in group.runs}
    return f"Regret on {', '.join(sorted(streams))}"
