"""What one clause of a BabyAI instruction asks of a step: go to, open, pick up, put next to.

Success is what the verifier of the clause says of a step: to face where a described thing was seen,
to open a described door, to pick up a described thing with a free hand, to drop one beside another.
Source: Chevalier-Boisvert et al. 2019, arXiv:1810.08272; `minigrid.envs.babyai.core.verifier`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from minigrid.envs.babyai.core import verifier

from .planner_goals import Face, Open, Outcome, Take, Target
from .planner_model import CLOSED, DROP, FORWARD, OPEN, PICKUP, TOGGLE, State, World

Cells = tuple[int, ...]


class Progress(NamedTuple):
    """What the verifiers of an instruction remember.

    `done` are the numbers of the nodes that succeeded, `seen` by clause the cells where it saw its
    things at the last drop; `is_first`: none knows yet what is carried; `outcome` of the last step.
    """

    done: frozenset[int]
    seen: tuple[Cells, ...]
    is_first: bool
    outcome: Outcome


class Step(NamedTuple):
    """One step as a verifier sees it; `is_first`: it does not know what was carried before."""

    action: int
    before: State
    after: State
    is_first: bool


class Clause(ABC):
    """One clause of an instruction, number `number` of its clauses.

    `seen` are the cells where it knows its things from the start, if it looks there. `handling` is
    how many actions follow once a thing is faced; `stays`: what it is about cannot be moved.
    """

    seen: Cells = ()
    handling = 0
    stays = False

    def __init__(self, world: World, instruction: Any, number: int) -> None:
        self.world = world
        self.number = number
        self.is_strict = bool(getattr(instruction, "strict", False))

    @abstractmethod
    def outcome(self, step: Step, seen: Cells) -> Outcome:
        """What the clause says of a step; `seen` is what it remembers after it."""

    def targets(self, state: State) -> tuple[Target, ...]:
        """Alternatives, one of which success still needs; empty where nothing is known."""
        del state
        return ()

    def faced(self, state: State) -> frozenset[int]:
        """Cells one of which success still has to face; empty where nothing is known."""
        cells: set[int] = set()
        for target in self.targets(state):
            if isinstance(target, Face):
                cells |= {*target.cells}
            elif isinstance(target, Open):
                cells.add(self.world.doors[target.door][0])
            elif isinstance(target, Take):
                cells.add(state.places[target.thing])
        return frozenset() if any(cell < 0 for cell in cells) else frozenset(cells)

    def sight(self, state: State) -> Cells:
        """Cells of the described things, where the clause remembers them."""
        del state
        return ()

    def own_moves(self, state: State) -> Iterator[tuple[int, State]]:
        """Moves that only this clause has a use for."""
        del state
        yield from ()


class GoTo(Clause):
    """End a step facing a cell where a described thing was seen."""

    def __init__(self, world: World, instruction: Any, number: int) -> None:
        super().__init__(world, instruction, number)
        self.seen = tuple(world.cell(place) for place in instruction.desc.obj_poss)
        self._things = things_of(world, instruction.desc)
        still = [content for content in instruction.desc.obj_set if content.type not in MOVABLE]
        self._still = tuple(_cell_of(world, content) for content in still)
        self.stays = not self._things

    def outcome(self, step: Step, seen: Cells) -> Outcome:
        faced = self.world.front[step.after.pose] in seen
        return Outcome.SUCCESS if faced else Outcome.CONTINUE

    def targets(self, state: State) -> tuple[Target, ...]:
        places = [state.places[thing] for thing in self._things]
        if state.carried in self._things:
            return ()  # it may be dropped in front
        now = {place for place in places if place >= 0}
        return (Face(tuple(now | {*state.progress.seen[self.number]})),)

    def sight(self, state: State) -> Cells:
        places = (state.places[thing] for thing in self._things)
        return (*self._still, *(place for place in places if place >= 0))

    def own_moves(self, state: State) -> Iterator[tuple[int, State]]:
        """A blocked step forward: who faces the thing from the start has to act all the same."""
        cell = self.world.front[state.pose]
        if cell in state.progress.seen[self.number]:
            if cell in self.world.door_at:
                blocked = state.doors[self.world.door_at[cell]] != OPEN
            else:
                blocked = cell in self.world.solid or cell in state.places
            if blocked:
                yield FORWARD, state


class OpenDoor(Clause):
    """Open a described door; of a strict clause, toggle no other."""

    handling = 1
    stays = True

    def __init__(self, world: World, instruction: Any, number: int) -> None:
        super().__init__(world, instruction, number)
        self._doors = {world.door(door) for door in instruction.desc.obj_set}

    def outcome(self, step: Step, seen: Cells) -> Outcome:
        door = self.world.door_at.get(self.world.front[step.before.pose])
        if step.action != TOGGLE or door is None:
            return Outcome.CONTINUE
        if door in self._doors and step.after.doors[door] == OPEN:
            return Outcome.SUCCESS
        return Outcome.FAILURE if self.is_strict else Outcome.CONTINUE

    def targets(self, state: State) -> tuple[Target, ...]:
        return tuple(Open(door) for door in self._doors)

    def own_moves(self, state: State) -> Iterator[tuple[int, State]]:
        """Closing a described door that is open, to open it again."""
        door = self.world.door_at.get(self.world.front[state.pose])
        if door is not None and door in self._doors and state.doors[door] == OPEN:
            doors = (*state.doors[:door], CLOSED, *state.doors[door + 1 :])
            yield TOGGLE, state._replace(doors=doors)


class PickUp(Clause):
    """Pick up a described thing; of a strict clause, no other."""

    handling = 1

    def __init__(self, world: World, instruction: Any, number: int) -> None:
        super().__init__(world, instruction, number)
        self._wanted = things_of(world, instruction.desc)

    def outcome(self, step: Step, seen: Cells) -> Outcome:
        if step.action != PICKUP:
            return Outcome.CONTINUE
        if step.after.carried in self._wanted:
            return Outcome.SUCCESS
        return Outcome.FAILURE if self.is_strict else Outcome.CONTINUE

    def targets(self, state: State) -> tuple[Target, ...]:
        return tuple(Take(thing) for thing in self._wanted)


class PutNext(Clause):
    """Drop a described thing on a cell that shares a side with another one, or with a door.

    A strict clause fails with every thing that is picked up. What was carried before the first step
    does not count.
    """

    handling = 2

    def __init__(self, world: World, instruction: Any, number: int) -> None:
        super().__init__(world, instruction, number)
        self.moved = things_of(world, instruction.desc_move)
        self.fixed = things_of(world, instruction.desc_fixed)
        still = (c for c in instruction.desc_fixed.obj_set if c.type not in MOVABLE)
        self.fixed_cells = {_cell_of(world, content) for content in still}

    def outcome(self, step: Step, seen: Cells) -> Outcome:
        if step.action == PICKUP and self.is_strict:
            return Outcome.FAILURE
        if step.action != DROP or step.is_first or step.before.carried not in self.moved:
            return Outcome.CONTINUE
        places = step.after.places
        cells = {places[thing] for thing in self.fixed} | self.fixed_cells
        dropped = places[step.before.carried]
        beside = any(cell >= 0 and self.world.are_beside(dropped, cell) for cell in cells)
        return Outcome.SUCCESS if beside else Outcome.CONTINUE

    def targets(self, state: State) -> tuple[Target, ...]:
        return tuple(Take(thing) for thing in self.moved)


MOVABLE = ("key", "ball", "box")
CLAUSES: dict[type, Callable[[World, Any, int], Clause]] = {
    verifier.GoToInstr: GoTo,
    verifier.OpenInstr: OpenDoor,
    verifier.PickupInstr: PickUp,
    verifier.PutNextInstr: PutNext,
}


def things_of(world: World, description: Any) -> tuple[int, ...]:
    """Indices of the things that a description meant when the episode began."""
    meant = [id(content) for content in description.obj_set]
    return tuple(i for i, content in enumerate(world.thing_objects) if id(content) in meant)


def _cell_of(world: World, content: Any) -> int:
    """The cell of a wall or a door."""
    return next(cell for cell, other in enumerate(world.contents) if other is content)
