"""Lower bounds on the number of actions that a plan still needs.

    bound = max(way to the target,  way to a key + to its door + from there to the target)

over the locked doors that no way avoids. Both ways ignore the things that stand in them, so a bound
is never too large and A* that follows it is exact (Hart, Nilsson & Raphael 1968).
"""

from __future__ import annotations

from typing import NamedTuple

from .planner_distances import UNREACHABLE, Distances, Gate, Post, Regions
from .planner_goals import Face, HasTargets, Open, Stand, Target
from .planner_model import IN_BOX, LOCKED, NOTHING, State, World, can_open


class _Errand(NamedTuple):
    """Take a post at some `cells`, with a free hand where asked, and then act `extra` times."""

    cells: tuple[int, ...]
    post: Post
    extra: int
    free_hand: bool = False


class LowerBound:
    """Callable: a number of actions that no success from a state can do without."""

    def __init__(self, world: World, goal: HasTargets) -> None:
        self._world = world
        self._goal = goal
        self._distances = Distances(world)
        self._regions = Regions(world)
        self._near: dict[Gate, Post] = {}

    def __call__(self, state: State) -> int:
        targets = self._goal.targets(state)
        return min((self._to_target(state, target) for target in targets), default=0)

    def _to_target(self, state: State, target: Target) -> int:
        errand = self._errand(state, target)
        if errand is None:
            return 0
        burdened = errand.free_hand and state.carried != NOTHING
        way = self._distances.to(errand.post, state.doors)[state.pose]
        bound = way + errand.extra + burdened
        if bound >= UNREACHABLE or LOCKED not in state.doors:
            return bound
        if isinstance(target, Open):
            if state.doors[target.door] != LOCKED:
                return bound
            return max(bound, self._with_key(state, target.door, errand.post, 1))
        ends = self._regions.of(errand.cells)
        for gate in self._regions.unavoidable(state.pose >> 2, ends, state.doors):
            bound = max(bound, self._through(state, gate, errand))
        return bound

    def _errand(self, state: State, target: Target) -> _Errand | None:
        """What is left of a target; None where nothing can be said."""
        if isinstance(target, Stand):
            poses = tuple(4 * cell + direction for cell in target.cells for direction in range(4))
            return _Errand(target.cells, poses, target.extra)
        if isinstance(target, Open):
            cell = self._world.doors[target.door][0]
            return _Errand((cell,), self._distances.facing(cell), 1)
        if isinstance(target, Face):
            poses = tuple(pose for cell in target.cells for pose in self._distances.facing(cell))
            return _Errand(tuple(pose >> 2 for pose in poses), poses, 0)
        cell, in_box = self._whereabouts(state, target.thing)
        if cell < 0:
            return None
        return _Errand((cell,), self._distances.facing(cell), 1 + in_box, free_hand=True)

    def _whereabouts(self, state: State, thing: int) -> tuple[int, bool]:
        """The cell where a thing can be had (negative: nowhere), and whether from a box."""
        place = state.places[thing]
        if place != IN_BOX:
            return place, False
        for box, (_, _, contents) in enumerate(self._world.things):
            if contents == thing:
                return state.places[box], True
        return place, True

    def _through(self, state: State, gate: Gate, errand: _Errand) -> int:
        """Actions of an errand that must first unlock a door, from its near side."""
        near = self._near.get(gate)
        if near is None:
            poses = self._distances.facing(self._world.doors[gate.door][0])
            near = tuple(pose for pose in poses if self._regions.of([pose >> 2]) <= gate.near)
            self._near[gate] = near
        way = self._distances.between(near, errand.post)
        rest = 1 + way + errand.extra + errand.free_hand  # the hand that holds the key
        return self._with_key(state, gate.door, near, rest)

    def _with_key(self, state: State, door: int, post: Post, rest: int) -> int:
        """Actions to get a key of a door's colour, to a post at the door, and `rest` from there."""
        if can_open(self._world, state, door):
            return self._distances.to(post, state.doors)[state.pose] + rest
        best = UNREACHABLE
        for index, (kind, colour, _) in enumerate(self._world.things):
            if (kind, colour) != ("key", self._world.doors[door][1].color):
                continue
            cell, in_box = self._whereabouts(state, index)
            if cell < 0:
                return 0  # in a box that is carried, or in a box in a box
            grip = self._distances.facing(cell)
            fetch = self._distances.to(grip, state.doors)[state.pose] + 1 + in_box
            way = fetch + (state.carried != NOTHING) + self._distances.between(grip, post)
            best = min(best, way + rest)
        return best
