"""What every segment of a life cost: how much of it was adapting, and how much stayed.

    regret    = mean over the segment's episodes of (1 - u)
    M3        regret = transient + residual,  residual = 1 - e_k,  e_k = mean u of the last episodes
    M9        jump start: mean u of the first 5 % of the episodes, at least one
    M10       adaptation: the first episode whose trailing mean of u reaches alpha

with u the score of an episode. All are means per episode, so that segments of different length add
up. Source of the split: `sojourn.envs.split_regret`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from sojourn.envs import Windows, split_regret

from ..episodes import Array
from .lives import Lives

LAST = 0.1  # share of a segment's episodes whose mean is its final level, at least one
FIRST = 0.05  # share that is its beginning, at least one


@dataclass(frozen=True)
class Segments:
    """Columns `[num_segments]` of whole segments, ordered by lifetime and segment.

    `visit` counts the earlier segments of the lifetime that played the same task; `transient` +
    `residual` = `regret`. NaN where a segment has no episode with a regret.
    """

    lifetime: Array
    segment: Array
    task_index: Array
    visit: Array
    num_episodes: Array
    regret: Array
    transient: Array
    residual: Array
    jump_start: Array

    def __len__(self) -> int:
        return len(self.lifetime)

    def where(self, chosen: Array) -> Segments:
        """The segments of a boolean mask `[num_segments]`."""
        return Segments(*(getattr(self, field.name)[chosen] for field in fields(self)))


def segments_of(lives: Lives, gaps: Mapping[str, float] | None = None) -> Segments:
    """A row for every segment that was lived to its end; `gaps` as in `Lives.regret`."""
    whole = lives.whole_segments()
    scores = 1.0 - whole.regret(gaps)
    places, first_row, index = np.unique(whole.place, return_index=True, return_inverse=True)
    num = len(places)
    columns = {name: np.full(num, np.nan) for name in ("transient", "residual", "jump_start")}
    regret, count = np.full(num, np.nan), np.zeros(num, np.int64)
    order = np.lexsort((whole.episode, index))
    bounds = np.searchsorted(index[order], np.arange(num + 1))
    for row in range(num):
        u = scores[order[bounds[row] : bounds[row + 1]]]
        u = u[np.isfinite(u)]
        count[row] = len(u)
        if len(u):
            split = split_scores(u)
            regret[row] = 1.0 - u.mean()
            columns["transient"][row], columns["residual"][row] = split
            columns["jump_start"][row] = u[: share_of(len(u), FIRST)].mean()
    lifetime, task = whole.lifetime[first_row], whole.task_index[first_row]
    return Segments(
        lifetime=lifetime,
        segment=whole.segment[first_row],
        task_index=task,
        visit=_visits(lifetime, task),
        num_episodes=count,
        regret=regret,
        **columns,
    )


def split_scores(u: Array) -> tuple[float, float]:
    """M3 of the scores `[num_episodes]` of one segment, per episode: transient, residual."""
    ones = np.ones(len(u))
    zeros = np.zeros(len(u), np.int64)
    windows = Windows(u, ones, zeros, np.zeros(len(u), bool))
    split = split_regret(windows, u, share_of(len(u), LAST))
    return float(split.transient[0]) / len(u), float(split.residual[0]) / len(u)


def share_of(count: int, share: float) -> int:
    """How many of `count` episodes are a share of them: at least one."""
    return max(1, round(share * count))


def _visits(lifetime: Array, task: Array) -> Array:
    seen: dict[tuple[int, int], int] = {}
    visits = np.zeros(len(task), np.int64)
    for row, key in enumerate(zip(lifetime.tolist(), task.tolist(), strict=True)):
        visits[row] = seen.get(key, 0)
        seen[key] = visits[row] + 1
    return visits


@dataclass(frozen=True)
class Adaptation:
    """M10 of segments: median number of episodes and share of segments that never got there.

    A segment that never reached the level counts as longer than any other, so that the median is
    infinite where at least half of them are censored.
    """

    level: float
    median: float
    censored: float
    num_segments: int


def adaptation(lives: Lives, level: float, gaps: Mapping[str, float] | None = None) -> Adaptation:
    """Episodes of a segment until the trailing mean score, over a tenth of it, reaches `level`."""
    whole = lives.whole_segments()
    scores = 1.0 - whole.regret(gaps)
    times = []
    for place in np.unique(whole.place):
        chosen = whole.place == place
        u = scores[chosen][np.argsort(whole.episode[chosen])]
        u = u[np.isfinite(u)]
        if len(u):
            times.append(episodes_to(u, level, share_of(len(u), LAST)))
    found = np.array(times)
    censored = float(np.isinf(found).mean()) if len(found) else float("nan")
    return Adaptation(level, _median(found), censored, len(found))


def episodes_to(u: Array, level: float, trailing: int) -> float:
    """The first episode, from 1, whose mean over it and those before it (`trailing` in all) reaches
    `level`; infinite where none does.
    """
    total = np.concatenate([[0.0], np.cumsum(u)])
    ends = np.arange(trailing, len(u) + 1)
    reached = np.flatnonzero(total[ends] - total[ends - trailing] >= level * trailing)
    return float(ends[reached[0]]) if len(reached) else float("inf")


def _median(values: Array) -> float:
    """The lower median, which never lies between a number and infinity."""
    return float(np.sort(values)[(len(values) - 1) // 2]) if len(values) else float("nan")
