"""Distances between poses, and the locked doors between them, without keys, balls and boxes.

Turning and going forward cost one action each, going through a door that is not open one more. The
real ways are never shorter, because things only stand in the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from .planner_model import LOCKED, OPEN, OUTSIDE, World

UNREACHABLE = 10**9

Post = tuple[int, ...]
DoorStates = tuple[int, ...] | None
"""States of the doors; None: all open."""


class Gate(NamedTuple):
    """A locked door and the parts of the layout that can be reached without it."""

    door: int
    near: frozenset[int]


class Distances:
    """Fewest moves between poses, things ignored; a post is some poses, any of which will do."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._entered_from = [OUTSIDE] * len(world.front)
        for pose, cell in enumerate(world.front):
            if cell != OUTSIDE:
                self._entered_from[4 * cell + (pose & 3)] = pose
        self._facing: dict[int, Post] = {}
        self._ways: dict[tuple[Post, DoorStates], list[int]] = {}
        self._between: dict[tuple[Post, Post], int] = {}

    def facing(self, cell: int) -> Post:
        """The poses that face a cell."""
        if cell not in self._facing:
            poses = self._entered_from[4 * cell : 4 * cell + 4]
            walls = self._world.walls
            self._facing[cell] = tuple(p for p in poses if p != OUTSIDE and p >> 2 not in walls)
        return self._facing[cell]

    def to(self, post: Post, doors: DoorStates) -> list[int]:
        """Moves from each pose to the post; UNREACHABLE where there is no way."""
        known = self._ways.get((post, doors))
        if known is None:
            known = self._ways[post, doors] = self._search(post, doors)
        return known

    def between(self, start: Post, end: Post) -> int:
        """Moves from the best pose of one post to another, all doors open."""
        known = self._between.get((start, end))
        if known is None:
            ways = self.to(end, None)
            known = min((ways[pose] for pose in start), default=UNREACHABLE)
            self._between[start, end] = known
        return known

    def _search(self, ends: Post, doors: DoorStates) -> list[int]:
        """Dijkstra's algorithm backwards from `ends`."""
        world, closed = self._world, set[int]()
        if doors is not None:
            closed = {cell for cell, door in world.door_at.items() if doors[door] != OPEN}
        barred = world.walls | world.goals  # an episode ends on a goal tile
        distance = [UNREACHABLE] * len(world.front)
        queue = []
        for pose in ends:
            distance[pose] = 0
            queue.append((0, pose))
        while queue:
            near, pose = heappop(queue)
            if near > distance[pose]:
                continue
            cell = pose >> 2
            before = [(near + 1, 4 * cell + (pose + turn & 3)) for turn in (1, -1)]
            entry = self._entered_from[pose]
            if entry != OUTSIDE and entry >> 2 not in barred:
                before.append((near + 1 + (cell in closed), entry))
            for far, other in before:
                if far < distance[other]:
                    distance[other] = far
                    heappush(queue, (far, other))
        return distance


class Regions:
    """The parts into which doors divide a layout; every door is a part of its own."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._part: dict[int, int] = {cell: door for cell, door in world.door_at.items()}
        for cell in range(world.width * world.height):
            if cell not in self._part and cell not in world.walls:
                self._flood(cell, len(self._part))
        self._beside: dict[int, set[int]] = {}
        for cell, door in world.door_at.items():
            for neighbour in self._around(cell):
                self._beside.setdefault(door, set()).add(self._part[neighbour])
                self._beside.setdefault(self._part[neighbour], set()).add(door)
        self._known: dict[tuple[int, frozenset[int], tuple[int, ...]], list[Gate]] = {}

    def of(self, cells: Iterable[int]) -> frozenset[int]:
        """The parts that hold any of the cells."""
        return frozenset(self._part[cell] for cell in cells if cell in self._part)

    def unavoidable(self, start: int, ends: frozenset[int], doors: tuple[int, ...]) -> list[Gate]:
        """The locked doors on every way from a cell to the parts `ends`."""
        key = (self._part[start], ends, doors)
        if key not in self._known:
            locked = [door for door, state in enumerate(doors) if state == LOCKED]
            gates = [Gate(door, self._reachable(self._part[start], door)) for door in locked]
            self._known[key] = [gate for gate in gates if not gate.near & ends]
        return self._known[key]

    def _reachable(self, start: int, barred: int) -> frozenset[int]:
        """Parts that can be reached from one without passing a door."""
        reached, pending = {start, barred}, [start]
        while pending:
            new = self._beside.get(pending.pop(), set()) - reached
            reached |= new
            pending.extend(new)
        return frozenset(reached - {barred})

    def _flood(self, cell: int, part: int) -> None:
        pending = [cell]
        while pending:
            cell = pending.pop()
            if cell not in self._part:
                self._part[cell] = part
                pending.extend(self._around(cell))

    def _around(self, cell: int) -> list[int]:
        cells = self._world.front[4 * cell : 4 * cell + 4]
        return [c for c in cells if c != OUTSIDE and c not in self._world.walls]
