"""One number per lifetime: mean, tail and trend of what it lost.

    M1, M2    mean u and mean (1 - u), over episodes; by steps over windows of equal width
    M2        failure + slowness: (1 - u) of episodes that failed, and of those that did not
    M11       Theil-Sen slope over the segments: median of (x_j - x_i) / (j - i), i < j
    M12       mean u of the worst tenth of the episodes

Source of the slope: Sen 1968, "Estimates of the regression coefficient based on Kendall's tau".
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from sojourn.envs import Windows, dynamic_regret, return_windows, window_width

from ..episodes import Array
from .lives import Lives
from .paired import means_by
from .segments import Segments, share_of

WORST = 0.1
FEWEST = 3  # segments that make a slope


def reward_per_step(lives: Lives) -> Array:
    """M1, `[num_lifetimes]`: all reward of a lifetime's episodes over all their steps."""
    rewards = np.where(lives.by_rate, lives.achieved * lives.num_steps, lives.achieved)
    steps = means_by(np.where(np.isfinite(rewards), lives.num_steps, np.nan), lives.lifetime)
    return np.asarray(means_by(rewards, lives.lifetime) / steps)


def mean_regret(lives: Lives) -> Array:
    """M2 over episodes, `[num_lifetimes]` of those that have an episode with a regret."""
    return means_by(lives.regret(), lives.lifetime)


def regret_of_index(lives: Lives, episode: int) -> Array:
    """Mean regret of the `episode`-th (from 0) episodes of a task, per lifetime that has one."""
    chosen = lives.episode == episode
    return means_by(lives.regret()[chosen], lives.lifetime[chosen])


def failure_split(lives: Lives, success_tasks: Collection[str]) -> dict[str, Array]:
    """M2 over the episodes of the tasks that pay for success alone, `failure` + `slowness`.

    Means over all of these episodes, per lifetime that has one. Where failing pays nothing they are
    `sojourn.envs.failure_and_slowness`, without its step counts.
    """
    chosen = lives.where(np.isin(lives.task, list(success_tasks)) & lives.known)
    regret, failed = chosen.regret(), chosen.achieved <= 0.0
    parts = {"failure": np.where(failed, regret, 0.0), "slowness": np.where(failed, 0.0, regret)}
    return {name: means_by(part, chosen.lifetime) for name, part in parts.items()}


def worst_score(lives: Lives) -> Array:
    """M12, per lifetime."""
    known = lives.known
    scores, lifetime = 1.0 - lives.regret()[known], lives.lifetime[known]
    found = [np.sort(scores[lifetime == one]) for one in np.unique(lifetime)]
    return np.array([u[: share_of(len(u), WORST)].mean() for u in found])


def trend(segments: Segments, name: str) -> Array:
    """M11 of a column of `segments`, per lifetime with at least three segments that have it."""
    values: Array = getattr(segments, name)
    slopes = []
    for one in np.unique(segments.lifetime):
        chosen = (segments.lifetime == one) & np.isfinite(values)
        if chosen.sum() >= FEWEST:
            slopes.append(theil_sen(segments.segment[chosen], values[chosen]))
    return np.array(slopes)


def theil_sen(x: Array, y: Array) -> float:
    """Median slope of all pairs of points with different `x`; `[n]` each, n >= 2."""
    i, j = np.triu_indices(len(x), 1)
    apart = x[j] != x[i]
    i, j = i[apart], j[apart]
    return float(np.median((y[j] - y[i]) / (x[j] - x[i])))


def step_regret(lives: Lives) -> Array:
    """M2 by steps, `[num_lifetimes]`: windows of equal width, an episode counts where it ends.

    Tasks measured by rate have one window per episode, exactly as long. A window without an end
    repeats the one before it in its segment; the first ones of a segment may be missing and count
    nowhere. NaN for a lifetime that mixes both units.
    """
    scores = 1.0 - lives.regret()
    found = []
    for one in np.unique(lives.lifetime):
        chosen = (lives.lifetime == one) & np.isfinite(scores)
        if not chosen.any():
            continue
        life, u = lives.where(chosen), scores[chosen]
        if life.by_rate.all() or not life.by_rate.any():
            windows = _rate_windows(life, u) if life.by_rate.all() else _return_windows(life, u)
            found.append(dynamic_regret(windows, [0.0], [1.0]).normalised)
        else:
            found.append(np.nan)
    return np.array(found)


def _rate_windows(life: Lives, u: Array) -> Windows:
    zeros = np.zeros(len(u), np.int64)
    return Windows(u, life.num_steps.astype(np.float64), zeros, np.zeros(len(u), bool))


def _return_windows(life: Lives, u: Array) -> Windows:
    order = np.argsort(life.start_step, kind="stable")
    ends = (life.start_step + life.num_steps)[order]
    first = np.flatnonzero(np.diff(life.segment[order], prepend=-1))
    starts = life.start_step[order][first] - life.start_step[order][0]
    total = int(ends[-1] - life.start_step[order][0])
    segment_steps = int(np.median(np.diff(np.append(starts, total))))
    width = window_width(segment_steps, float(np.median(life.num_steps)))
    end_step = ends - 1 - life.start_step[order][0]
    windows = return_windows(end_step, u[order], starts, total, width)
    same_scale = np.zeros_like(windows.segment)  # scores need no floor and ceiling per segment
    return Windows(windows.value, windows.width, same_scale, windows.carried)
