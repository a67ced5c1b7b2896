"""Finished episodes as columns, and the regret of any group of them.

Regret is measured within a task by `sojourn.envs` and averaged over tasks weighted by their
episodes, so that no task rules by the size of its rewards. Where a simulator knows the expected
return it takes the place of the sampled one (pseudo-regret). An episode that its segment cut short
has no regret, unless its task is measured by rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from sojourn.envs import EpisodeRecord, Windows, dynamic_regret, pooled_regret, raw_regret

from .tables import Array as Array
from .tables import Cell, last_rows, read_table

KEY = ("lifetime", "segment", "episode")
RECORD_FIELDS = tuple(field.name for field in fields(EpisodeRecord))


@dataclass(frozen=True)
class Regret:
    """Regret of a group of episodes; NaN where none of them has a reference. `count` had one.

    `informed` is the normalised regret of those whose task hides something, against who does not
    know it either: a second comparator, never mixed with the first.
    """

    normalised: float
    raw: float
    count: int
    informed: float = math.nan


@dataclass(frozen=True)
class Episodes:
    """Columns `[num_episodes]`; `step` is the environment step of the run at the record."""

    step: Array
    lifetime: Array
    segment: Array
    task: Array
    episode: Array
    achieved: Array
    optimal: Array
    floor: Array
    informed: Array

    @classmethod
    def from_records(cls, records: Sequence[EpisodeRecord], step: int) -> Episodes:
        """Records as they come from a rollout."""
        columns = {name: np.array([getattr(r, name) for r in records]) for name in RECORD_FIELDS}
        return cls.from_columns(columns | {"step": np.full(len(records), step)})

    @classmethod
    def from_table(cls, path: Path) -> Episodes:
        """A run's episodes.csv, without the episodes that were still running."""
        columns = last_rows(read_table(path), KEY)
        if not columns:
            return cls.from_records([], 0)
        finished = columns["status"] != "running"
        return cls.from_columns({name: column[finished] for name, column in columns.items()})

    @classmethod
    def from_columns(cls, columns: Mapping[str, Array]) -> Episodes:
        """The fields of `EpisodeRecord` and `step`, `[num_episodes]` each."""
        expected = columns["expected_return"].astype(np.float64)
        sampled = columns["total_return"].astype(np.float64)
        # What a segment cut short cannot be held against the return of a whole episode.
        partial = (columns["status"].astype(str) == "cut") & (columns["unit"].astype(str) != "rate")
        unknown = np.full(len(sampled), np.nan)
        informed = columns.get("informed_return", unknown).astype(np.float64)
        return cls(
            step=columns["step"].astype(np.int64),
            lifetime=columns["lifetime"].astype(np.int64),
            segment=columns["segment"].astype(np.int64),
            task=columns["task"].astype(str),
            episode=columns["episode"].astype(np.int64),
            achieved=np.where(np.isfinite(expected), expected, sampled),
            optimal=np.where(partial, np.nan, columns["optimal_return"].astype(np.float64)),
            floor=columns["floor_return"].astype(np.float64),
            informed=np.where(partial, np.nan, informed),
        )

    def __len__(self) -> int:
        return len(self.step)

    def where(self, chosen: Array | slice) -> Episodes:
        """The episodes of a boolean mask or a slice."""
        return Episodes(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def of_index(self, episode: int) -> Episodes:
        """The episodes that were number `episode` (from 0) of their task."""
        return self.where(self.episode == episode)

    def num_indices(self, most: int) -> int:
        """How many episode indices occur, at most `most`."""
        return min(most, int(self.episode.max()) + 1) if len(self) else 0

    def regret(self) -> Regret:
        """Normalised and raw regret of the group."""
        known = np.isfinite(self.achieved) & np.isfinite(self.optimal) & np.isfinite(self.floor)
        group = self.where(known)
        with np.errstate(divide="ignore", invalid="ignore"):
            normalised = _over_tasks(group, lambda e: pooled_regret(e.optimal, e.achieved, e.floor))
            raw = _over_tasks(
                group, lambda e: float(raw_regret(e.optimal.mean(), e.achieved.mean()))
            )
            told = group.where(np.isfinite(group.informed))
            informed = _over_tasks(told, lambda e: pooled_regret(e.informed, e.achieved, e.floor))
        return Regret(normalised, raw, len(group), informed)


def record_row(record: EpisodeRecord, step: int) -> dict[str, Cell]:
    """A row of episodes.csv."""
    return {"step": step} | {name: getattr(record, name) for name in RECORD_FIELDS}


def regret_by_window(episodes: Episodes, edges: Array) -> tuple[Array, Array]:
    """Normalised and raw regret `[num_windows]` of the episodes recorded in (edges[w], edges[w +
    1]].
    """
    window = np.searchsorted(edges, episodes.step, side="left") - 1
    found = [episodes.where(window == w).regret() for w in range(len(edges) - 1)]
    return np.array([r.normalised for r in found]), np.array([r.raw for r in found])


def window_edges(last_step: int, num_windows: int, smallest: int) -> Array:
    """Equal windows over 0 .. last_step, none narrower than `smallest` steps."""
    count = max(1, min(num_windows, last_step // max(1, smallest)))
    return np.linspace(0, last_step, count + 1)


def carried_forward(values: Array) -> Array:
    """A window without a finished episode shows the last known value; leading ones stay NaN."""
    known = np.where(np.isfinite(values), np.arange(len(values)), -1)
    last = np.maximum.accumulate(known) if len(values) else known
    return np.where(last >= 0, values[np.maximum(last, 0)], np.nan)


def cumulative_regret(values: Array, widths: Array) -> Array:
    """Sum of window regret times window width, from windows `[num_windows]`; widths in steps of one
    lifetime.

    A uniform random policy climbs by one per step. Windows before the first finished episode add
    nothing.
    """
    shown = carried_forward(values)
    known = np.isfinite(values)
    windows = Windows(
        value=1.0 - shown,
        width=np.asarray(widths, np.float64),
        segment=np.zeros(len(values), np.int64),
        carried=np.isfinite(shown) & ~known,
    )
    return dynamic_regret(windows, floor=[0.0], ceiling=[1.0]).cumulative


def _over_tasks(group: Episodes, measure: Callable[[Episodes], float]) -> float:
    if not len(group):
        return math.nan
    names, index = np.unique(group.task, return_inverse=True)
    parts = [group.where(index == i) for i in range(len(names))]
    return float(np.average([measure(p) for p in parts], weights=[len(p) for p in parts]))
