"""What a planner asks of the rule of a task: how moves end an episode, what success still needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from enum import Enum
from typing import NamedTuple, Protocol

from .planner_model import DROP, FORWARD, LEFT, PICKUP, RIGHT, TOGGLE, State

MOVES = frozenset({LEFT, RIGHT, FORWARD})
HANDS = frozenset({PICKUP, DROP, TOGGLE})


class Outcome(Enum):
    """How an action leaves the episode."""

    CONTINUE = 0
    SUCCESS = 1
    FAILURE = 2


class Stand(NamedTuple):
    """Stand in one of `cells`, then act `extra` times."""

    cells: tuple[int, ...]
    extra: int = 0


class Take(NamedTuple):
    """Pick up a thing."""

    thing: int


class Open(NamedTuple):
    """Open a door."""

    door: int


class Face(NamedTuple):
    """Turn to one of `cells` from the next one."""

    cells: tuple[int, ...]


Target = Stand | Take | Open | Face


class HasTargets(Protocol):
    """Something that success is made of."""

    def targets(self, state: State) -> tuple[Target, ...]:
        """Alternatives, one of which every success still needs; empty where nothing is known."""
        ...


class Goal(ABC):
    """The rule of one family on one layout; `actions` are those that can help."""

    actions = MOVES | HANDS

    @abstractmethod
    def outcome(self, action: int, before: State, after: State) -> Outcome:
        """What the family's own rule says of a move; goal tiles and lava are judged before."""

    def own_moves(self, state: State, actions: Collection[int]) -> Iterator[tuple[int, State]]:
        """Moves among `actions` that the model leaves out and this rule has a use for."""
        del state, actions
        yield from ()

    def settled(self, action: int, before: State, after: State) -> State:
        """What becomes of the state after a move by itself, before it is judged."""
        del action, before
        return after

    @abstractmethod
    def targets(self, state: State) -> tuple[Target, ...]:
        """Alternatives, one of which every success still needs; empty where nothing is known."""
