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


def reached(segment: Array) -> Array:
    """The places in life, in order, that at least half as many lives reached as any place.

    Of lives limited by steps only fast ones have later segments: their mean would mislead.
    """
    places, lives = np.unique(segment, return_counts=True)
    return np.asarray(places[2 * lives >= lives.max(initial=0)])


def segments_of(lives: Lives, gaps: Mapping[str, float] | None = None) -> Segments:
    """A row for every segment that was lived to its end; `gaps` as in `Lives.regret`."""
    whole = lives.whole_segments()
    scores = 1.0 - whole.regret(gaps)
    places, first_row, index = np.unique(whole.place, return_index=True, return_inverse=True)
    names = ("regret", "transient", "residual", "jump_start")
    columns = {name: np.full(len(places), np.nan) for name in names}
    known = np.isfinite(scores)
    count = np.bincount(index[known], minlength=len(places))
    order = np.lexsort((whole.episode[known], index[known]))
    ordered, owner = scores[known][order], index[known][order]
    for length in np.unique(count[count > 0]):  # segments of one length at once
        u = ordered[count[owner] == length].reshape(-1, length)
        chosen = count == length
        columns["regret"][chosen] = 1.0 - u.mean(axis=1)
        columns["transient"][chosen], columns["residual"][chosen] = split_scores(u)
        columns["jump_start"][chosen] = u[:, : share_of(length, FIRST)].mean(axis=1)
    lifetime, task = whole.lifetime[first_row], whole.task_index[first_row]
    return Segments(
        lifetime=lifetime,
        segment=whole.segment[first_row],
        task_index=task,
        visit=_visits(lifetime, task),
        num_episodes=count.astype(np.int64),
        **columns,
    )


def split_scores(u: Array) -> tuple[Array, Array]:
    """M3 of segments with scores `[num_segments, num_episodes]`, per episode: transient, residual.

    What `sojourn.envs.split_regret` says of episodes of equal width.
    """
    last = u[:, -share_of(u.shape[1], LAST) :].mean(axis=1)
    return last - u.mean(axis=1), 1.0 - last


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
