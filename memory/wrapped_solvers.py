"""Solvers around a solver: a normalised read, and a path past the memory.

    normalised   o_t = W_t q_t / max(z_t . q_t, eps),   z_t moves like a row of W that stores ones
    skip         o_t = W_t q_t + d_h v_t

Sources: Katharopoulos et al. 2020; Dao & Gu 2024 (Mamba-2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .exact import ExactScalar
from .heads import Heads
from .objective import Objective
from .solver import Solver
from .views import Tokens


class Normalised(Solver):
    """Divides every read by what the same weights make of ones; keys must have no negative entry.

    The fast weights of `solver` get one more row, the normaliser; `smallest` bounds it from below.
    """

    def __init__(
        self,
        heads: Heads,
        objective: Objective,
        solver: Callable[[Heads, Objective], Solver] = ExactScalar,
        smallest: float = 1e-6,
    ) -> None:
        super().__init__(heads, objective)
        if not smallest > 0:
            raise ValueError(f"smallest normaliser must be above 0, got {smallest}; use 1e-6")
        self.smallest = smallest
        self.solver = solver(replace(heads, value_width=heads.value_width + 1), objective)
        self.gates = self.solver.gates

    def init_state(self, batch: int) -> dict[str, Tensor]:
        return self.solver.init_state(batch)

    def forward(
        self,
        tokens: Tokens,
        gates: Any,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        tokens = tokens._replace(value=functional.pad(tokens.value, (0, 1), value=1.0))
        reads, next_state = self.solver(tokens, gates, state, reset, mask)
        total = reads[..., -1:].clamp(min=self.smallest)
        return reads[..., :-1] / total, next_state


class Skip(Solver):
    """Adds the token's own value, scaled by a learned number per head, to what `solver` reads."""

    def __init__(
        self,
        heads: Heads,
        objective: Objective,
        solver: Callable[[Heads, Objective], Solver] = ExactScalar,
    ) -> None:
        super().__init__(heads, objective)
        self.solver = solver(heads, objective)
        self.gates = self.solver.gates
        self.strength = nn.Parameter(torch.ones(heads.num_heads, 1))

    def init_state(self, batch: int) -> dict[str, Tensor]:
        return self.solver.init_state(batch)

    def forward(
        self,
        tokens: Tokens,
        gates: Any,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        reads, next_state = self.solver(tokens, gates, state, reset, mask)
        return reads + self.strength * tokens.value, next_state
