"""A delta memory with an exact cache of the pairs that it predicts worst.

    o_t = W_t q_t + c_h sum_j softmax_j(g_h q_t . k_j) v_j     over the cached pairs j, c, g learned

Sources: LoLA (McDermott et al. 2025, arXiv 2505.23666) keeps the pairs with the largest error out
of the linear state; HOLA (arXiv 2607.02303) writes every pair and caches those with the largest
write-time error. Rehearsing the cached pairs every few tokens is ours.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .checks import check_at_least
from .chunk_writes import run_writes
from .decay import ChunkDecay
from .estimator import weighted_mean
from .exact import ExactScalar
from .grid import Grid
from .heads import Heads, Piece
from .objective import Objective
from .rule import Gates
from .solver import Solver
from .views import Tokens
from .worst_pairs import EMPTY, Members, Pairs, find_members, keep_worst

CACHE_LEAVES = ("cache_keys", "cache_values", "cache_rates", "cache_scores")


class Block(NamedTuple):
    """The tokens `[B, H, 1, L, ...]` and gates `[B, H, 1, L]` of one block of the grid."""

    tokens: Tokens
    gates: Gates
    decay: ChunkDecay
    segment: Tensor
    """`[B, L]`: 0 before the first reset, +1 at every reset"""
    valid: Tensor
    """`[B, L]`"""
    full: Tensor
    """`[B]`: whether a period ends with the block"""

    def pairs(self, errors: Tensor) -> Pairs:
        """The block's own pairs, scored by rate times error; `errors` `[B, H, L, V]`."""
        rates = self.gates.write_rate.squeeze(2)
        scores = (rates * errors.detach().norm(dim=-1)).detach()
        return Pairs(self.tokens.key.squeeze(2), self.tokens.value.squeeze(2), rates, scores)


class Stored(NamedTuple):
    """What a block leaves behind."""

    reads: Tensor
    """`[B, H, L, V]`: of the weights only"""
    weights: Tensor
    pairs: Pairs
    """The cache it met and its own pairs"""
    members: Members


class Storage(Piece, ABC):
    """Which pairs go into the weights of `memory`, and what happens to cached ones at borders."""

    leaves: tuple[str, ...] = ()
    """Names of the leaves of the storage's own."""

    def init_state(self, weights: Tensor) -> dict[str, Tensor]:
        """These leaves, from the initial `weights` `[B, H, V, K]`."""
        return {}

    @abstractmethod
    def write(
        self, memory: ExactScalar, block: Block, cache: Pairs, leaves: Mapping[str, Tensor]
    ) -> Stored:
        """Run one block from the `weights` in `leaves`."""

    @abstractmethod
    def close(
        self, memory: ExactScalar, block: Block, cache: Pairs, leaves: Mapping[str, Tensor]
    ) -> tuple[Pairs, dict[str, Tensor]]:
        """The cache, and the weights and own leaves, after the block; `full` rows end a period."""


class CachedDelta(Solver):
    """Delta-rule weights and, per head, an exact cache of `cache_size` pairs, the worst predicted.

    `storage` is `Rehearse` (write everything, rehearse what is cached) or `AbsorbLosers` (write
    only what the cache gives up). A period is `period` valid tokens and part of the model; a reset
    empties the cache and leaves the period's border where it is. Scores, and with them the choice
    of pairs, have no gradient. `sharpness` is the initial g_h for queries and keys of length one.
    """

    anchored = True
    clocks = ("phase",)

    def __init__(
        self,
        heads: Heads,
        objective: Objective,
        storage: Callable[[Heads], Storage],
        cache_size: int = 8,
        period: int = 8,
        sharpness: float = 4.0,
    ) -> None:
        super().__init__(heads, objective)
        check_at_least("cache_size", cache_size, 1)
        check_at_least("period", period, 1)
        check_at_least("sharpness", sharpness, 1e-3)
        if objective.predicts_with not in ("decayed", "previous"):
            raise ValueError(
                f"CachedDelta ranks pairs by the error of a linear memory, got "
                f"{type(objective).__name__}; use SquaredError"
            )
        self.storage = storage(heads)
        self.memory = ExactScalar(heads, objective, chunk_size=period)
        self.cache_size = cache_size
        self.period = period
        scale = heads.key_width**-0.5  # of the queries
        self.log_sharpness = nn.Parameter(
            torch.full((heads.num_heads, 1, 1), math.log(sharpness / scale))
        )
        self.strength = nn.Parameter(torch.full((heads.num_heads, 1), scale))

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """`weights` `[B, H, V, K]`, the empty cache `[B, H, cache_size, ...]`, `phase` `[B]`."""
        leaves = self.memory.init_state(batch)
        weights = leaves["weights"]
        slots = (batch, self.heads.num_heads, self.cache_size)
        leaves |= {
            "cache_keys": weights.new_zeros(*slots, self.heads.key_width),
            "cache_values": weights.new_zeros(*slots, self.heads.value_width),
            "cache_rates": weights.new_zeros(slots),
            "cache_scores": weights.new_full(slots, EMPTY),
            "phase": weights.new_zeros(batch, dtype=torch.int64),
        }
        return leaves | self.storage.init_state(weights)

    def forward(
        self,
        tokens: Tokens,
        gates: Gates,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        grid = Grid(state["phase"], tokens.query.shape[1], self.period, reset, mask)
        leaves = {name: state[name] for name in ("weights", *CACHE_LEAVES, *self.storage.leaves)}
        reads = []
        for block in _blocks(tokens, gates, grid, mask):
            read, leaves = self._run(block, leaves)
            reads.append(read)
        leaves["phase"] = grid.next_phase
        return grid.unfold(torch.stack(reads, dim=1)), leaves

    def _run(self, block: Block, leaves: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Reads `[B, L, H, V]` of a block and the leaves after it."""
        cache = Pairs(*(leaves[name] for name in CACHE_LEAVES))
        stored = self.storage.write(self.memory, block, cache, leaves)
        query = block.tokens.query.squeeze(2)
        fits = self.log_sharpness.exp() * (query @ stored.pairs.keys.mT)
        recalled = weighted_mean(fits, stored.members.kept, stored.pairs.values.transpose(1, 2))
        reads = stored.reads.transpose(1, 2) + self.strength * recalled

        cache = keep_worst(stored.pairs, stored.members.kept[:, :, -1], self.cache_size)
        after = dict(leaves) | {"weights": stored.weights}
        cache, moved = self.storage.close(self.memory, block, cache, after)
        return reads, after | moved | dict(zip(CACHE_LEAVES, cache, strict=True))


def members_of(block: Block, pairs: Pairs) -> Members:
    """Who is kept after every token of the block; `pairs` are the cache and the block's own."""
    size = pairs.scores.shape[-1] - block.valid.shape[1]
    return find_members(pairs, size, block.segment, block.valid)


def apply_delta(
    memory: ExactScalar, tokens: Tokens, gates: Gates, decay: ChunkDecay, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Reads and errors `[B, H, L, V]` of one chunk `[B, H, 1, L, ...]`, the weights after it."""
    if tokens.query.shape[3] == 1 and decay.reset is None:
        return _apply_token(memory, Tokens(*(view.squeeze(2) for view in tokens)), gates, weights)
    writes = memory.chunk_writes(tokens, gates.write_rate, decay)
    reads, missed, weights = run_writes(writes, weights)
    return reads.squeeze(2), missed.squeeze(2), weights


def _apply_token(
    memory: ExactScalar, token: Tokens, gates: Gates, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The same for one token `[B, H, 1, ...]`, without the machinery of chunks."""
    query, key, value = token
    decayed = gates.log_retention.exp() * weights
    met = decayed if memory.objective.predicts_with == "decayed" else weights
    missed = value - key @ met.mT
    weights = decayed + (gates.write_rate * missed).mT @ key
    return query @ weights.mT, missed, weights


def _blocks(tokens: Tokens, gates: Gates, grid: Grid, mask: Tensor | None) -> Iterator[Block]:
    """The blocks of the grid, in order; masked pairs and gates are zero."""
    if mask is not None:
        valid = mask.unsqueeze(-1)
        gates = Gates(*(torch.where(valid, gate, 0.0) for gate in gates))
        valid = valid.unsqueeze(-1)
        key, value = (torch.where(valid, part, 0.0) for part in (tokens.key, tokens.value))
        tokens = Tokens(tokens.query, key, value)
    views = [grid.fold(view).movedim(3, 1) for view in tokens]
    log_retention, rate = (grid.fold(gate).movedim(3, 1) for gate in gates)
    segment = torch.zeros_like(grid.valid).long()
    if grid.reset is not None:
        segment = grid.reset.long().cumsum(-1)
    for n in range(grid.num_blocks):
        one = slice(n, n + 1)
        reset = None if grid.reset is None else grid.reset[:, None, one]
        yield Block(
            Tokens(*(view[:, :, one] for view in views)),
            Gates(log_retention[:, :, one], rate[:, :, one]),
            ChunkDecay(log_retention[:, :, one], reset),
            segment[:, n],
            grid.valid[:, n],
            grid.full[:, n],
        )
