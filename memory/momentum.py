"""Exact solver of linear memories with momentum, one token at a time or a chunk at once.

    M_t = mu_t M_{t-1} + b_t e_t k_t^T,   W_t = a_t W_{t-1} + p_t M_t,   o_t = W_t q_t

Both recurrences are linear in time, so the weight of write j in W_t is G = D P N B: the decays D of
the fast weights after the gains P, after the decays N of the momentum, after the rates B. The state
of a chunk is [W | M], twice as wide; its errors solve one triangular system, as without momentum.

Source: Behrouz et al. 2024 (Titans, for a linear memory); Huang et al. 2026 (Momentum DeltaNet).
The product form G is ours: nothing is divided by a product of gates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .checks import check_at_least
from .chunk_writes import ChunkWrites, run_writes
from .chunks import fold
from .decay import ChunkDecay, Coefficients, met_next
from .heads import Heads
from .inner_products import inner_products, own_products
from .objective import Objective
from .solver import Solver
from .steps import MomentumGates
from .views import Tokens


class Mixing(NamedTuple):
    """Weights in W_t, or in what token t predicts with: of write j, of W_in, of M_in and of W_0.

    `writes` is `[..., C, C]`, the others `[..., C]`; `initial` is None when no chunk holds a reset.
    """

    writes: Tensor
    weights: Tensor
    momentum: Tensor
    initial: Tensor | None

    def before_decay(self, reset: Tensor | None) -> Mixing:
        """Of W_{t-1} as token t meets it, after a `reset` at t."""
        decay = Coefficients(self.writes, self.weights, self.initial).before_decay(reset)
        momentum = met_next(self.momentum, reset)
        return Mixing(decay.writes, decay.carried, momentum, decay.initial)


class ExactMomentum(Solver):
    """Runs a linear memory with momentum exactly; the momentum is zero after a reset.

    `chunk_size` trades the quadratic cost inside chunks against the number of chunks; it never
    changes the result. The initial fast weights are learned and start at zero.
    """

    gates = MomentumGates

    def __init__(self, heads: Heads, objective: Objective, chunk_size: int = 16) -> None:
        super().__init__(heads, objective)
        check_at_least("chunk_size", chunk_size, 1)
        self.chunk_size = chunk_size
        self.initial_weights = nn.Parameter(
            torch.zeros(heads.num_heads, heads.value_width, heads.key_width)
        )

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """`weights` `[B, H, V, K]`, the learned initial ones, and `momentum`, zero."""
        weights = self.initial_weights.expand(batch, -1, -1, -1)
        return {"weights": weights, "momentum": torch.zeros_like(weights)}

    def forward(
        self,
        tokens: Tokens,
        gates: MomentumGates,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        weights, momentum = state["weights"], state["momentum"]
        if tokens.query.shape[1] == 1:
            reads, weights, momentum = self._token(tokens, gates, weights, momentum, mask)
            return reads, {"weights": weights, "momentum": momentum}
        steps = tokens.query.shape[1]
        if mask is not None:
            gates = MomentumGates(*(torch.where(mask.unsqueeze(-1), g, 0.0) for g in gates))
        tokens = Tokens(*(fold(view, self.chunk_size) for view in tokens))
        gates = MomentumGates(*(fold(gate, self.chunk_size) for gate in gates))
        reset = None if reset is None else fold(reset.unsqueeze(-1), self.chunk_size)
        writes = self._chunk_writes(tokens, gates, reset)
        reads, _, both = run_writes(writes, torch.cat([weights, momentum], dim=-1))
        reads = reads.flatten(2, 3)[:, :, :steps].transpose(1, 2)
        weights, momentum = both.chunk(2, dim=-1)
        # Copies, so that neither leaf keeps the other's memory alive.
        return reads, {"weights": weights.contiguous(), "momentum": momentum.contiguous()}

    def _token(
        self,
        tokens: Tokens,
        gates: MomentumGates,
        weights: Tensor,
        momentum: Tensor,
        mask: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        # Rows `[B, H, 1, V or K]`, gates `[B, H, 1, 1]`: matrices times columns are far slower.
        query, key, error = (view.transpose(1, 2) for view in tokens)
        retention, rate, kept, gain = (
            gate.transpose(1, 2).unsqueeze(-1)
            for gate in (
                gates.log_retention.exp(),
                gates.write_rate,
                gates.log_momentum.exp(),
                gates.gain,
            )
        )
        decayed = retention * weights
        if self.objective.predicts_with != "none":
            met = decayed if self.objective.predicts_with == "decayed" else weights
            error = error - key @ met.mT
        moving = kept * momentum + (rate * error).mT * key
        moved = decayed + gain * moving
        if mask is not None:
            valid = mask.unsqueeze(-1).unsqueeze(-1)
            moved, moving = torch.where(valid, moved, weights), torch.where(valid, moving, momentum)
        return (query @ moved.mT).transpose(1, 2), moved, moving

    def _chunk_writes(
        self, tokens: Tokens, gates: MomentumGates, reset: Tensor | None
    ) -> ChunkWrites:
        query, key, value = tokens
        after, kept = (
            ChunkDecay(gate, reset).after_write()
            for gate in (gates.log_retention, gates.log_momentum)
        )
        mixing = _mix(after, kept, gates)
        ends = (mixing.weights, kept.carried, mixing.momentum)
        of_weights, of_momentum, moved = (one[..., -1, None, None] for one in ends)
        writes = ChunkWrites(
            values=value,
            keys=_pair(mixing.writes[..., -1, :], kept.writes[..., -1, :] * gates.write_rate, key),
            scores=mixing.writes * inner_products(query, key),
            probes=_pair(mixing.weights, mixing.momentum, query),
            kept=torch.cat(
                [one.expand(*one.shape[:-1], key.shape[-1]) for one in (of_weights, of_momentum)],
                dim=-1,
            ),
            moved=moved,
        )
        start = self.initial_weights.unsqueeze(1)
        if mixing.initial is not None:
            started = mixing.initial[..., -1, None, None] * start
            writes = writes._replace(
                reads=mixing.initial.unsqueeze(-1) * (query @ start.mT),
                start=torch.cat([started, torch.zeros_like(started)], dim=-1),
            )
        if self.objective.predicts_with == "none":
            return writes
        if self.objective.predicts_with == "previous":
            met = mixing.before_decay(reset)
        else:
            met = _mix(after._replace(writes=after.writes.tril(-1)), kept, gates)
        if met.initial is not None:
            value = value - met.initial.unsqueeze(-1) * (key @ start.mT)
        return writes._replace(
            values=value,
            erased=_pair(met.weights, met.momentum, key),
            system=met.writes * own_products(key),
        )


def _mix(decay: Coefficients, kept: Coefficients, gates: MomentumGates) -> Mixing:
    """What reaches the weights through the momentum: D P N B and, of the old momentum, D P m."""
    gained = decay.writes * gates.gain.unsqueeze(-2)
    momentum = (gained @ kept.carried.unsqueeze(-1)).squeeze(-1)
    writes = (gained @ kept.writes) * gates.write_rate.unsqueeze(-2)
    return Mixing(writes, decay.carried, momentum, decay.initial)


def _pair(for_weights: Tensor, for_momentum: Tensor, x: Tensor) -> Tensor:
    """`[..., C, 2 K]`: x `[..., C, K]` as seen by [W | M], scaled by `[..., C]` each."""
    return torch.cat([for_weights.unsqueeze(-1) * x, for_momentum.unsqueeze(-1) * x], dim=-1)
