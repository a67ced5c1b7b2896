"""The rules of the MiniGrid families: what ends an episode, and what has to be reached for success.

Source: the `step` of the environments in `minigrid.envs`; a family is known by that very function,
so an environment with rules of its own is never mistaken for one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel
from minigrid.envs.blockedunlockpickup import BlockedUnlockPickupEnv
from minigrid.envs.dynamicobstacles import DynamicObstaclesEnv
from minigrid.envs.fetch import FetchEnv
from minigrid.envs.gotodoor import GoToDoorEnv
from minigrid.envs.gotoobject import GoToObjectEnv
from minigrid.envs.keycorridor import KeyCorridorEnv
from minigrid.envs.memory import MemoryEnv
from minigrid.envs.obstructedmaze import ObstructedMazeEnv
from minigrid.envs.putnear import PutNearEnv
from minigrid.envs.redbluedoors import RedBlueDoorEnv
from minigrid.envs.unlock import UnlockEnv
from minigrid.envs.unlockpickup import UnlockPickupEnv
from minigrid.minigrid_env import MiniGridEnv

from .planner_goals import MOVES, Goal, Open, Outcome, Stand, Take, Target
from .planner_missions import Mission
from .planner_model import DONE, DROP, NOTHING, OPEN, PICKUP, TOGGLE, State, Unplannable, World
from .planner_obstacles import Dodge
from .planner_rules import ByRules
from .rule_room import RuleRoom
from .variants import TwoGoals


class ReachGoal(Goal):
    """Enter a goal tile: the rule of the base class."""

    def __init__(self, world: World, env: Any) -> None:
        del env
        if not world.goals:
            raise Unplannable("no goal tile and no rule of its own: nothing is rewarded")
        self._target = Stand(tuple(sorted(world.goals)))

    def outcome(self, action: int, before: State, after: State) -> Outcome:
        return Outcome.CONTINUE

    def targets(self, state: State) -> tuple[Target, ...]:
        return (self._target,)


class TakeObject(Goal):
    """Pick up `env.obj` (KeyCorridor, UnlockPickup, BlockedUnlockPickup, ObstructedMaze)."""

    def __init__(self, world: World, env: Any) -> None:
        self._thing = world.thing(env.obj)

    def outcome(self, action: int, before: State, after: State) -> Outcome:
        taken = action == PICKUP and after.carried == self._thing
        return Outcome.SUCCESS if taken else Outcome.CONTINUE

    def targets(self, state: State) -> tuple[Target, ...]:
        return (Take(self._thing),)


class Fetch(Goal):
    """Pick up a thing of the named kind and colour; any other ends the episode."""

    actions = MOVES | {PICKUP}

    def __init__(self, world: World, env: Any) -> None:
        self._wanted = _things(world, env.targetType, env.targetColor)

    def outcome(self, action: int, before: State, after: State) -> Outcome:
        if after.carried == NOTHING:
            return Outcome.CONTINUE
        return Outcome.SUCCESS if after.carried in self._wanted else Outcome.FAILURE

    def targets(self, state: State) -> tuple[Target, ...]:
        return tuple(Take(thing) for thing in self._wanted)


class PutNear(Goal):
    """Pick up the named thing and drop it within one cell of the target's place."""

    def __init__(self, world: World, env: Any) -> None:
        self._wanted = _things(world, env.move_type, env.moveColor)
        x, y = map(int, env.target_pos)
        self._near = {
            world.cell((i, j))
            for i in range(max(x - 1, 0), min(x + 2, world.width))
            for j in range(max(y - 1, 0), min(y + 2, world.height))
        }

    def outcome(self, action: int, before: State, after: State) -> Outcome:
        if action == PICKUP and after.carried not in self._wanted:
            return Outcome.FAILURE
        if action == DROP:
            near = after.places[before.carried] in self._near
            return Outcome.SUCCESS if near else Outcome.FAILURE
        return Outcome.CONTINUE

    def targets(self, state: State) -> tuple[Target, ...]:
        if state.carried != NOTHING:
            return ()
        return tuple(Take(thing) for thing in self._wanted)


class DoneBeside(Goal):
    """Say `done` in a cell that shares a side with the target's place (GoToDoor, GoToObject)."""

    actions = MOVES | {PICKUP, DROP, DONE}

    def __init__(self, world: World, env: Any) -> None:
        x, y = map(int, env.target_pos)
        beside = ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1))
        cells = [
            world.cell((i, j)) for i, j in beside if 0 <= i < world.width and 0 <= j < world.height
        ]
        self._target = Stand(tuple(cell for cell in cells if cell not in world.walls), extra=1)

    def outcome(self, action: int, before: State, after: State) -> Outcome:
        if action != DONE:
            return Outcome.CONTINUE
        beside = after.pose >> 2 in self._target.cells
        return Outcome.SUCCESS if beside else Outcome.FAILURE

    def targets(self, state: State) -> tuple[Target, ...]:
        return (self._target,)


class OpenDoor(Goal):
    """Open `env.door` (Unlock)."""

    def __init__(self, world: World, env: Any) -> None:
        self._door = world.door(env.door)

    def outcome(self, action: int, before: State, after: State) -> Outcome:
        opened = action == TOGGLE and after.doors[self._door] == OPEN
        return Outcome.SUCCESS if opened else Outcome.CONTINUE

    def targets(self, state: State) -> tuple[Target, ...]:
        return (Open(self._door),)


class OpenRedThenBlue(Goal):
    """Open the blue door while the red one is open; any other opening of it fails."""

    def __init__(self, world: World, env: Any) -> None:
        self._red, self._blue = world.door(env.red_door), world.door(env.blue_door)

    def outcome(self, action: int, before: State, after: State) -> Outcome:
        if after.doors[self._blue] != OPEN:
            return Outcome.CONTINUE
        return Outcome.SUCCESS if before.doors[self._red] == OPEN else Outcome.FAILURE

    def targets(self, state: State) -> tuple[Target, ...]:
        return (Open(self._blue if state.doors[self._red] == OPEN else self._red),)


class RightCell(Goal):
    """Step onto the cell that succeeds and not onto the one that fails (Memory, TwoGoals)."""

    actions = MOVES

    def __init__(self, world: World, env: Any) -> None:
        self.right = world.cell(env.success_pos)
        self.wrong = world.cell(env.failure_pos)

    @property
    def ends(self) -> tuple[int, int]:
        """Both cells in an order that does not tell which is right."""
        return min(self.right, self.wrong), max(self.right, self.wrong)

    def outcome(self, action: int, before: State, after: State) -> Outcome:
        cell = after.pose >> 2
        if cell == self.wrong:
            return Outcome.FAILURE
        return Outcome.SUCCESS if cell == self.right else Outcome.CONTINUE

    def targets(self, state: State) -> tuple[Target, ...]:
        return (Stand((self.right,)),)


def _things(world: World, kind: str, colour: str) -> tuple[int, ...]:
    """Indices of the things that show this kind and colour."""
    return tuple(
        index for index, t in enumerate(world.things) if (t.kind, t.colour) == (kind, colour)
    )


GOALS: dict[Any, Callable[[World, Any], Goal]] = {
    MiniGridEnv.step: ReachGoal,
    KeyCorridorEnv.step: TakeObject,
    UnlockPickupEnv.step: TakeObject,
    BlockedUnlockPickupEnv.step: TakeObject,
    ObstructedMazeEnv.step: TakeObject,
    FetchEnv.step: Fetch,
    PutNearEnv.step: PutNear,
    GoToDoorEnv.step: DoneBeside,
    GoToObjectEnv.step: DoneBeside,
    UnlockEnv.step: OpenDoor,
    RedBlueDoorEnv.step: OpenRedThenBlue,
    MemoryEnv.step: RightCell,
    TwoGoals.step: RightCell,
    RuleRoom.step: ByRules,
    RoomGridLevel.step: Mission,
    DynamicObstaclesEnv.step: Dodge,
}


def rule_of(env: Any) -> Callable[..., Any] | None:
    """The `step` whose rule a bare environment plays by; None where it is not one of the known."""
    kind = type(env)
    others = ("_reward", "front_pos", "dir_vec")
    inherited = all(getattr(kind, name) is getattr(MiniGridEnv, name) for name in others)
    rebound = any(name in vars(env) for name in ("step", *others))
    return kind.step if kind.step in GOALS and inherited and not rebound else None


def goal_of(world: World, env: Any) -> Goal:
    """The rule of a bare environment; raises Unplannable where it is not one of the known ones."""
    rule = rule_of(env)
    if rule is None:
        raise Unplannable(f"the rules of {type(env).__name__} are not known")
    goal = GOALS[rule](world, env)
    if world.goals and not isinstance(goal, ReachGoal | Dodge):
        raise Unplannable("a goal tile in a family that is about something else")
    return goal
