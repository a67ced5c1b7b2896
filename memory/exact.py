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
from .chunks import ChunkWrites, fold, run_writes
from .decay import ChunkDecay
from .heads import Heads
from .objective import Objective
from .rule import Gates
from .solver import Solver
from .triangular import unit_lower_inverse
from .views import Tokens


class ExactScalar(Solver):
    """Runs a linear memory exactly: dot-product or squared-error objective, one retention per head.

    `chunk_size` trades the quadratic cost inside chunks against the number of chunks; it never
    changes the result. The initial fast weights are learned and start at zero.
    """

    def __init__(self, heads: Heads, objective: Objective, chunk_size: int = 32) -> None:
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
        # One column or row per batch row and head: `[B H, V or K, 1]`, `[B H, 1, 1]`.
        query, key, error = (view.reshape(-1, view.shape[-1], 1) for view in tokens)
        retention, rate = (
            gate.reshape(-1, 1, 1) for gate in (gates.log_retention.exp(), gates.write_rate)
        )
        old = weights.reshape(-1, *weights.shape[2:])
        if self.objective.predicts_with == "decayed":
            error = error - retention * (old @ key)
        elif self.objective.predicts_with == "previous":
            error = torch.baddbmm(error, old, key, alpha=-1)
        # Nothing else holds the product: no second matrix is made.
        new = (retention * old).addcmul_(rate * error, key.mT)
        if mask is not None:
            new = torch.where(mask.repeat_interleave(self.heads.num_heads).view(-1, 1, 1), new, old)
        reads = (new @ query).view(-1, 1, *weights.shape[1:3])
        return reads, new.view_as(weights)

    def _chunks(
        self,
        tokens: Tokens,
        gates: Gates,
        weights: Tensor,
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        if mask is not None:
            gates = Gates(*(torch.where(mask.unsqueeze(-1), gate, 0.0) for gate in gates))
        if self.backend.takes(tokens.query, reset):
            return self.backend.run(weights, tokens, gates)
        steps = tokens.query.shape[1]
        tokens = Tokens(*(fold(view, self.chunk_size) for view in tokens))
        gates = Gates(*(fold(gate, self.chunk_size) for gate in gates))
        reset = None if reset is None else fold(reset.unsqueeze(-1), self.chunk_size)
        decay = ChunkDecay(gates.log_retention, reset)
        reads, _, weights = run_writes(self.chunk_writes(tokens, gates.write_rate, decay), weights)
        return reads.flatten(2, 3)[:, :, :steps].transpose(1, 2), weights

    def chunk_writes(self, tokens: Tokens, rate: Tensor, decay: ChunkDecay) -> ChunkWrites:
        """What chunks `[B, H, N, C, ...]` write; gates are zero where a token is masked."""
        query, key, value = tokens
        after = decay.after_write()
        written = rate.unsqueeze(-1) * key
        chunks = ChunkWrites(
            values=value,
            keys=after.writes[..., -1, :].unsqueeze(-1) * written,
            scores=after.writes * (query @ written.mT),
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
        met = after if self.objective.predicts_with == "decayed" else decay.before_decay()
        if met.initial is not None:
            value = value - met.initial.unsqueeze(-1) * (key @ start.mT)
        return chunks._replace(
            values=value,
            erased=met.carried.unsqueeze(-1) * key,
            inverse=unit_lower_inverse(met.writes * (key @ written.mT)),
        )
