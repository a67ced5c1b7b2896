"""The fewest actions of a MiniGrid episode, and so its best return: A* on a copy of its rules.

    best return = 1 - 0.9 (t + T) / max_steps  for a shortest plan of T actions at step t,  0 where
    t + T > max_steps

Source: Hart, Nilsson & Raphael (1968), "A formal basis for the heuristic determination of minimum
cost paths", with re-opening; the reward is `minigrid.minigrid_env.MiniGridEnv._reward`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain
from math import ceil

from minigrid.core.actions import Actions
from minigrid.minigrid_env import MiniGridEnv

from ..task import Env
from .planner_bounds import LowerBound
from .planner_families import goal_of
from .planner_goals import Goal, Outcome
from .planner_missions import Mission, MissionBound
from .planner_model import FORWARD, State, Unplannable, World, successors
from .planner_obstacles import Dodge, ObstacleSearch
from .planner_rules import ByRules, RuleBound

MAX_NODES = 100_000
CONTINUED = -1  # in place of an action: the episode goes on
DETOURS = (1.5, 2.5, 5.0)
"""Weights of the bound in the searches for any plan, once that for the best one took too long."""


@dataclass(frozen=True)
class Plan:
    """What is known of the shortest plan from the present state of an environment.

    `actions` (native) is the best plan found, None where there is none within `max_steps`; no plan
    has fewer than `min_steps` actions (more than are left of the episode where nothing succeeds in
    time). `step` is the number of steps already taken.
    """

    actions: tuple[int, ...] | None
    min_steps: int
    step: int
    max_steps: int

    @property
    def is_exact(self) -> bool:
        """Whether the best return is known, not only bounded."""
        low, high = self.return_bounds
        return low == high

    @property
    def return_bounds(self) -> tuple[float, float]:
        """Lower and upper bound of the best return from here."""
        found = self._return(self.max_steps + 1 if self.actions is None else len(self.actions))
        return found, self._return(self.min_steps)

    def _return(self, num_steps: int) -> float:
        end = self.step + num_steps
        return 1 - 0.9 * (end / self.max_steps) if end <= self.max_steps else 0.0


def plan(
    env: Env, actions: Collection[int] | None = None, max_nodes: int = MAX_NODES
) -> Plan | None:
    """The shortest plan from the present state of a MiniGrid environment, which is only read.

    `actions` restricts the native actions a plan may use; wrappers are looked through. When the
    search has seen `max_nodes` states without an answer, the plan is bounded instead of exact. None
    where the rules or the objects of the environment are not known (no reward at all, rules of
    one's own). Raises ValueError for an environment that is not MiniGrid's and before its first
    reset.
    """
    base = env.unwrapped
    if not isinstance(base, MiniGridEnv):
        raise ValueError(f"plan: expected a MiniGrid environment, got {base}")
    if base.agent_pos is None:
        raise ValueError(f"plan: {base} has no layout yet; reset it first")
    try:
        world = World(base)
        goal = goal_of(world, base)
    except Unplannable:
        return None
    allowed = (
        set(range(getattr(base.action_space, "n", len(Actions))))
        if actions is None
        else set(actions)
    )
    limit = base.max_steps - base.step_count
    search: _Search | ObstacleSearch
    if isinstance(goal, Dodge):
        search = ObstacleSearch(world, goal, allowed, limit)
    else:
        search = _Search(world, goal, allowed, limit)
    found, min_steps = search.run(1.0, max_nodes)
    for weight in DETOURS:
        if found is not None or min_steps > search.limit:
            break
        found, _ = search.run(weight, max_nodes)
    return Plan(found, min_steps, base.step_count, base.max_steps)


def optimal_steps(env: Env, actions: Collection[int] | None = None) -> int | None:
    """Fewest actions to success from here; None where unknown or where nothing succeeds in time."""
    found = plan(env, actions)
    if found is None or found.actions is None or len(found.actions) > found.min_steps:
        return None
    return len(found.actions)


def optimal_return(
    env: Env, actions: Collection[int] | None = None, max_nodes: int = MAX_NODES
) -> float:
    """Best return from here, 0 where nothing succeeds in time; NaN where not known exactly."""
    found = plan(env, actions, max_nodes)
    return found.return_bounds[0] if found is not None and found.is_exact else float("nan")


class _Search:
    """A* from the start of a world; plans of more than `limit` actions do not count."""

    def __init__(self, world: World, goal: Goal, allowed: set[int], limit: int) -> None:
        self.limit = limit
        self._world = world
        self._goal = goal
        self._actions = goal.actions & allowed
        self._bound: Callable[[State], int] = LowerBound(world, goal)
        if isinstance(goal, ByRules):
            self._bound = RuleBound(world, goal)
        elif isinstance(goal, Mission):
            self._bound = MissionBound(world, goal)
        self._bounds: dict[State, int] = {}

    def run(self, weight: float, max_nodes: int) -> tuple[tuple[int, ...] | None, int]:
        """The first plan found, and how many actions no plan is below (if `weight` is 1)."""
        start = self._world.start
        steps = {start: 0}
        origin: dict[State, tuple[State, int]] = {}
        queue = [(weight * self._bound_of(start), 0, 0, start, CONTINUED)]
        num_pushed, min_steps = 0, 0.0
        while queue and self._bound_of(start) <= self.limit:
            priority, minus_taken, _, state, last = heappop(queue)
            min_steps = max(min_steps, priority)
            if last != CONTINUED:
                return (*_actions_to(state, origin), last), -minus_taken
            if -minus_taken > steps[state]:
                continue  # reached in fewer steps since
            if max_nodes == 0:
                return None, ceil(min_steps)
            max_nodes -= 1
            taken = steps[state] + 1
            for action, success, after in self._moves(state):
                if success:
                    entry = (float(taken), state, action)
                elif (
                    taken < steps.get(after, taken + 1)
                    and taken + self._bound_of(after) <= self.limit
                ):
                    steps[after] = taken
                    origin[after] = (state, action)
                    entry = (taken + weight * self._bound_of(after), after, CONTINUED)
                else:
                    continue
                num_pushed += 1
                heappush(queue, (entry[0], -taken, num_pushed, entry[1], entry[2]))
        return None, self.limit + 1

    def _moves(self, state: State) -> Iterator[tuple[int, bool, State]]:
        """Moves that do not end the episode in failure, with whether they end it in success."""
        useful = successors(self._world, state, self._actions)
        for action, after in chain(useful, self._goal.own_moves(state, self._actions)):
            after = self._goal.settled(action, state, after)
            if action == FORWARD and after.pose >> 2 in self._world.goals:
                yield action, True, after
            elif action != FORWARD or after.pose >> 2 not in self._world.lava:
                outcome = self._goal.outcome(action, state, after)
                if outcome is not Outcome.FAILURE:
                    yield action, outcome is Outcome.SUCCESS, after

    def _bound_of(self, state: State) -> int:
        bound = self._bounds.get(state)
        if bound is None:
            bound = self._bounds[state] = self._bound(state)
        return bound


def _actions_to(state: State, origin: dict[State, tuple[State, int]]) -> list[int]:
    actions = []
    while state in origin:
        state, action = origin[state]
        actions.append(action)
    return actions[::-1]
