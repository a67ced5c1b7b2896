"""Several queries per token and head: they share the head's one memory, and so its state.

    o_{t,i} = W_t q_{t,i}   for i = 1 .. n

Every token becomes n tokens; the first of them writes, the others are masked and only read.

Source: grouped-query attention, Ainslie et al. 2023 (arXiv 2305.13245), with fast weights in the
place of cached keys and values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .solver import Solver
from .views import Tokens


class SeveralReads(Solver):
    """Runs any `solver` with `solver.heads.queries_per_head` queries `[B, T, n H, K]` per token.

    By step a further query costs a read (2 K V flops, and what the solver does for a masked token);
    in chunks it costs as much as a further token. The state does not grow. Where a solver does
    something at the end of a period, the first query of the last token reads before it and the
    others after it.
    """

    def __init__(self, solver: Solver) -> None:
        super().__init__(solver.heads, solver.objective)
        self.solver = solver
        self.gates = solver.gates
        self.anchored = solver.anchored
        self.clocks = solver.clocks

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
        batch, steps = tokens.query.shape[:2]
        queries = self.heads.queries_per_head
        if steps == 1:
            return self._token(tokens, gates, state, mask)
        valid = torch.ones(batch, steps, dtype=torch.bool, device=tokens.query.device)
        writes = _at_first_query(valid if mask is None else mask, queries)
        reset = None if reset is None else _at_first_query(reset, queries)
        tokens = Tokens(
            split_queries(tokens.query, queries),
            tokens.key.repeat_interleave(queries, dim=1),
            tokens.value.repeat_interleave(queries, dim=1),
        )
        gates = type(gates)(*(gate.repeat_interleave(queries, dim=1) for gate in gates))
        reads, next_state = self.solver(tokens, gates, state, reset, writes)
        return join_queries(reads, queries), next_state

    def _token(
        self, tokens: Tokens, gates: Any, state: Mapping[str, Tensor], mask: Tensor | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The queries of one token through the solver's path for single tokens, which is faster."""
        nothing = tokens.query.new_zeros(tokens.query.shape[:2], dtype=torch.bool)
        reads, next_state = [], dict(state)
        for query in tokens.query.chunk(self.heads.queries_per_head, dim=2):
            one = tokens._replace(query=query)
            read, next_state = self.solver(one, gates, next_state, None, mask)
            reads.append(read)
            mask = nothing
        return torch.cat(reads, dim=2), next_state


def split_queries(query: Tensor, queries: int) -> Tensor:
    """`[B, T, n H, K]` to `[B, T n, H, K]`: the queries of a token one after the other."""
    return torch.unflatten(query, 2, (queries, -1)).flatten(1, 2)


def join_queries(reads: Tensor, queries: int) -> Tensor:
    """`[B, T n, H, V]` to `[B, T, n H, V]`."""
    return torch.unflatten(reads, 1, (-1, queries)).flatten(2, 3)


def _at_first_query(flags: Tensor, queries: int) -> Tensor:
    """`[B, T]` to `[B, T n]`: the flag at the first query of its token, False at the others."""
    return functional.pad(flags.unsqueeze(-1), (0, queries - 1)).flatten(1)
