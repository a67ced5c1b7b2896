"""What happens along the time axis of runs: where tasks change for all, and what memories hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..drawing.panels import Array, Curve, Panel
from ..results import RunResult
from ..statistics import band
from ..tables import Columns, read_table
from .groups import Group

MOST_BORDERS = 40  # more would hide the curves
WIDE = 30.0  # largest over smallest mean, from which on an axis shows powers of ten

# Title -> the columns of diagnostics.csv that tell it, and what they are measured in.
MEASURES = {
    "Memory norm": (r".+_norm$", "Frobenius norm"),
    "Effective rank": (r".+_effective_rank$", "effective rank of W - W0"),
    "Loss on pairs 4 tokens ahead": (r"loss_ahead_4$", "relative squared error"),
    "Median half-life": (r"half_life_50$", "tokens"),
}
UNMEASURED = "not measured by these memories"


def common_borders(groups: Sequence[Group]) -> list[float]:
    """Steps at which every lifetime of every run met its next task; empty where they differ.

    A step is known as well as episodes are recorded: to one slice of training.
    """
    found = {tuple(_borders(run)) for group in groups for run in group.runs}
    if len(found) != 1:
        return []
    borders = list(found.pop())
    return borders if len(borders) <= MOST_BORDERS else []


def _borders(run: RunResult) -> list[float]:
    """The ends of the segments that all lifetimes of a run left in the same slice."""
    episodes = run.episodes
    lifetimes = np.unique(episodes.lifetime)
    if len(lifetimes) != int(run.config.num_lifetimes):  # lifetimes end, and others begin
        return []
    borders: list[float] = []
    for segment in range(int(episodes.segment.max(initial=0))):
        part = episodes.where(episodes.segment == segment)
        last = [part.step[part.lifetime == life].max(initial=-1) for life in lifetimes]
        later = episodes.where(episodes.segment > segment)
        if len(set(last)) > 1 or last[0] < 0 or len(np.unique(later.lifetime)) < len(lifetimes):
            return []
        borders.append(float(last[0]))
        if len(borders) > MOST_BORDERS:
            return []
    return borders


def memory_panels(groups: Sequence[Group], x_label: str) -> list[Panel]:
    """Measures of the memories over life, means over layers and heads; empty without any.

    Of a norm in several parts, such as the layers of a net, the norm of the whole is taken.
    """
    tables = {id(run): _table(run) for group in groups for run in group.runs}
    if not any(tables.values()):
        return []
    panels = []
    for title, (pattern, unit) in MEASURES.items():
        found = {}
        for group in groups:
            lives = [_measure(tables[id(run)], pattern) for run in group.runs]
            found[group.label] = _common([life for life in lives if life])
        wide = _is_wide([values for _, values in found.values() if values.size])
        curves = [_curve(label, *one, wide) for label, one in found.items() if one[1].size]
        scale: Literal["linear", "log"] = "log" if wide else "linear"
        label = f"{unit}, geometric mean" if wide else unit
        panels.append(Panel(title, x_label, label, curves, empty=UNMEASURED, y_scale=scale))
    return panels


def _is_wide(groups: Sequence[Array]) -> bool:
    """Whether, of values above 0, those of one group would lie on the axis of another's."""
    means = [float(values.mean()) for values in groups]
    above = all(float(values.min()) > 0 for values in groups)
    return bool(means) and above and max(means) > WIDE * min(means)


def _table(run: RunResult) -> Columns:
    path = run.path / "diagnostics.csv"
    return read_table(path) if path.exists() else {}


def _measure(columns: Columns, pattern: str) -> dict[float, float]:
    """Step -> the measure, mean over layers and heads where it is finite."""
    names = [name for name in columns if re.fullmatch(pattern, name)]
    if not names:
        return {}
    parts = np.stack([columns[name].astype(np.float64) for name in names])
    finite = np.where(np.isfinite(parts), parts, np.nan)
    known = np.isfinite(finite).any(axis=0)
    filled = np.nan_to_num(finite)
    if pattern.endswith("_norm$"):
        values = np.sqrt((filled**2).sum(axis=0))
    else:
        values = filled.sum(axis=0) / np.maximum(np.isfinite(finite).sum(axis=0), 1)
    steps = columns["step"]
    return {
        float(step): float(values[known & (steps == step)].mean())
        for step in np.unique(steps)
        if (known & (steps == step)).any()
    }


def _common(runs: Sequence[dict[float, float]]) -> tuple[Array, Array]:
    """The steps that all runs measured `[num_steps]`, and the values `[num_runs, num_steps]`."""
    steps = sorted(set.intersection(*(set(run) for run in runs))) if runs else []
    values = np.array([[run[step] for step in steps] for run in runs])
    return np.array(steps), values.reshape(len(runs), len(steps))


def _curve(label: str, steps: Array, values: Array, wide: bool) -> Curve:
    """The mean over runs; where powers of ten are shown, that of the logarithms."""
    found = band(np.log(values) if wide else values)
    mean, low, high = found.mean, found.low, found.high
    if wide:
        mean, low, high = np.exp(mean), np.exp(low), np.exp(high)
    return Curve(label, steps, mean, low, high, found.num_runs)
