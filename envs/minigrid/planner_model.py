"""A symbolic copy of one MiniGrid layout and of the rules of its moves.

state = (pose, carried thing, place of every thing, state of every door);  pose = 4 cell +
direction, cell = y width + x. Left out are the moves that help in none of the known tasks: closing
doors, acting without effect.

Source: `step` of `minigrid.minigrid_env.MiniGridEnv` and the objects of
`minigrid.core.world_object`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from minigrid.core.actions import Actions
from minigrid.core.grid import Grid

from .grid_codes import FAMILIAR

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE, DONE = (int(action) for action in Actions)
OPEN, CLOSED, LOCKED = range(3)
CARRIED, IN_BOX, GONE = -1, -2, -3  # places that are not cells
NOTHING = -1
OUTSIDE = -1


class Unplannable(Exception):
    """The layout holds something whose rules are not known here."""


class State(NamedTuple):
    """What actions change. `carried` is the index of a thing or NOTHING.

    `progress` is what the rule of a task remembers, where it remembers anything.
    """

    pose: int
    carried: int
    places: tuple[int, ...]
    doors: tuple[int, ...]
    progress: Any = None


class Thing(NamedTuple):
    """A key, ball or box; `contents` is the index of the thing in a box or NOTHING."""

    kind: str
    colour: str
    contents: int


class World:
    """What no action changes, and the `start` state, read from an environment.

    `front[pose]` is the cell a pose faces, OUTSIDE beyond the grid. Raises Unplannable for unknown
    objects.
    """

    def __init__(self, env: Any) -> None:
        if type(env.grid) is not Grid:
            raise Unplannable(f"a grid of class {type(env.grid).__name__}")
        self.width, self.height = env.grid.width, env.grid.height
        self.front = [self._front(pose) for pose in range(4 * self.width * self.height)]
        self.solid: set[int] = set()
        self.lava: set[int] = set()
        self.goals: set[int] = set()
        self.floors: set[int] = set()  # walked on, but nothing can be dropped there
        self.doors: list[tuple[int, Any]] = []  # cell, object
        self.contents: list[Any] = list(env.grid.grid)  # by cell
        self.things: list[Thing] = []
        self.thing_objects: list[Any] = []
        places: list[int] = []
        for cell, content in enumerate(self.contents):
            if content is not None:
                self._place(content, cell, places)
        carried = NOTHING
        if env.carrying is not None:
            carried = self._add_thing(env.carrying, CARRIED, places)
        pose = 4 * self.cell(env.agent_pos) + int(env.agent_dir)
        states = tuple(_door_state(door) for _, door in self.doors)
        self.start = State(pose, carried, tuple(places), states)
        self.door_at = {cell: index for index, (cell, _) in enumerate(self.doors)}
        self.walls = self.solid | self.lava  # no pose is ever in one of these

    def cell(self, position: Any) -> int:
        """Number of the cell at a position (x, y)."""
        return int(position[1]) * self.width + int(position[0])

    def are_beside(self, one: int, other: int) -> bool:
        """Whether two cells share a side."""
        distance = abs(one - other)
        return distance == self.width or (
            distance == 1 and one // self.width == other // self.width
        )

    def thing(self, content: Any) -> int:
        """Index of the thing that is this object; raises Unplannable where there is none."""
        for index, candidate in enumerate(self.thing_objects):
            if candidate is content:
                return index
        raise Unplannable("an object that the task names is not in the grid")

    def add_absent(self, content: Any) -> int:
        """Index of a new thing that is nowhere yet."""
        places = list(self.start.places)
        index = self._add_thing(content, GONE, places)
        self.start = self.start._replace(places=tuple(places))
        return index

    def door(self, content: Any) -> int:
        """Index of the door that is this object; raises Unplannable where there is none."""
        for index, (_, candidate) in enumerate(self.doors):
            if candidate is content:
                return index
        raise Unplannable("a door that the task names is not in the grid")

    def _front(self, pose: int) -> int:
        y, x = divmod(pose >> 2, self.width)
        step_x, step_y = ((1, 0), (0, 1), (-1, 0), (0, -1))[pose & 3]
        x, y = x + step_x, y + step_y
        inside = 0 <= x < self.width and 0 <= y < self.height
        return y * self.width + x if inside else OUTSIDE

    def _place(self, content: Any, cell: int, places: list[int]) -> None:
        if type(content) not in FAMILIAR:
            raise Unplannable(f"an object of class {type(content).__name__}")
        if content.type == "door":
            self.doors.append((cell, content))
        elif content.type in ("key", "ball", "box"):
            self._add_thing(content, cell, places)
        else:
            cells = {
                "wall": self.solid,
                "lava": self.lava,
                "goal": self.goals,
                "floor": self.floors,
            }
            cells[content.type].add(cell)

    def _add_thing(self, content: Any, place: int, places: list[int]) -> int:
        if type(content) not in FAMILIAR or content.type not in ("key", "ball", "box"):
            raise Unplannable(f"carrying an object of class {type(content).__name__}")
        index = len(self.things)
        self.things.append(Thing(content.type, content.color, NOTHING))
        self.thing_objects.append(content)
        places.append(place)
        if content.type == "box" and content.contains is not None:
            inner = self._add_thing(content.contains, IN_BOX, places)
            self.things[index] = Thing(content.type, content.color, inner)
        return index


def _door_state(door: Any) -> int:
    if door.is_open:
        return OPEN
    return LOCKED if door.is_locked else CLOSED


def successors(world: World, state: State, actions: Collection[int]) -> Iterator[tuple[int, State]]:
    """The useful moves among `actions` and where each leads; lava and goals can be entered."""
    pose, carried, places, doors, _ = state
    cell = world.front[pose]
    if cell == OUTSIDE:  # MiniGrid fails at any step from here
        return
    if LEFT in actions:
        yield LEFT, State((pose & ~3) | ((pose - 1) & 3), carried, places, doors)
    if RIGHT in actions:
        yield RIGHT, State((pose & ~3) | ((pose + 1) & 3), carried, places, doors)
    if DONE in actions:
        yield DONE, state
    if cell in world.solid:
        return
    if cell in world.door_at:
        door = world.door_at[cell]
        if doors[door] == OPEN and FORWARD in actions:
            yield FORWARD, State(4 * cell + (pose & 3), carried, places, doors)
        elif doors[door] != OPEN and TOGGLE in actions and can_open(world, state, door):
            opened = (*doors[:door], OPEN, *doors[door + 1 :])
            yield TOGGLE, State(pose, carried, places, opened)
    elif cell in places:
        yield from _handle(world, state, places.index(cell), actions)
    else:
        if FORWARD in actions:
            yield FORWARD, State(4 * cell + (pose & 3), carried, places, doors)
        bare = not (cell in world.floors or cell in world.goals or cell in world.lava)
        if DROP in actions and carried != NOTHING and bare:
            yield DROP, State(pose, NOTHING, _moved(places, carried, cell), doors)


def can_open(world: World, state: State, door: int) -> bool:
    """Whether toggling a door that is not open opens it now."""
    if state.doors[door] != LOCKED:
        return True
    if state.carried == NOTHING:
        return False
    key = world.things[state.carried]
    return key.kind == "key" and key.colour == world.doors[door][1].color


def _handle(
    world: World, state: State, thing: int, actions: Collection[int]
) -> Iterator[tuple[int, State]]:
    """Pick up the thing in front, or open it where it is a box."""
    pose, carried, places, doors, _ = state
    if PICKUP in actions and carried == NOTHING:
        yield PICKUP, State(pose, thing, _moved(places, thing, CARRIED), doors)
    if TOGGLE in actions and world.things[thing].kind == "box":
        contents = world.things[thing].contents
        opened = _moved(places, thing, GONE)
        if contents != NOTHING:
            opened = _moved(opened, contents, places[thing])
        yield TOGGLE, State(pose, carried, opened, doors)


def _moved(places: tuple[int, ...], thing: int, place: int) -> tuple[int, ...]:
    return (*places[:thing], place, *places[thing + 1 :])
