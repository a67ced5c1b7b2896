"""Exact solver of scalar-gated linear memories, one token at a time or a chunk at once.

    W_t = a_t W_{t-1} + beta_t e_t k_t^T,   o_t = W_t q_t

Inside a chunk the errors e solve one unit lower triangular system,

    (I + tril(D * (K (beta K)^T), -1)) E = V - (c * K) W_in^T,   D, c from `decay`

whose inverse does not depend on the state: those of all chunks are computed together, and only
three products per chunk run in sequence.

Source: the UT/WY form of Yang et al. 2024 (DeltaNet, Gated DeltaNet), written here for mid-chunk
resets to a learned initial state and for masked tokens.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from .backend import Backend
from .backend_kernels import SCALAR_KERNELS
from .checks import check_at_least
from .chunk_writes import ChunkWrites, run_writes
from .chunks import fold
from .decay import ChunkDecay
from .heads import Heads
from .inner_products import inner_products, own_products
from .objective import Objective
from .rule import Gates
from .solver import Solver
from .views import Tokens


class ExactScalar(Solver):
    """Runs a linear memory exactly: dot-product or squared-error objective, one retention per head.

    `chunk_size` trades the quadratic cost inside chunks against the number of chunks; it never
    changes the result. On a CPU 16 is fastest up to keys of 32, and 32 from 64 on or where nothing
    is predicted and nothing forgotten. The initial fast weights are learned and start at zero.
    """

    def __init__(self, heads: Heads, objective: Objective, chunk_size: int = 16) -> None:
        super().__init__(heads, objective)
        if objective.predicts_with == "anchor":
            raise ValueError(
                f"ExactScalar needs an error linear in the weights, got "
                f"{type(objective).__name__}; use SquaredError, or solver=AnchoredGradient"
            )
        check_at_least("chunk_size", chunk_size, 1)
        self.chunk_size = chunk_size
        self.backend = Backend(SCALAR_KERNELS[objective.predicts_with])
        self.initial_weights = nn.Parameter(
            torch.zeros(heads.num_heads, heads.value_width, heads.key_width)
        )

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """`weights` `[B, H, V, K]`: the learned initial fast weights in every row."""
        return {"weights": self.initial_weights.expand(batch, -1, -1, -1)}

    def forward(
        self,
        tokens: Tokens,
        gates: Gates,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        steps = tokens.query.shape[1]
        if steps == 1:
            reads, weights = self._token(tokens, gates, state["weights"], mask)
        else:
            reads, weights = self._chunks(tokens, gates, state["weights"], reset, mask)
        return reads, {"weights": weights}

    def _token(
        self, tokens: Tokens, gates: Gates, weights: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if mask is not None:
            gates = _masked(gates, mask)
        # Rows `[B H, 1, V or K]` and gates `[B H, 1, 1]`: matrices times columns are far slower.
        pair = torch.stack((tokens.key, tokens.query), dim=-2).flatten(0, 2)
        key, query = torch.split(pair, 1, dim=1)
        value = tokens.value.reshape(-1, 1, tokens.value.shape[-1])
        retention, rate = (
            gate.reshape(-1, 1, 1) for gate in (gates.log_retention.exp(), gates.write_rate)
        )
        old = weights.reshape(-1, *weights.shape[2:])
        # Both products with the old weights in one; what the query finds of the new write is known.
        predicted, read = torch.split(torch.bmm(pair, old.mT), 1, dim=1)
        if self.objective.predicts_with == "decayed":
            value = torch.addcmul(value, retention, predicted, value=-1)
        elif self.objective.predicts_with == "previous":
            value = value - predicted
        written = rate * value
        # Nothing else holds the product: no second matrix is made.
        new = (retention * old).addcmul_(written.mT, key)
        read = torch.addcmul(retention * read, (query * key).sum(-1, keepdim=True), written)
        return read.view(-1, 1, *weights.shape[1:3]), new.view_as(weights)

    def _chunks(
        self,
        tokens: Tokens,
        gates: Gates,
        weights: Tensor,
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        if mask is not None:
            gates = _masked(gates, mask)
        if self.backend.takes(tokens.query, reset):
            return self.backend.run(weights, tokens, gates)
        steps = tokens.query.shape[1]
        tokens = Tokens(*(fold(view, self.chunk_size) for view in tokens))
        gates = Gates(*(fold(gate, self.chunk_size) for gate in gates))
        reset = None if reset is None else fold(reset.unsqueeze(-1), self.chunk_size)
        if self.forgets or reset is not None:
            decay = ChunkDecay(gates.log_retention, reset)
            writes = self.chunk_writes(tokens, gates.write_rate, decay)
        else:
            writes = self._kept_writes(tokens, gates.write_rate)
        reads, _, weights = run_writes(writes, weights)
        return reads.flatten(2, 3)[:, :, :steps].transpose(1, 2), weights

    def _kept_writes(self, tokens: Tokens, rate: Tensor) -> ChunkWrites:
        """`chunk_writes` where nothing is forgotten and no chunk holds a reset."""
        query, key, value = tokens
        size = rate.shape[-1]
        strength = rate.unsqueeze(-2) * rate.new_ones(size, size).tril()
        chunks = ChunkWrites(
            values=value,
            keys=rate.unsqueeze(-1) * key,
            scores=strength * inner_products(query, key),
            probes=query,
            kept=rate.new_ones(*rate.shape[:3], 1, 1),
        )
        if self.objective.predicts_with == "none":
            return chunks
        return chunks._replace(erased=key, system=strength * own_products(key))

    def chunk_writes(self, tokens: Tokens, rate: Tensor, decay: ChunkDecay) -> ChunkWrites:
        """What chunks `[B, H, N, C, ...]` write; gates are zero where a token is masked."""
        query, key, value = tokens
        after = decay.after_write()
        rates = rate.unsqueeze(-2)
        strength = after.writes * rates
        chunks = ChunkWrites(
            values=value,
            keys=strength[..., -1, :].unsqueeze(-1) * key,
            scores=strength * inner_products(query, key),
            probes=after.carried.unsqueeze(-1) * query,
            kept=after.carried[..., -1:].unsqueeze(-1),
        )
        start = self.initial_weights.unsqueeze(1)
        if after.initial is not None:
            chunks = chunks._replace(
                reads=after.initial.unsqueeze(-1) * (query @ start.mT),
                start=after.initial[..., -1, None, None] * start,
            )
        if self.objective.predicts_with == "none":
            return chunks
        met = after
        if self.objective.predicts_with == "previous":
            met = after.before_decay(decay.reset)
            strength = met.writes * rates
        if met.initial is not None:
            value = value - met.initial.unsqueeze(-1) * (key @ start.mT)
        return chunks._replace(
            values=value,
            erased=met.carried.unsqueeze(-1) * key,
            system=strength * own_products(key),
        )


def _masked(gates: Gates, mask: Tensor) -> Gates:
    """Gates that neither forget nor write where a token is masked."""
    return Gates(*(torch.where(mask.unsqueeze(-1), gate, 0.0) for gate in gates))
