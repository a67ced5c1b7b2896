"""The poses of a layout in which nothing can be moved, and where turning and walking lead.

pose = 4 cell + direction;  after[pose, move] for left, right, forward; a blocked step stays
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..interface import Array
from .planner_families import ReachGoal, RightCell
from .planner_goals import Goal
from .planner_model import OPEN, OUTSIDE, World

NUM_MOVES = 3
CONTINUED, FAILED, SUCCEEDED = 0, 1, 2


@dataclass(frozen=True)
class PoseGraph:
    """`after` int `[P, 3]`; `outcome` int `[P, 3]` says how a move leaves the episode."""

    after: Array
    outcome: Array

    @property
    def key(self) -> tuple[bytes, bytes]:
        """Equal for equal graphs."""
        return self.after.tobytes(), self.outcome.tobytes()

    @property
    def layout(self) -> tuple[bytes, bytes]:
        """Equal for graphs that differ at most in which of their ends is right."""
        return self.after.tobytes(), (self.outcome != CONTINUED).tobytes()


def pose_graph(world: World, goal: Goal) -> PoseGraph | None:
    """The graph of a layout; None where more than moves matters: things, doors, other goals.

    Things that are only in the way, as in Memory, are walls.
    """
    if isinstance(goal, RightCell):
        ends = {goal.right: SUCCEEDED, goal.wrong: FAILED}
    elif isinstance(goal, ReachGoal) and not (world.things or world.doors):
        ends = dict.fromkeys(world.goals, SUCCEEDED)
    else:
        return None
    ends |= dict.fromkeys(world.lava, FAILED)
    closed = {cell for cell, door in world.door_at.items() if world.start.doors[door] != OPEN}
    blocked = world.solid | closed | set(world.start.places)
    poses = np.arange(len(world.front))
    after = np.stack([(poses & ~3) | ((poses + turn) & 3) for turn in (-1, 1, 0)], 1)
    outcome = np.full(after.shape, CONTINUED)
    for pose, cell in enumerate(world.front):
        if cell != OUTSIDE and cell not in blocked:
            after[pose, 2] = 4 * cell + (pose & 3)
            outcome[pose, 2] = ends.get(cell, CONTINUED)
    return PoseGraph(after, outcome)


def distances_to(graph: PoseGraph, cells: Iterable[int]) -> Array:
    """Fewest moves `[P]` from every pose until one of the cells is entered.

    Cells that end the episode are not walked through. Where there is no way the number is above any
    that a way can have.
    """
    never = len(graph.after) + 1
    entered = (graph.outcome != CONTINUED) & np.isin(graph.after >> 2, list(cells))
    distance = np.where(entered.any(1), 1, never)
    while True:
        onward = np.where(graph.outcome == CONTINUED, distance[graph.after], never).min(1) + 1
        shorter = np.minimum(distance, onward)
        if (shorter == distance).all():
            return distance
        distance = shorter
