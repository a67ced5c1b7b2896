"""The shortest way through obstacles that move at random, for who knows how they will move.

    state = (pose, places of the obstacles, state of the random generator)

A* as of a layout that stands still, with the ways of one without obstacles as its bound: never too
large, so the plan is the shortest. Source: `minigrid.envs.dynamicobstacles.DynamicObstaclesEnv`.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from .planner_bounds import LowerBound
from .planner_goals import MOVES, Goal, Outcome, Stand, Target
from .planner_model import FORWARD, LEFT, NOTHING, OUTSIDE, State, World

MAX_TRIES = 100
"""After one more an obstacle stays where it is."""


class Dodge(Goal):
    """Enter a goal tile without a step towards something that is in the way."""

    actions = MOVES

    def __init__(self, world: World, env: Any) -> None:
        self._target = Stand(tuple(sorted(world.goals)))
        self.obstacles = tuple(world.cell(obstacle.cur_pos) for obstacle in env.obstacles)
        self.generator = env.np_random

    def outcome(self, action: int, before: State, after: State) -> Outcome:
        return Outcome.CONTINUE

    def targets(self, state: State) -> tuple[Target, ...]:
        return (self._target,)


class Moment(NamedTuple):
    """What a step changes; `luck` is what the random generator will draw from."""

    pose: int
    obstacles: tuple[int, ...]
    luck: tuple[int, int, int, int]


class ObstacleSearch:
    """A* from the present moment; plans of more than `limit` actions do not count."""

    def __init__(self, world: World, goal: Dodge, allowed: set[int], limit: int) -> None:
        self.limit = limit
        self._world, self._actions = world, sorted(goal.actions & allowed)
        self._obstacles = _Obstacles(world, goal)
        self._bound = LowerBound(world, goal)
        self._start = Moment(world.start.pose, goal.obstacles, self._obstacles.luck)
        self._bounds: dict[int, int] = {}

    def run(self, weight: float, max_nodes: int) -> tuple[tuple[int, ...] | None, int]:
        """The first plan found, and how many actions no plan is below (if `weight` is 1)."""
        numbers = count()
        first = (weight * self._bound_of(self._start.pose), 0, next(numbers), self._start, ())
        queue: list[tuple[float, int, int, Moment | None, tuple[int, ...]]] = [first]
        seen, min_steps = set[tuple[Moment, int]](), 0.0
        while queue and self._bound_of(self._start.pose) <= self.limit:
            priority, _, _, moment, actions = heappop(queue)
            min_steps = max(min_steps, priority)
            if moment is None:
                return actions, len(actions)
            if (moment, len(actions)) in seen:
                continue
            if max_nodes == 0:
                return None, ceil(min_steps)
            max_nodes -= 1
            seen.add((moment, len(actions)))
            taken = len(actions) + 1
            for action, after in self._moves(moment):
                left = 0 if after is None else self._bound_of(after.pose)
                if taken + left <= self.limit:
                    entry = (taken + weight * left, -taken, next(numbers))
                    heappush(queue, (*entry, after, (*actions, action)))
        return None, self.limit + 1

    def _moves(self, moment: Moment) -> Iterator[tuple[int, Moment | None]]:
        """Moves that do not fail and where they lead; None on a goal tile."""
        pose, world = moment.pose, self._world
        ahead = world.front[pose]
        obstacles, luck = self._obstacles.moved(moment)
        for action in self._actions:
            if action != FORWARD:
                turned = (pose & ~3) | ((pose + (-1 if action == LEFT else 1)) & 3)
                yield action, Moment(turned, obstacles, luck)
            elif ahead in world.goals:
                yield action, None
            elif ahead != OUTSIDE and ahead not in world.walls | set(moment.obstacles):
                blocked = ahead in obstacles
                yield action, Moment(pose if blocked else 4 * ahead + (pose & 3), obstacles, luck)

    def _bound_of(self, pose: int) -> int:
        if pose not in self._bounds:
            self._bounds[pose] = self._bound(State(pose, NOTHING, (), ()))
        return self._bounds[pose]


class _Obstacles:
    """How the obstacles will move: draws of the environment's generator, as its own step does."""

    def __init__(self, world: World, goal: Dodge) -> None:
        self._world = world
        bits = goal.generator.bit_generator
        self._generator = np.random.Generator(type(bits)())
        self._bits, self._name = self._generator.bit_generator, bits.state["bit_generator"]
        self._still = world.walls | world.goals
        self.luck = _luck_of(bits)

    def moved(self, moment: Moment) -> tuple[tuple[int, ...], tuple[int, int, int, int]]:
        """Places of the obstacles after a step, one after another, and what is left to draw."""
        state, increment, has_half, half = moment.luck
        self._bits.state = {
            "bit_generator": self._name,
            "state": {"state": state, "inc": increment},
            "has_uint32": has_half,
            "uinteger": half,
        }
        places = list(moment.obstacles)
        for number, place in enumerate(places):
            taken = {*self._still, *places, moment.pose >> 2}
            places[number] = self._drawn(place, taken)
        return tuple(places), _luck_of(self._bits)

    def _drawn(self, place: int, taken: set[int]) -> int:
        width, height = self._world.width, self._world.height
        y, x = divmod(place, width)
        left, top = max(x - 1, 0), max(y - 1, 0)
        right, bottom = min(left + 3, width), min(top + 3, height)
        for _ in range(MAX_TRIES + 1):
            column = int(self._generator.integers(left, right))
            cell = int(self._generator.integers(top, bottom)) * width + column
            if cell not in taken:
                return cell
        return place


def _luck_of(bits: Any) -> tuple[int, int, int, int]:
    told = bits.state
    inner = told["state"]
    return inner["state"], inner["inc"], told["has_uint32"], told["uinteger"]
