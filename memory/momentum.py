"""Exact solver of linear memories with momentum, one token at a time or a chunk at once.

    M_t = mu_t M_{t-1} + b_t e_t k_t^T,   W_t = a_t W_{t-1} + p_t M_t,   o_t = W_t q_t

Both recurrences are linear in time, so the weight of write j in W_t is G = D P N B: the decays D of
the fast weights after the gains P, after the decays N of the momentum, after the rates B. The state
of a chunk is [W | M], twice as wide, and each chunk is an affine map of it.

Source: Behrouz et al. 2024 (Titans, for a linear memory); Huang et al. 2026 (Momentum DeltaNet).
The product form G is ours: nothing is divided by a product of gates.
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
        maps = self._chunk_maps(tokens, gates, reset)
        reads, both = run_chunks(maps, torch.cat([weights, momentum], dim=-1), steps)
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
        # Columns per batch row and head: `[B, H, V or K, 1]`, gates `[B, H, 1, 1]`.
        query, key, error = (view.transpose(1, 2).mT for view in tokens)
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
            error = error - met @ key
        moving = kept * momentum + rate * error * key.mT
        moved = decayed + gain * moving
        if mask is not None:
            valid = mask.unsqueeze(-1).unsqueeze(-1)
            moved, moving = torch.where(valid, moved, weights), torch.where(valid, moving, momentum)
        return (moved @ query).mT.transpose(1, 2), moved, moving

    def _chunk_maps(self, tokens: Tokens, gates: MomentumGates, reset: Tensor | None) -> ChunkMaps:
        query, key, value = tokens
        decay = ChunkDecay(gates.log_retention, reset)
        after, kept = decay.after_write(), ChunkDecay(gates.log_momentum, reset).after_write()
        mixing = _mix(after, kept, gates)
        values, erased = value, None
        if self.objective.predicts_with != "none":
            if self.objective.predicts_with == "previous":
                met = decay.before_decay()
            else:
                met = after._replace(writes=after.writes.tril(-1))
            values, erased = self._errors(key, value, _mix(met, kept, gates))

        scores = mixing.writes * (query @ key.mT)
        last_momentum = kept.writes[..., -1, :] * gates.write_rate
        last_keys = _pair(mixing.writes[..., -1, :], last_momentum, key)
        reads = scores @ values
        probes = _pair(mixing.weights, mixing.momentum, query)
        writes = values.mT @ last_keys
        transition = _transition(mixing, kept, key.shape[-1])
        if erased is not None:
            probes = probes - scores @ erased
            transition = transition - erased.mT @ last_keys
        if mixing.initial is not None:
            start = self.initial_weights.unsqueeze(1)
            reads = reads + mixing.initial.unsqueeze(-1) * (query @ start.mT)
            started = mixing.initial[..., -1, None, None] * start
            writes = writes + torch.cat([started, torch.zeros_like(started)], dim=-1)
        return ChunkMaps(writes, transition, reads, probes)

    def _errors(self, key: Tensor, value: Tensor, met: Mixing) -> tuple[Tensor, Tensor]:
        """`[..., C, V]` errors for W = M = 0, `[..., C, 2 K]` how each error falls with [W | M]."""
        if met.initial is not None:
            start = self.initial_weights.unsqueeze(1)
            value = value - met.initial.unsqueeze(-1) * (key @ start.mT)
        targets = torch.cat([value, _pair(met.weights, met.momentum, key)], dim=-1)
        system = met.writes * (key @ key.mT)
        # Only the strictly lower part of the system is read: the diagonal counts as ones.
        solved = torch.linalg.solve_triangular(system, targets, upper=False, unitriangular=True)
        values, erased = torch.split(solved, [value.shape[-1], 2 * key.shape[-1]], dim=-1)
        return values, erased


def _mix(decay: Coefficients, kept: Coefficients, gates: MomentumGates) -> Mixing:
    """What reaches the weights through the momentum: D P N B and, of the old momentum, D P m."""
    gained = decay.writes * gates.gain.unsqueeze(-2)
    momentum = (gained @ kept.carried.unsqueeze(-1)).squeeze(-1)
    writes = (gained @ kept.writes) * gates.write_rate.unsqueeze(-2)
    return Mixing(writes, decay.carried, momentum, decay.initial)


def _pair(for_weights: Tensor, for_momentum: Tensor, x: Tensor) -> Tensor:
    """`[..., C, 2 K]`: x `[..., C, K]` as seen by [W | M], scaled by `[..., C]` each."""
    return torch.cat([for_weights.unsqueeze(-1) * x, for_momentum.unsqueeze(-1) * x], dim=-1)


def _transition(mixing: Mixing, kept: Coefficients, size: int) -> Tensor:
    """`[..., 2 K, 2 K]`: [W | M] from start to end of a chunk that erases nothing."""
    last = (mixing.weights[..., -1], mixing.momentum[..., -1], kept.carried[..., -1])
    weights, moved, momentum = (x[..., None, None] for x in last)
    eye = torch.eye(size, dtype=weights.dtype, device=weights.device)
    upper = torch.cat([weights * eye, torch.zeros_like(weights * eye)], dim=-1)
    return torch.cat([upper, torch.cat([moved * eye, momentum * eye], dim=-1)], dim=-2)
