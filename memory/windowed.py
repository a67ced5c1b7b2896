"""Exact solver of linear memories whose every token improves the last c pairs, not only its own.

    W_t = a_t W_{t-1} + b_t sum_{j in window(t)} p_tj (v_j - W_{t-1} k_j) k_j^T,   o_t = W_t q_t
    p_t = softmax over the window's pairs of a learned score per age

The window holds the last c valid pairs of the segment, token t's own included. The weights p sum to
one, so that with keys of length 1 no step overshoots; c = 1 is the delta rule. Inside a chunk of C
tokens the C c errors solve one unit triangular system, as in `exact`.

Source: the Omega rule of Behrouz et al. 2025 (ATLAS, arXiv 2505.23735) on a linear memory; taken at
every token's own weights instead of the chunk's first.
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
from .segments import count_valid
from .solver import Solver
from .views import Tokens
from .window import extend_window, slide_window, take


class Pairs(NamedTuple):
    """The window of every token: keys `[B, T, H, c, K]`, values `[B, T, H, c, V]`, newest last.

    `weight` `[B, T, H, c]` is b_t p_tj, zero for pairs that the token does not improve.
    """

    key: Tensor
    value: Tensor
    weight: Tensor


class ExactWindow(Solver):
    """Runs a linear memory with a windowed squared error exactly.

    `window` is c, in valid tokens; `chunk_size` * `window` is the size of a chunk's system, and
    never changes the result. The initial weights are learned and start at zero; the scores of the
    ages start equal.
    """

    def __init__(
        self, heads: Heads, objective: Objective, window: int = 4, chunk_size: int = 16
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
        self.age_scores = nn.Parameter(torch.zeros(heads.num_heads, window))
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
        gates: Gates,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        steps = tokens.query.shape[1]
        if mask is not None:
            gates = Gates(*(torch.where(mask.unsqueeze(-1), gate, 0.0) for gate in gates))
        pairs, window = self._collect(tokens, gates.write_rate, state["pairs"], reset, mask)
        query = fold(tokens.query, self.chunk_size)
        pairs = Pairs(*(fold(part, self.chunk_size).flatten(3, 4) for part in pairs))
        reset = None if reset is None else fold(reset.unsqueeze(-1), self.chunk_size)
        decay = ChunkDecay(fold(gates.log_retention, self.chunk_size), reset)
        reads, weights = run_chunks(self._chunk_maps(query, pairs, decay), state["weights"], steps)
        return reads, {"weights": weights, "pairs": window}

    def _collect(
        self,
        tokens: Tokens,
        rate: Tensor,
        carried: Tensor,
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Pairs, Tensor]:
        """The pairs of every token's window, and the window after the call."""
        older, steps = self.window - 1, rate.shape[1]
        full = torch.ones_like(tokens.key[..., :1])
        rows = torch.cat([tokens.key, tokens.value, full], dim=-1)
        extended = extend_window(carried, rows, mask)
        first = torch.arange(steps, device=rate.device).expand(rate.shape[:2])
        if mask is not None:
            first = mask.long().cumsum(1) - mask.long()
        slots = torch.arange(self.window, device=rate.device)
        # A masked token's own slot holds another's pair; its rate of zero keeps it unused.
        index = (first.unsqueeze(-1) + slots).clamp(max=extended.shape[1] - 1)
        windows = torch.unflatten(take(extended, index.flatten(1)), 1, (steps, self.window))
        occupied = None
        if reset is not None:
            # Empty slots hold zeros, so that the carried window may be counted as full.
            counts = torch.full((rate.shape[0],), older, device=rate.device)
            before, occupied = count_valid(counts, steps, reset, mask)
            visible = older - slots <= before.unsqueeze(-1)
            windows = windows * visible[..., None, None]
        windows = windows.transpose(2, 3)
        sizes = [self.heads.key_width, self.heads.value_width, 1]
        key, value, full = torch.split(windows, sizes, dim=-1)
        scores = self.age_scores.masked_fill(full.squeeze(-1) == 0, -1e30)
        pairs = Pairs(key, value, rate.unsqueeze(-1) * scores.softmax(-1) * full.squeeze(-1))
        return pairs, slide_window(extended, older, occupied, mask)

    def _chunk_maps(self, query: Tensor, pairs: Pairs, decay: ChunkDecay) -> ChunkMaps:
        """Of N chunks: queries `[B, H, N, C, K]`, pairs `[B, H, N, C c, ...]`."""
        after = decay.after_write()
        met = after if self.objective.predicts_with == "decayed" else decay.before_decay()
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
