"""Exact solver of memories with one retention per key channel, by token or by chunk.

    W_t = W_{t-1} Diag(a_t) + (value_t - W erase_t) write_t^T,   o_t = W_t query_t

The errors of a chunk's edits solve one unit lower triangular system, whose inverse does not depend
on the weights: those of all chunks are computed together, and only three products per chunk run in
sequence.

Source: secondary chunking, Yang et al. 2023 (GLA); Kimi Team 2025 (KDA).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from .backend import Backend
from .channel_chunks import EditChunks
from .channel_decay import ChannelDecay
from .channel_rule import ChannelRule, Edits
from .checks import check_at_least
from .chunk_writes import run_writes
from .chunks import fold
from .objective import Prediction


class ChannelSolver(nn.Module, ABC):
    """Owns the learned initial weights, which start at zero, and runs the edits of a call.

    `chunk_size` and `block_size`, in edits, are for speed only: pairs of edits in one block of a
    chunk are decayed one by one, all others by matrix products. Chunks are rounded up to
    2^n blocks.
    """

    reads_commits: bool = False

    def __init__(self, rule: ChannelRule, chunk_size: int = 16, block_size: int = 4) -> None:
        super().__init__()
        check_at_least("chunk_size", chunk_size, 1)
        check_at_least("block_size", block_size, 1)
        self.chunk_size = chunk_size
        self.block_size = block_size
        self.predicts_with = rule.predicts_with
        self.edits_per_token = rule.edits_per_token
        sizes = rule.memories
        self.initial_weights = nn.Parameter(
            torch.zeros(sizes.num_heads, sizes.value_width, sizes.key_width)
        )

    @abstractmethod
    def init_state(self, batch: int) -> dict[str, Tensor]:
        """The leaves of the learned initial state, `[B, ...]`."""

    @abstractmethod
    def forward(
        self,
        edits: Edits,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
        commit: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Reads `[B, T, M, V]` and the leaves of the next state.

        Flags are `[B, T]`; `reset` is None for a single token: the memory has applied it.
        """

    def initial_rows(self, batch: int) -> Tensor:
        """`[B, M, V, K]`: the learned initial weights in every row."""
        return self.initial_weights.expand(batch, -1, -1, -1)

    def write_token(self, edits: Edits, weights: Tensor, mask: Tensor | None) -> Tensor:
        """The weights `[B, M, V, K]` after the edits of one token."""
        new = weights
        for index in range(self.edits_per_token):
            new = apply_edit(edits, index, new, self.predicts_with)
        return new if mask is None else torch.where(mask.view(-1, 1, 1, 1), new, weights)

    def cut_chunks(self, edits: Edits, reset: Tensor | None, mask: Tensor | None) -> EditChunks:
        """The chunks of a call; edits without a valid token change nothing."""
        edits = self.masked(edits, mask)
        edits = Edits(
            query=self.fold(edits.query),
            erase=None if edits.erase is None else self.fold(edits.erase),
            write=self.fold(edits.write),
            value=self.fold(edits.value),
            log_retention=self.fold(edits.log_retention),
        )
        if reset is not None:
            reset = self.fold_flags(reset, 0)
        decay = ChannelDecay(edits.log_retention, reset, self.block_size)
        initial = self.initial_weights.unsqueeze(1)
        return EditChunks(edits, decay, initial, self.predicts_with, not self.reads_commits)

    def masked(self, edits: Edits, mask: Tensor | None) -> Edits:
        """Edits that change nothing where `mask` `[B, T]` is False."""
        if mask is None:
            return edits
        mask = mask.repeat_interleave(self.edits_per_token, dim=1)
        valid = mask.unsqueeze(-1).unsqueeze(-1)
        return edits._replace(
            write=torch.where(valid, edits.write, 0.0),
            log_retention=torch.where(valid, edits.log_retention, 0.0),
        )

    def fold(self, x: Tensor) -> Tensor:
        """`[B, E, M, ...]` to chunks `[B, M, N, C, ...]`."""
        # Chunks double from one block on, so that blocks pair up without a rest.
        doublings = math.ceil(math.log2(min(x.shape[1], self.chunk_size) / self.block_size))
        size = self.block_size * 2 ** max(0, doublings)
        return fold(x, size, multiple_of=size)

    def fold_flags(self, flags: Tensor, edit: int) -> Tensor:
        """Flags `[B, T]` of tokens to chunks `[B, 1, N, C]`, set at one `edit` of each token."""
        after = self.edits_per_token - 1 - edit
        return self.fold(
            functional.pad(flags.unsqueeze(-1), (edit, after)).flatten(1).unsqueeze(-1)
        )

    def unfold(self, reads: Tensor, steps: int) -> Tensor:
        """Reads `[B, M, N, C, V]` of every edit to those after each of `steps` tokens' last."""
        count = self.edits_per_token
        return reads.flatten(2, 3)[:, :, count - 1 : steps * count : count].transpose(1, 2)


class ExactChannel(ChannelSolver):
    """Reads see the live weights, right after the token's own write; `commit` is ignored."""

    def __init__(self, rule: ChannelRule, chunk_size: int = 16, block_size: int = 4) -> None:
        super().__init__(rule, chunk_size, block_size)
        self.backend = Backend(rule.kernel, owner=type(rule).__name__)

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """`weights` `[B, M, V, K]`: the learned initial weights in every row."""
        return {"weights": self.initial_rows(batch)}

    def forward(
        self,
        edits: Edits,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
        commit: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        weights = state["weights"]
        steps = edits.query.shape[1] // self.edits_per_token
        if steps == 1:
            weights = self.write_token(edits, weights, mask)
            return read(weights, edits.query[:, -1:]), {"weights": weights}
        if self.backend.takes(edits.query, reset):
            reads, weights = self.backend.run(weights, self.masked(edits, mask))
            return reads, {"weights": weights}
        reads, _, weights = run_writes(self.cut_chunks(edits, reset, mask).live_writes(), weights)
        return self.unfold(reads, steps), {"weights": weights}


def read(weights: Tensor, query: Tensor) -> Tensor:
    """Reads `[B, 1, M, V]` of `weights` `[B, M, V, K]` with `query` `[B, 1, M, K]`."""
    return (query.transpose(1, 2) @ weights.mT).transpose(1, 2)


def apply_edit(edits: Edits, index: int, weights: Tensor, predicts_with: Prediction) -> Tensor:
    """The weights `[B, M, V, K]` after edit number `index`."""
    # One row per batch row and memory, `[B M, 1, K or V]`: matrices times columns are far slower.
    old = weights.flatten(0, 1)
    retention, error, write = (
        one[:, index].flatten(0, 1).unsqueeze(-2)
        for one in (edits.log_retention.exp(), edits.value, edits.write)
    )
    decayed = old * retention
    if edits.erase is not None:
        met = decayed if predicts_with == "decayed" else old
        erase = edits.erase[:, index].flatten(0, 1).unsqueeze(-2)
        error = torch.baddbmm(error, erase, met.mT, alpha=-1)
    return torch.addcmul(decayed, error.mT, write).view_as(weights)
