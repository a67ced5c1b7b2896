"""The worst-predicted pairs of a segment: who is kept after every token, and what is read of them.

    kept_t = the `size` highest scores among the pairs 1 .. t of the segment, ties to the older pair

A pair is kept after token t if fewer than `size` visible pairs beat it: the running cache of a loop
over tokens is known for all tokens of a block at once, by ranks, without a loop.

Source: sparse caches ranked by the memory's own error, LoLA (arXiv 2505.23666), HOLA (arXiv
2607.02303). The choice has no gradient; what is kept has.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

EMPTY = -1.0
"""The score of an empty slot; scores of pairs are not negative."""


class Pairs(NamedTuple):
    """Keys `[B, H, n, K]`, values `[B, H, n, V]`, write rates and scores `[B, H, n]`.

    A cache is sorted: highest score first, the older of two equal ones first, empty slots last.
    """

    keys: Tensor
    values: Tensor
    rates: Tensor
    scores: Tensor


class Members(NamedTuple):
    """The R pairs of a cache and the L pairs of a block behind it, `[B, H, L, R + L]` flags.

    `visible`: pair j is of token t's segment and not later; `kept`: and in the cache after t.
    """

    visible: Tensor
    kept: Tensor


def join(cache: Pairs, block: Pairs) -> Pairs:
    """The pairs of the cache, then those of the block."""
    return Pairs(*(torch.cat(parts, dim=2) for parts in zip(cache, block, strict=True)))


def find_members(pairs: Pairs, size: int, segment: Tensor, valid: Tensor) -> Members:
    """Who is kept in a cache of `size` after every token of a block; `pairs` from `join`.

    `segment` `[B, L]` is 0 for tokens that still see the cache, `valid` `[B, L]`.
    """
    steps = valid.shape[1]
    scores = pairs.scores
    age = torch.arange(scores.shape[-1], device=scores.device)
    higher, lower = scores.unsqueeze(-1), scores.unsqueeze(-2)
    beats = (higher > lower) | ((higher == lower) & (age.unsqueeze(-1) < age))

    earlier = torch.ones(steps, steps, dtype=torch.bool, device=scores.device).tril()
    of_block = earlier & (segment.unsqueeze(2) == segment.unsqueeze(1)) & valid.unsqueeze(1)
    occupied = scores[..., :size] >= 0
    of_cache = occupied.unsqueeze(2) & (segment == 0)[:, None, :, None]
    of_block = of_block.unsqueeze(1).expand(-1, scores.shape[1], -1, -1)
    visible = torch.cat([of_cache, of_block], dim=-1)
    rank = visible.to(scores.dtype) @ beats.to(scores.dtype)
    return Members(visible, visible & (rank < size))


def find_losers(members: Members, size: int) -> Tensor:
    """`[B, H, L, R + L]`: the pair, if any, that token t pushes out of a cache of `size`.

    It may be the token's own pair, which was not good enough to enter.
    """
    visible, kept = members
    steps = kept.shape[2]
    candidates = torch.cat([visible[:, :, :1], kept[:, :, :-1]], dim=2)
    own = torch.eye(steps, dtype=torch.bool, device=kept.device)
    own = torch.nn.functional.pad(own, (size, 0))
    return visible & ~kept & (candidates | own)


def keep_worst(pairs: Pairs, kept: Tensor, size: int) -> Pairs:
    """The sorted cache of `size` pairs out of those that are `kept` `[B, H, n]`."""
    scores = torch.where(kept, pairs.scores, EMPTY)
    order = scores.argsort(dim=-1, descending=True, stable=True)[..., :size]
    scores = scores.gather(-1, order)
    occupied = scores >= 0
    slots = occupied.unsqueeze(-1)
    return Pairs(
        torch.where(slots, _take(pairs.keys, order), 0.0),
        torch.where(slots, _take(pairs.values, order), 0.0),
        torch.where(occupied, _take(pairs.rates, order), 0.0),
        scores,
    )


def _take(x: Tensor, order: Tensor) -> Tensor:
    """`x[b, h, order[b, h, i]]` along the third axis."""
    index = order.view(*order.shape, *(1,) * (x.ndim - 3))
    return x.gather(2, index.expand(*order.shape, *x.shape[3:]))
