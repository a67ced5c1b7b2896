"""The rules of BabyAI missions: how instructions join clauses, and how far success still is.

    one and other       both, in any order
    first, then second  the second counts from the very step that completes the first
    bound               the largest of the clauses that are left, or the tour of all of them

The memory of the verifiers is part of the state. Source: Chevalier-Boisvert et al. 2019,
arXiv:1810.08272; `minigrid.envs.babyai.core.verifier`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from minigrid.envs.babyai.core import verifier

from .planner_bounds import LowerBound
from .planner_bringing import Bringing
from .planner_clauses import CLAUSES, Clause, Progress, PutNext, Step
from .planner_distances import UNREACHABLE
from .planner_goals import HANDS, MOVES, Goal, Outcome, Target
from .planner_model import DONE, DROP, GONE, State, Unplannable, World
from .planner_tour import Tour, Visit


@dataclass(frozen=True)
class Both:
    """Two nodes, each done at any time."""

    number: int
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Then:
    """Two nodes in this order."""

    number: int
    parts: tuple[Node, ...]


Node = Clause | Both | Then
JOINS: dict[type, type[Both] | type[Then]] = {
    verifier.AndInstr: Both,
    verifier.BeforeInstr: Then,
    verifier.AfterInstr: Then,
}


class Mission(Goal):
    """The mission of one layout, from where its verifiers stand; puts that into the start."""

    actions = MOVES | HANDS | {DONE}

    def __init__(self, world: World, env: Any) -> None:
        if verifier.use_done_actions:
            raise Unplannable("BABYAI_DONE_ACTIONS changes what a mission asks for")
        self.clauses: list[Clause] = []
        self._done: set[int] = set()
        self._num_joins = 0
        self._root = self._node(world, env.instrs)
        seen = tuple(clause.seen for clause in self.clauses)
        is_first = env.step_count == 0
        progress = Progress(frozenset(self._done), seen, is_first, Outcome.CONTINUE)
        world.start = world.start._replace(progress=progress)

    def remaining(self, state: State) -> list[Clause]:
        """The clauses that are not done."""
        return list(_remaining(self._root, state.progress.done))

    def before(self, clause: Clause) -> frozenset[int]:
        """Numbers of the clauses that have to be done before a clause."""
        root = self._root
        if isinstance(root, Then) and clause in _remaining(root.parts[1], ()):
            return frozenset(first.number for first in _remaining(root.parts[0], ()))
        return frozenset()

    def settled(self, action: int, before: State, after: State) -> State:
        """The state after the verifiers saw the step."""
        _, seen, is_first, _ = before.progress
        if action == DROP:
            seen = tuple(clause.sight(after) for clause in self.clauses)
        done = set(before.progress.done)
        outcome = _judged(self._root, Step(action, before, after, is_first), seen, done)
        return after._replace(progress=Progress(frozenset(done), seen, False, outcome))

    def outcome(self, action: int, before: State, after: State) -> Outcome:
        found: Outcome = after.progress.outcome
        return found

    def targets(self, state: State) -> tuple[Target, ...]:
        return ()

    def own_moves(self, state: State, actions: Collection[int]) -> Iterator[tuple[int, State]]:
        for clause in self.remaining(state):
            yield from (move for move in clause.own_moves(state) if move[0] in actions)

    def _node(self, world: World, instruction: Any) -> Node:
        """The node of an instruction; notes what its verifier has done already."""
        kind = type(instruction)
        if kind in CLAUSES:
            clause = CLAUSES[kind](world, instruction, len(self.clauses))
            self.clauses.append(clause)
            return clause
        if kind not in JOINS or instruction.strict:
            raise Unplannable(f"the rules of {kind.__name__} are not known")
        self._num_joins += 1
        number = -self._num_joins
        nodes = []
        for name in ("b", "a") if kind is verifier.AfterInstr else ("a", "b"):
            node = self._node(world, getattr(instruction, f"instr_{name}"))
            nodes.append(node)
            if getattr(instruction, f"{name}_done") == "success":
                self._done.add(node.number)
        return JOINS[kind](number, tuple(nodes))


def _judged(node: Node, step: Step, seen: tuple[tuple[int, ...], ...], done: set[int]) -> Outcome:
    """What the verifier of a node says of a step; adds to `done` the parts that succeed."""
    if isinstance(node, Clause):
        return node.outcome(step, seen[node.number])
    if isinstance(node, Both):
        left = [part for part in node.parts if part.number not in done]
        for part in left:
            if _judged(part, step, seen, done) is Outcome.SUCCESS:
                done.add(part.number)
        is_done = all(part.number in done for part in node.parts)
        return Outcome.SUCCESS if is_done else Outcome.CONTINUE
    first, second = node.parts
    if first.number not in done:
        outcome = _judged(first, step, seen, done)
        if outcome is not Outcome.SUCCESS:
            return outcome
        done.add(first.number)
        step = step._replace(is_first=True)
    return _judged(second, step, seen, done)


def _remaining(node: Node, done: Collection[int]) -> Iterator[Clause]:
    if node.number in done:
        return
    if isinstance(node, Clause):
        yield node
    else:
        for part in node.parts:
            yield from _remaining(part, done)


class MissionBound:
    """Callable: a number of actions that no success of a mission from a state can do without."""

    def __init__(self, world: World, mission: Mission) -> None:
        self._mission = mission
        self._bounds: list[Callable[[State], int]] = [
            PutNextBound(world, clause)
            if isinstance(clause, PutNext)
            else LowerBound(world, clause)
            for clause in mission.clauses
        ]
        self._tour = Tour(world)

    def __call__(self, state: State) -> int:
        left = self._mission.remaining(state)
        bound = max(self._bounds[clause.number](state) for clause in left)
        if len(left) == 1:
            return bound
        return max(bound, self._tour.length(self._visits(left, state), state))

    def _visits(self, left: list[Clause], state: State) -> list[Visit]:
        """What has to be faced for the clauses that are left."""
        visits = []
        for clause in left:
            cells = clause.faced(state)
            before = self._mission.before(clause) if clause.stays else frozenset()
            if cells:
                visits.append(Visit(clause.number, cells, clause.handling, before))
        return visits


class PutNextBound:
    """Callable: the same for one clause of putting a thing next to another one.

    The other one stays where it is, or has to be taken and dropped first.
    """

    def __init__(self, world: World, clause: PutNext) -> None:
        self._clause = clause
        self._bringing = Bringing(world)

    def __call__(self, state: State) -> int:
        bound = UNREACHABLE
        for thing in self._clause.moved:
            if state.places[thing] == GONE:
                continue
            for cell in self._clause.fixed_cells:
                bound = min(bound, self._bringing.bringing(thing, cell, state))
            for other in self._clause.fixed:
                bound = min(bound, self._beside(thing, other, state))
        return bound

    def _beside(self, thing: int, other: int, state: State) -> int:
        place = state.places[other]
        if place == GONE:
            return UNREACHABLE
        moved = self._bringing.taking(other, state) + 3  # drop it; take and drop the first one
        return moved if place < 0 else min(moved, self._bringing.bringing(thing, place, state))
