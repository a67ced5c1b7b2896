"""Exact solver of linear memories whose every token improves the last c pairs, not only its own.

    W_t = a_t W_{t-1} + sum_{j in window(t)} w_tj (v_j - W_{t-1} k_j) k_j^T,   o_t = W_t q_t

The window holds the last c valid pairs of the segment, token t's own included; `pair_weights` gives
a and w. With c = 1 this is the delta rule, or Falcon-1. Inside a chunk of C tokens the C c errors
solve one unit triangular system, as in `exact`.

Sources: the Omega rule of Behrouz et al. 2025 (ATLAS, arXiv 2505.23735) on a linear memory, taken
at every token's own weights instead of the chunk's first; Falcon-3, arXiv 2608.27763.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .checks import check_at_least
from .chunks import ChunkMaps, fold, run_chunks
from .decay import ChunkDecay, Coefficients
from .heads import Heads
from .objective import Objective
from .pair_weights import AgeWeights, PairWeights
from .segments import count_valid
from .solver import Solver
from .views import Tokens
from .window import extend_window, slide_window, take


class Pairs(NamedTuple):
    """The window of every token: keys `[B, T, H, c, K]`, values `[B, T, H, c, V]`, newest last.

    `weight` `[B, T, H, c]` is w_tj, zero for pairs that the token does not improve.
    """

    key: Tensor
    value: Tensor
    weight: Tensor


class ExactWindow(Solver):
    """Runs a linear memory with a windowed squared error exactly.

    `window` is c, in valid tokens; `chunk_size` * `window` is the size of a chunk's system, and
    never changes the result. The initial weights are learned and start at zero.
    """

    def __init__(
        self,
        heads: Heads,
        objective: Objective,
        window: int = 4,
        chunk_size: int = 16,
        weights: Callable[[Heads, int], PairWeights] = AgeWeights,
    ) -> None:
        super().__init__(heads, objective)
        if objective.predicts_with == "none":
            raise ValueError(
                f"objective of ExactWindow must be a squared error, got "
                f"{type(objective).__name__}; use SquaredError"
            )
        check_at_least("window", window, 1)
        check_at_least("chunk_size", chunk_size, 1)
        self.window = window
        self.chunk_size = chunk_size
        self.pair_weights = weights(heads, window)
        self.gates = self.pair_weights.gates
        self.initial_weights = nn.Parameter(
            torch.zeros(heads.num_heads, heads.value_width, heads.key_width)
        )

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """`weights` `[B, H, V, K]` and `pairs` `[B, c - 1, H, K + V + 1]`: key, value and 1."""
        heads = self.heads
        row = heads.key_width + heads.value_width + 1
        return {
            "weights": self.initial_weights.expand(batch, -1, -1, -1),
            "pairs": self.initial_weights.new_zeros(batch, self.window - 1, heads.num_heads, row),
        }

    def forward(
        self,
        tokens: Tokens,
        gates: Any,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        steps = tokens.query.shape[1]
        if mask is not None:
            gates = type(gates)(*(torch.where(mask.unsqueeze(-1), gate, 0.0) for gate in gates))
        key, value, full, window = self._collect(tokens, state["pairs"], reset, mask)
        log_retention, weight = self.pair_weights(gates, key, full)
        pairs = Pairs(key, value, weight)
        query = fold(tokens.query, self.chunk_size)
        pairs = Pairs(*(fold(part, self.chunk_size).flatten(3, 4) for part in pairs))
        reset = None if reset is None else fold(reset.unsqueeze(-1), self.chunk_size)
        decay = ChunkDecay(fold(log_retention, self.chunk_size), reset)
        reads, weights = run_chunks(self._chunk_maps(query, pairs, decay), state["weights"], steps)
        return reads, {"weights": weights, "pairs": window}

    def _collect(
        self,
        tokens: Tokens,
        carried: Tensor,
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Keys, values and whether there is one of every token's window; the window at the end."""
        older, (batch, steps) = self.window - 1, tokens.key.shape[:2]
        full = torch.ones_like(tokens.key[..., :1])
        rows = torch.cat([tokens.key, tokens.value, full], dim=-1)
        extended = extend_window(carried, rows, mask)
        first = torch.arange(steps, device=carried.device).expand(batch, -1)
        if mask is not None:
            first = mask.long().cumsum(1) - mask.long()
        slots = torch.arange(self.window, device=carried.device)
        # A masked token's own slot holds another's pair; its gates of zero keep it unused.
        index = (first.unsqueeze(-1) + slots).clamp(max=extended.shape[1] - 1)
        windows = torch.unflatten(take(extended, index.flatten(1)), 1, (steps, self.window))
        occupied = None
        if reset is not None:
            # Empty slots hold zeros, so that the carried window may be counted as full.
            counts = torch.full((batch,), older, device=carried.device)
            before, occupied = count_valid(counts, steps, reset, mask)
            visible = older - slots <= before.unsqueeze(-1)
            windows = windows * visible[..., None, None]
        windows = windows.transpose(2, 3)
        sizes = [self.heads.key_width, self.heads.value_width, 1]
        key, value, full = torch.split(windows, sizes, dim=-1)
        window = slide_window(extended, older, occupied, mask)
        return key, value, full.squeeze(-1) > 0, window

    def _chunk_maps(self, query: Tensor, pairs: Pairs, decay: ChunkDecay) -> ChunkMaps:
        """Of N chunks: queries `[B, H, N, C, K]`, pairs `[B, H, N, C c, ...]`."""
        after = decay.after_write()
        met = after
        if self.objective.predicts_with != "decayed":
            met = after.before_decay(decay.reset)
        values, erased = self._errors(pairs, met)
        strength = self._per_pair(after.writes, -1) * pairs.weight.unsqueeze(-2)
        scores = strength * (query @ pairs.key.mT)
        last_keys = strength[..., -1, :].unsqueeze(-1) * pairs.key
        kept = after.carried[..., -1:].expand(*query.shape[:3], query.shape[-1])
        reads = scores @ values
        probes = after.carried.unsqueeze(-1) * query - scores @ erased
        writes = values.mT @ last_keys
        if after.initial is not None:
            start = self.initial_weights.unsqueeze(1)
            reads = reads + after.initial.unsqueeze(-1) * (query @ start.mT)
            writes = writes + after.initial[..., -1, None, None] * start
        return ChunkMaps(writes, torch.diag_embed(kept) - erased.mT @ last_keys, reads, probes)

    def _errors(self, pairs: Pairs, met: Coefficients) -> tuple[Tensor, Tensor]:
        """Errors for W_in = 0 `[..., C c, V]` and how each falls with W_in `[..., C c, K]`.

        All errors of one token are taken at the weights that it meets: they do not see each other.
        """
        key, value, weight = pairs
        if met.initial is not None:
            start = self.initial_weights.unsqueeze(1)
            value = value - self._per_pair(met.initial, -1).unsqueeze(-1) * (key @ start.mT)
        earlier = self._per_pair(self._per_pair(met.writes.tril(-1), -1), -2)
        system = earlier * weight.unsqueeze(-2) * (key @ key.mT)
        targets = torch.cat([value, self._per_pair(met.carried, -1).unsqueeze(-1) * key], dim=-1)
        # Only the strictly lower part of the system is read: the diagonal counts as ones.
        solved = torch.linalg.solve_triangular(system, targets, upper=False, unitriangular=True)
        errors, erased = torch.split(solved, [value.shape[-1], key.shape[-1]], dim=-1)
        return errors, erased

    def _per_pair(self, of_tokens: Tensor, axis: int) -> Tensor:
        """Repeats what belongs to a token for each of its pairs."""
        return of_tokens.repeat_interleave(self.window, dim=axis)
