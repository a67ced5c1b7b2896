"""The interface of solvers: what runs the recurrence of the fast weights over a call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from .heads import Heads, Piece
from .objective import Objective
from .rule import Gates, Rule
from .views import Tokens


class Solver(Piece, ABC):
    """Owns the fast weights' learned initial value and moves them through the tokens of a call.

    `gates` is the type of gates that it takes from the rule.
    """

    gates: type[tuple[Tensor, ...]] = Gates

    anchored: bool = False
    """Whether the size of its chunks is part of the model."""
    clocks: tuple[str, ...] = ()
    """Leaves of the state that a reset leaves alone."""
    forgets: bool = True
    """Whether log retentions may be below zero: a memory tells its solver what its rule does."""

    def __init__(self, heads: Heads, objective: Objective) -> None:
        super().__init__(heads)
        self.objective = objective

    def check_rule(self, rule: Rule) -> None:
        """Raise ValueError when the solver cannot run the rule's gates; their type is checked."""

    @abstractmethod
    def init_state(self, batch: int) -> dict[str, Tensor]:
        """The leaves of the learned initial state, `[B, ...]`."""

    @abstractmethod
    def forward(
        self,
        tokens: Tokens,
        gates: Any,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Reads `[B, T, H, V]`, each after its token's write, and the leaves of the next state.

        `reset` is None for a single token: the memory has applied it.
        """
