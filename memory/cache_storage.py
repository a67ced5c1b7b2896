"""What a memory with a cache of badly predicted pairs writes into its weights, and when.

    rehearse        W_t = a_t W_{t-1} + b_t e_t k_t^T for every pair; every few tokens the cached
                    pairs are written once more, W <- W + b_j (v_j - W k_j) k_j^T, worst first
    absorb losers   W_t = a_t W_{t-1} + b_j e_j k_j^T for the pair j, if any, that the cache gives
                    up at t: what is cached is not in the weights

Sources: rehearse, HOLA (arXiv 2607.02303) with experience replay (Lin 1992); absorb losers, LoLA
(McDermott et al. 2025, arXiv 2505.23666), here scored against the weights of the last border.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from .cached_delta import Block, Storage, Stored, apply_delta, members_of
from .checks import check_at_least
from .exact import ExactScalar
from .heads import Heads
from .views import Tokens
from .worst_pairs import Pairs, find_losers, join, keep_worst


class Rehearse(Storage):
    """Writes every pair, caches the worst predicted, and rehearses these at the end of a period.

    A pair's score is its write rate times its error when it was written. Scores halve every
    `score_half_life` periods, so that the first pairs of a long life, met by empty weights, do not
    hold the cache for ever; an infinite one keeps them.
    """

    def __init__(self, heads: Heads, score_half_life: float = 16.0) -> None:
        super().__init__(heads)
        check_at_least("score_half_life", score_half_life, 1e-3)
        self.fading = 0.5 ** (1.0 / score_half_life)

    def write(
        self, memory: ExactScalar, block: Block, cache: Pairs, leaves: Mapping[str, Tensor]
    ) -> Stored:
        reads, errors, weights = apply_delta(
            memory, block.tokens, block.gates, block.decay, leaves["weights"]
        )
        pairs = join(cache, block.pairs(errors))
        return Stored(reads, weights, pairs, members_of(block, pairs))

    def close(
        self, memory: ExactScalar, block: Block, cache: Pairs, leaves: Mapping[str, Tensor]
    ) -> tuple[Pairs, dict[str, Tensor]]:
        keys, values, rates, _ = cache
        weights = leaves["weights"]
        # One delta write per slot, in order: none in empty slots, whose rate is zero.
        system = rates.unsqueeze(-2) * (keys @ keys.mT)
        missed = values - keys @ weights.mT
        errors = torch.linalg.solve_triangular(system, missed, upper=False, unitriangular=True)
        rehearsed = weights + (rates.unsqueeze(-1) * errors).mT @ keys
        full = block.full.view(-1, 1, 1)
        faded = torch.where(full & (cache.scores >= 0), self.fading * cache.scores, cache.scores)
        moved = torch.where(full.unsqueeze(-1), rehearsed, weights)
        return cache._replace(scores=faded), {"weights": moved}


class AbsorbLosers(Storage):
    """Writes only the pairs that the cache gives up, each at its own write rate.

    A pair's score is its write rate times its error under the weights of the last border, where
    all cached pairs are scored anew. A reset drops the cached pairs without writing them.
    """

    leaves = ("anchor",)

    def init_state(self, weights: Tensor) -> dict[str, Tensor]:
        """`anchor` `[B, H, V, K]`: the weights of the last border."""
        return {"anchor": weights}

    def write(
        self, memory: ExactScalar, block: Block, cache: Pairs, leaves: Mapping[str, Tensor]
    ) -> Stored:
        key, value = block.tokens.key.squeeze(2), block.tokens.value.squeeze(2)
        predicted = key @ leaves["anchor"].mT
        restarted = (block.segment > 0)[:, None, :, None]
        predicted = torch.where(restarted, key @ memory.initial_weights.mT, predicted)
        pairs = join(cache, block.pairs(value - predicted))
        members = members_of(block, pairs)

        losers = find_losers(members, cache.scores.shape[-1]).to(value.dtype)
        given_up = Tokens(
            block.tokens.query,
            (losers @ pairs.keys).unsqueeze(2),
            (losers @ pairs.values).unsqueeze(2),
        )
        rates = (losers @ pairs.rates.unsqueeze(-1)).squeeze(-1).unsqueeze(2)
        gates = block.gates._replace(write_rate=rates)
        reads, _, weights = apply_delta(memory, given_up, gates, block.decay, leaves["weights"])
        return Stored(reads, weights, pairs, members)

    def close(
        self, memory: ExactScalar, block: Block, cache: Pairs, leaves: Mapping[str, Tensor]
    ) -> tuple[Pairs, dict[str, Tensor]]:
        weights, full = leaves["weights"], block.full.view(-1, 1, 1)
        anchor = leaves["anchor"]
        restarted = (block.segment[:, -1] > 0).view(-1, 1, 1, 1)
        anchor = torch.where(restarted, memory.initial_weights, anchor)
        errors = (cache.values - cache.keys @ weights.mT).norm(dim=-1)
        occupied = cache.scores >= 0
        scores = torch.where(occupied & full, (cache.rates * errors).detach(), cache.scores)
        cache = keep_worst(cache._replace(scores=scores), scores >= 0, scores.shape[-1])
        return cache, {"anchor": torch.where(full.unsqueeze(-1), weights, anchor)}
