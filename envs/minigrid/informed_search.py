"""The searches behind the informed ceilings: look first, guess, find out what the actions do.

R(k) = 1 - 0.9 k / max_steps,  0 beyond max_steps,  for a success after k steps
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from ..interface import Array
from .pose_graph import CONTINUED, NUM_MOVES, SUCCEEDED, PoseGraph, distances_to
from .remembered import Remembered

MAX_LAYOUTS, MAX_VALUES = 512, 16_384

Ends = tuple[int, int]
Sights = dict[int, tuple[bool, bool]]

_sights = Remembered[Any, Sights](MAX_LAYOUTS)
_looked = Remembered[Any, float](MAX_VALUES)


def reward_at(num_steps: Any, max_steps: int) -> Any:
    """R of a number of steps or of an array of them."""
    steps = np.asarray(num_steps)
    return np.where(steps <= max_steps, 1.0 - 0.9 * (steps / max_steps), 0.0)


def guessing(graph: PoseGraph, ends: Ends, start: int, max_steps: int) -> float:
    """Half of R on the way to the nearer end: right with probability one half."""
    return float(0.5 * reward_at(distances_to(graph, ends)[start], max_steps))


def looking_first(base: Any, graph: PoseGraph, ends: Ends, start: int) -> float:
    """The best plan that may first see the cue and one of the ends of a Memory layout.

    What is seen tells which end is right, each with probability one half, so that a plan is worth
    max over poses where both are known of  mean over ends of R(steps so far + way to the end).
    """
    key = (graph.layout, start, base.max_steps, base.agent_view_size)
    return _looked.get(key, lambda: _looking_first(base, graph, ends, start))


def _looking_first(base: Any, graph: PoseGraph, ends: Ends, start: int) -> float:
    sights = _sights_of(base, graph)
    best = guessing(graph, ends, start, base.max_steps)
    ways = [distances_to(graph, [end]) for end in ends]
    first = (start, *_sight(base, sights, start))
    queue, steps = deque([first]), {first: 0}
    while queue:
        state = queue.popleft()
        pose, cue, end = state
        if cue and end:
            lengths = [steps[state] + int(way[pose]) for way in ways]
            best = max(best, float(reward_at(lengths, base.max_steps).mean()))
            continue
        for after, outcome in zip(graph.after[pose].tolist(), graph.outcome[pose], strict=True):
            if outcome != CONTINUED:
                continue
            now = _sight(base, sights, after)
            reached = (after, cue or now[0], end or now[1])
            if reached not in steps:
                steps[reached] = steps[state] + 1
                queue.append(reached)
    return best


def finding_out(graph: PoseGraph, max_steps: int, num_idle: int) -> Array:
    """Best expected return `[P]` where three moves and `num_idle` idle actions are renamed.

    Whoever tries an unknown action gets one of the unknown meanings, all equally likely, and knows
    it from then on; the last one follows from the others:

        V_t(p, U) = max( max over known m of Q_t(p, m, U),  mean over u in U of Q_t(p, u, U - u) )
    """
    return _finding_out(*graph.key, max_steps, num_idle)


@lru_cache(maxsize=MAX_LAYOUTS)
def _finding_out(after_bytes: bytes, outcome_bytes: bytes, max_steps: int, num_idle: int) -> Array:
    after = np.frombuffer(after_bytes, np.int64).reshape(-1, NUM_MOVES)
    outcome = np.frombuffer(outcome_bytes, np.int64).reshape(-1, NUM_MOVES)
    moves = range(NUM_MOVES)
    states = [
        (frozenset(unknown), idle)
        for size in range(NUM_MOVES + 1)
        for unknown in combinations(moves, size)
        for idle in range(num_idle + 1)
    ]
    values = {state: np.zeros(len(after)) for state in states}

    def moved(later: dict[Any, Array], step: int, move: int, state: Any) -> Array:
        ends = np.where(outcome[:, move] == SUCCEEDED, reward_at(step, max_steps), 0.0)
        return np.where(outcome[:, move] == CONTINUED, later[state][after[:, move]], ends)

    for step in range(max_steps, 0, -1):
        later, values = values, {}
        for unknown, idle in states:
            if len(unknown) + idle == 1:  # it follows from the others
                values[unknown, idle] = values[frozenset(), 0]
                continue
            state = (unknown, idle)
            options = [moved(later, step, m, state) for m in moves if m not in unknown]
            tried = [moved(later, step, m, (unknown - {m}, idle)) for m in sorted(unknown)]
            if idle:
                tried += [later[unknown, idle - 1]] * idle
            if tried:
                options.append(np.mean(tried, 0))
            values[state] = np.max(options, 0)
    result = values[frozenset(moves), num_idle]
    result.setflags(write=False)
    return result


def _sights_of(base: Any, graph: PoseGraph) -> Sights:
    """What is known of this layout's sights; ends and cue stand where all its like have them."""
    return _sights.get((graph.layout, base.agent_view_size), dict)


def _sight(base: Any, sights: Sights, pose: int) -> tuple[bool, bool]:
    """Whether the cue, and whether one of the two objects at the ends, is in view from a pose."""
    if pose not in sights:
        place, direction = base.agent_pos, base.agent_dir
        y, x = divmod(pose >> 2, base.width)
        try:
            base.agent_pos, base.agent_dir = np.array((x, y)), pose & 3
            _, visible = base.gen_obs_grid()
            cue, *objects = [_in_view(base, visible, cell) for cell in _marks(base)]
        finally:
            base.agent_pos, base.agent_dir = place, direction
        sights[pose] = (cue, any(objects))
    return sights[pose]


def _marks(base: Any) -> list[tuple[int, int]]:
    """The cue and the objects above and below the ends of a Memory layout, as (x, y)."""
    ends = sorted((tuple(map(int, base.success_pos)), tuple(map(int, base.failure_pos))))
    (x, top), (_, bottom) = ends
    return [(1, base.height // 2 - 1), (x, top - 1), (x, bottom + 1)]


def _in_view(base: Any, visible: Array, cell: tuple[int, int]) -> bool:
    place = base.relative_coords(*cell)
    return place is not None and bool(visible[place[0], place[1]])
