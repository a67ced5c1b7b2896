"""A rule and a solver that treat every value channel as a head of its own.

    W_t = Diag(a_t) W_{t-1} + (b_t * e_t) k_t^T,   a_t, b_t in R^V

The rows of W never meet in a delta rule: row c is a memory with the head's keys, a value of width 1
and the gates of channel c. So any scalar-gated rule and exact solver serve V times as many heads.
The price: the solver keeps C^2 decays per chunk and channel, not per head.

Source: the per-column gates of Falcon-2, arXiv 2608.27763, whose columns are our rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .exact import ExactScalar
from .heads import Heads
from .objective import Objective
from .rule import Rule
from .solver import Solver
from .steps import NormalisedStep
from .views import Tokens


def one_per_channel(heads: Heads) -> Heads:
    """Sizes of the H V memories of value width 1; channel c of head h is number h * V + c.

    Raises ValueError for several writes per token.
    """
    if heads.writes_per_token > 1:
        raise ValueError(
            f"value channels as heads make one write per token, got writes_per_token "
            f"{heads.writes_per_token}; use 1"
        )
    return replace(heads, num_heads=heads.num_heads * heads.value_width, value_width=1)


def split_channels(tokens: Tokens) -> Tokens:
    """Queries and keys `[B, T, H V, K]`, repeated for every channel, values `[B, T, H V, 1]`."""
    width = tokens.value.shape[-1]
    query, key = (
        view.unsqueeze(3).expand(-1, -1, -1, width, -1).flatten(2, 3)
        for view in (tokens.query, tokens.key)
    )
    return Tokens(query, key, tokens.value.flatten(2).unsqueeze(-1))


class ValueChannelRule(Rule):
    """The gates of `rule`, one set per value channel; half-lives spread over all of them."""

    def __init__(self, heads: Heads, rule: Callable[[Heads], Rule] = NormalisedStep) -> None:
        super().__init__(heads)
        self.rule = rule(one_per_channel(heads))
        self.gates = self.rule.gates
        self.num_features = self.rule.num_features

    def init_projection(self, weight: Tensor) -> None:
        self.rule.init_projection(weight)

    def forward(self, features: Tensor, tokens: Tokens) -> Any:
        """Gates `[B, T, H V]`."""
        return self.rule(features, split_channels(tokens))


class ValueChannelSolver(Solver):
    """Runs `solver` on one head per value channel.

    Raises ValueError when the solver is anchored: a network's value channels share its weights.
    """

    def __init__(
        self,
        heads: Heads,
        objective: Objective,
        solver: Callable[[Heads, Objective], Solver] = ExactScalar,
    ) -> None:
        super().__init__(heads, objective)
        self.solver = solver(one_per_channel(heads), objective)
        if self.solver.anchored:
            raise ValueError(
                f"value channels need an exact solver, got {type(self.solver).__name__}; "
                f"use ExactScalar"
            )
        self.gates = self.solver.gates

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """The leaves of the solver: `weights` `[B, H V, 1, K]` and others."""
        return self.solver.init_state(batch)

    def forward(
        self,
        tokens: Tokens,
        gates: Any,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        reads, next_state = self.solver(split_channels(tokens), gates, state, reset, mask)
        heads = (self.heads.num_heads, self.heads.value_width)
        return torch.unflatten(reads.squeeze(-1), 2, heads), next_state
