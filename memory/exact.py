"""Exact solver of scalar-gated linear memories, one token at a time or a chunk at once.

    W_t = a_t W_{t-1} + beta_t e_t k_t^T,   o_t = W_t q_t

Inside a chunk the errors e solve one unit lower triangular system, so each chunk is an affine map
of the state it meets: W_out = P + W_in M and O = L + R W_in^T. The maps of all chunks are computed
together and only W -> P + W M runs in sequence.

Source: the UT/WY form of Yang et al. 2024 (DeltaNet, Gated DeltaNet), written here for mid-chunk
resets to a learned initial state and for masked tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .checks import check_at_least
from .chunks import ChunkMaps, fold, run_chunks
from .decay import ChunkDecay, Coefficients
from .heads import Heads
from .objective import Objective
from .rule import Gates
from .solver import Solver
from .views import Tokens


class ChunkErrors(NamedTuple):
    """What chunks write along their keys: errors = values - erased W_in^T, `[B, H, N, C, V]`."""

    values: Tensor
    """`[B, H, N, C, V]`: the errors if W_in is zero"""
    erased: Tensor | None
    """`[B, H, N, C, K]`: how they fall with W_in; None if the objective predicts nothing"""


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
        decayed = retention * old
        if self.objective.predicts_with != "none":
            met = decayed if self.objective.predicts_with == "decayed" else old
            error = torch.baddbmm(error, met, key, alpha=-1)
        new = torch.addcmul(decayed, rate * error, key.mT)
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
        steps = tokens.query.shape[1]
        if mask is not None:
            gates = Gates(*(torch.where(mask.unsqueeze(-1), gate, 0.0) for gate in gates))
        tokens = Tokens(*(fold(view, self.chunk_size) for view in tokens))
        gates = Gates(*(fold(gate, self.chunk_size) for gate in gates))
        reset = None if reset is None else fold(reset.unsqueeze(-1), self.chunk_size)
        maps, _ = self.chunk_maps(tokens, gates, ChunkDecay(gates.log_retention, reset))
        return run_chunks(maps, weights, steps)

    def chunk_maps(
        self, tokens: Tokens, gates: Gates, decay: ChunkDecay
    ) -> tuple[ChunkMaps, ChunkErrors]:
        """What chunks `[B, H, N, C, ...]` do to the weights they meet, and the errors they write.

        Gates are `[B, H, N, C]` and zero where a token is masked.
        """
        query, key, value = tokens
        after = decay.after_write()
        errors = self._errors(key, value, gates.write_rate, decay, after)
        values, erased = errors
        strength = after.writes * gates.write_rate.unsqueeze(-2)
        scores = strength * (query @ key.mT)
        last_keys = strength[..., -1, :].unsqueeze(-1) * key

        reads = scores @ values
        probes = after.carried.unsqueeze(-1) * query
        writes = values.mT @ last_keys
        transition = torch.diag_embed(after.carried[..., -1:].expand(*key.shape[:3], key.shape[-1]))
        if erased is not None:
            probes = probes - scores @ erased
            transition = transition - erased.mT @ last_keys
        if after.initial is not None:
            start = self.initial_weights.unsqueeze(1)
            reads = reads + after.initial.unsqueeze(-1) * (query @ start.mT)
            writes = writes + after.initial[..., -1, None, None] * start
        return ChunkMaps(writes, transition, reads, probes), errors

    def _errors(
        self, key: Tensor, value: Tensor, rate: Tensor, decay: ChunkDecay, after: Coefficients
    ) -> ChunkErrors:
        if self.objective.predicts_with == "none":
            return ChunkErrors(value, None)
        met = after if self.objective.predicts_with == "decayed" else decay.before_decay()
        if met.initial is not None:
            start = self.initial_weights.unsqueeze(1)
            value = value - met.initial.unsqueeze(-1) * (key @ start.mT)
        system = met.writes * rate.unsqueeze(-2) * (key @ key.mT)
        targets = torch.cat([value, met.carried.unsqueeze(-1) * key], dim=-1)
        # Only the strictly lower part of the system is read: the diagonal counts as ones.
        solved = torch.linalg.solve_triangular(system, targets, upper=False, unitriangular=True)
        values, erased = torch.split(solved, [value.shape[-1], key.shape[-1]], dim=-1)
        return ChunkErrors(values, erased)
