"""Several writes per token: a product of generalised Householder matrices as transition.

    W <- a_t W,   then   W <- W + b_{t,i} e_{t,i} k_{t,i}^T  for i = 1 .. n,   o_t = W q_t

Every token becomes n tokens of one write each; the first of them decays, the last one is read.

Source: DeltaProduct, Siems et al. 2025.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from .rule import Gates
from .solver import Solver
from .views import Tokens


class SeveralWrites(Solver):
    """Runs `solver` on `solver.heads.writes_per_token` writes for every token.

    Raises ValueError when the solver is anchored or takes other gates than retention and rate.
    """

    def __init__(self, solver: Solver) -> None:
        super().__init__(solver.heads, solver.objective)
        if solver.gates is not Gates or solver.anchored:
            raise ValueError(
                f"several writes per token need an exact solver of Gates, got "
                f"{type(solver).__name__}, which takes {solver.gates.__name__}; use ExactScalar"
            )
        self.solver = solver

    def init_state(self, batch: int) -> dict[str, Tensor]:
        return self.solver.init_state(batch)

    def forward(
        self,
        tokens: Tokens,
        gates: Gates,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        writes = self.heads.writes_per_token
        key, value, rate = (
            self._one_by_one(pairs) for pairs in (tokens.key, tokens.value, gates.write_rate)
        )
        log_retention = _at(gates.log_retention, 0, writes)
        single = tokens.query.shape[1] == 1
        tokens = Tokens(_at(tokens.query, writes - 1, writes), key, value)
        gates = Gates(log_retention, rate)
        if single:
            return self._token(tokens, gates, state, mask)
        reset = None if reset is None else _at(reset, 0, writes)
        mask = None if mask is None else mask.repeat_interleave(writes, dim=1)
        reads, next_state = self.solver(tokens, gates, state, reset, mask)
        return reads[:, writes - 1 :: writes], next_state

    def _token(
        self, tokens: Tokens, gates: Gates, state: Mapping[str, Tensor], mask: Tensor | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The writes of one token through the solver's path for single tokens, which is faster."""
        one_write = zip(*(torch.split(x, 1, dim=1) for x in (*tokens, *gates)), strict=True)
        for query, key, value, log_retention, rate in one_write:
            reads, next_state = self.solver(
                Tokens(query, key, value), Gates(log_retention, rate), state, None, mask
            )
            state = next_state
        return reads, next_state

    def _one_by_one(self, pairs: Tensor) -> Tensor:
        """`[B, T, n H, ...]` to `[B, T n, H, ...]`."""
        return torch.unflatten(pairs, 2, (-1, self.heads.num_heads)).flatten(1, 2)


def _at(x: Tensor, write: int, writes: int) -> Tensor:
    """`[B, T, ...]` to `[B, T n, ...]`: x at one of the writes of its token, zero at the others."""
    padding = (*(0, 0) * (x.ndim - 2), write, writes - 1 - write)
    return functional.pad(x.unsqueeze(2), padding).flatten(1, 2)
