"""No play earns more than the planner says: blind searches, which know nothing that it knows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from minigrid.core.world_object import Ball, Box, Door, Floor, Key, Lava
from minigrid.envs.empty import EmptyEnv

from sojourn.envs.minigrid import optimal_steps
from sojourn.envs.minigrid.planner_bounds import LowerBound
from sojourn.envs.minigrid.planner_distances import UNREACHABLE
from sojourn.envs.minigrid.planner_families import OpenDoor, ReachGoal, TakeObject
from sojourn.envs.minigrid.planner_goals import Goal, Outcome
from sojourn.envs.minigrid.planner_model import FORWARD, State, World, successors

from .blind_search import fewest_steps

Make = Callable[..., Any]


def blind_search(env: Any, actions: Collection[int]) -> int | None:
    """Fewest actions to a reward in a game whose state is where everything is."""
    doors = [cell for cell in env.grid.grid if isinstance(cell, Door)]

    def save() -> tuple[Any, ...]:
        states = tuple((door.is_open, door.is_locked) for door in doors)
        place = (*map(int, env.agent_pos), int(env.agent_dir))
        return (*place, env.carrying, tuple(env.grid.grid), states)

    def load(x: int, y: int, direction: int, carrying: Any, cells: Any, states: Any) -> None:
        env.agent_pos, env.agent_dir, env.carrying = (x, y), direction, carrying
        env.grid.grid = list(cells)
        for door, (is_open, is_locked) in zip(doors, states, strict=True):
            door.is_open, door.is_locked = is_open, is_locked

    return fewest_steps(env, actions, save, load)


@pytest.mark.parametrize(
    ("name", "num_actions"),
    [
        *[("Empty-Random-5x5-v0", 7), ("LavaGapS6-v0", 7), ("DistShift1-v0", 7)],
        *[("DoorKey-5x5-v0", 7), ("DoorKey-5x5-v0", 6), ("DoorKey-5x5-v0", 5)],
        *[("DoorKey-5x5-v0", 3), ("Fetch-5x5-N2-v0", 7), ("Fetch-5x5-N2-v0", 3)],
        *[("GoToDoor-6x6-v0", 7), ("GoToDoor-6x6-v0", 6), ("GoToObject-6x6-N2-v0", 7)],
        *[("PutNear-6x6-N2-v0", 7), ("PutNear-6x6-N2-v0", 4), ("RedBlueDoors-6x6-v0", 7)],
        *[("MultiRoom-N2-S4-v0", 7), ("MemoryS7-v0", 7), ("MemoryS7-v0", 3), ("Unlock-v0", 7)],
        *[("KeyCorridorS3R1-v0", 7), ("SimpleCrossingS9N1-v0", 3), ("FourRooms-v0", 2)],
    ],
)
def test_agrees_with_blind_search_of_the_real_game(
    name: str, num_actions: int, original: Make
) -> None:
    env = original(f"MiniGrid-{name}")
    for seed in (0, 1):
        env.reset(seed=seed)
        found = optimal_steps(env, range(num_actions))
        assert found == blind_search(env, range(num_actions))


def random_room(seed: int, num_things: int) -> Any:
    """Two halves with doors of any state between them, things and tiles of any kind around."""
    env = EmptyEnv(size=6, max_steps=40)
    env.reset(seed=0)
    rng = np.random.default_rng(seed)
    env.grid.vert_wall(3, 1, 4)
    for y in rng.choice([1, 2, 3, 4], size=1 + seed % 2, replace=False):
        state = rng.choice(["open", "closed", "locked", "locked"])
        door = Door(str(rng.choice(["red", "red", "blue"])), state == "open", state == "locked")
        env.grid.set(3, int(y), door)
    env.agent_pos, env.agent_dir = (1, int(rng.integers(1, 5))), int(rng.integers(4))
    for _ in range(num_things):
        x, y = int(rng.choice([1, 2, 2, 4])), int(rng.integers(1, 5))
        red, blue = Key("red"), Key("blue")
        things = [red, red, blue, Ball("red"), Box("grey", red), Box("grey", Ball("red"))]
        things += [Box("red"), Floor("red"), Floor("red"), Lava(), Door("red", is_locked=True)]
        if (x, y) not in (env.agent_pos, (4, 4)):
            env.grid.set(x, y, things[rng.integers(len(things))])
    return env


@pytest.mark.parametrize("seed", range(60))
def test_agrees_with_blind_search_of_random_rooms(seed: int) -> None:
    env = random_room(seed, num_things=2 + seed % 3)
    found = optimal_steps(env, range(6))
    assert found == blind_search(env, range(6))


def costs_to_go(world: World, goal: Goal) -> dict[State, int]:
    """Fewest actions to success from every state that can be reached, by exhaustion."""
    before: dict[State, list[State]] = {world.start: []}
    pending, last_but_one = [world.start], []
    while pending:
        state = pending.pop()
        for action, after in successors(world, state, goal.actions):
            cell = after.pose >> 2
            if action == FORWARD and cell in world.lava:
                continue
            outcome = goal.outcome(action, state, after)
            if (action == FORWARD and cell in world.goals) or outcome is Outcome.SUCCESS:
                last_but_one.append(state)
            elif outcome is Outcome.CONTINUE:
                if after not in before:
                    pending.append(after)
                before.setdefault(after, []).append(state)
    costs = dict.fromkeys(before, UNREACHABLE)
    costs |= dict.fromkeys(last_but_one, 1)
    queue = deque(dict.fromkeys(last_but_one))
    while queue:
        state = queue.popleft()
        for earlier in before[state]:
            if costs[earlier] == UNREACHABLE:
                costs[earlier] = costs[state] + 1
                queue.append(earlier)
    return costs


def goals_of(env: Any) -> list[tuple[World, Goal]]:
    """The goal tile, every thing and every door that is not open as the goal of a task."""
    world = World(env)
    goals: list[tuple[World, Goal]] = [(world, ReachGoal(world, env))]
    env.grid.set(4, 4, None)
    bare = World(env)
    goals += [(bare, TakeObject(bare, SimpleNamespace(obj=o))) for o in bare.thing_objects]
    shut = [door for _, door in bare.doors if not door.is_open]
    goals += [(bare, OpenDoor(bare, SimpleNamespace(door=door))) for door in shut]
    return goals


@pytest.mark.parametrize("seed", range(16))
def test_bounds_are_never_above_the_truth(seed: int) -> None:
    for world, goal in goals_of(random_room(seed, num_things=2)):
        bound = LowerBound(world, goal)
        costs = costs_to_go(world, goal)
        bounds = {state: min(bound(state), UNREACHABLE) for state in costs}
        assert not [state for state, cost in costs.items() if bounds[state] > cost]


def test_doors_side_by_side_are_one_way_through() -> None:
    env = EmptyEnv(size=6, max_steps=40)
    env.reset(seed=0)
    env.grid.vert_wall(2, 1, 4)
    env.grid.vert_wall(3, 1, 4)
    for x in (2, 3):
        env.grid.set(x, 2, Door("red"))
    env.grid.set(2, 3, Door("blue", is_locked=True))
    assert optimal_steps(env) == blind_search(env, range(6)) == 11
