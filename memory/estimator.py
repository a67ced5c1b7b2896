"""How attention reads a value at a query from the visible keys and values.

    softmax   o = sum_j softmax_j(s_j) v_j,   s_j = q . k_j   (q scaled by key_width^(-1/2))
    top k     the same over the k highest s_j only

Sources: Vaswani et al. 2017; Gupta et al. 2021 (top-k attention).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from .cache import Entries
from .checks import check_at_least
from .heads import Heads, Piece


class Estimator(Piece, ABC):
    """A regression of values on keys; a query that sees nothing reads zero."""

    @abstractmethod
    def forward(self, query: Tensor, entries: Entries) -> Tensor:
        """Reads `[B, T, H, V]` of queries `[B, T, H, K]`, scaled by `key_width^(-1/2)`."""

    def unscale(self, query: Tensor) -> Tensor:
        """The query before the factor `key_width^(-1/2)`, for estimators that measure distances."""
        return query * math.sqrt(self.heads.key_width)


class Softmax(Estimator):
    """The mean of the visible values, weighted by exp(q . k)."""

    def forward(self, query: Tensor, entries: Entries) -> Tensor:
        visible = entries.visible.unsqueeze(1)
        return weighted_mean(dot_products(query, entries), visible, entries.values)


class TopK(Estimator):
    """Softmax over the `count` visible keys that fit the query best; the others weigh nothing.

    Keys that tie with the last of them are kept too: which of two equal keys is dropped would
    depend on rounding. The choice itself has no gradient.
    """

    def __init__(self, heads: Heads, count: int = 8) -> None:
        super().__init__(heads)
        check_at_least("count", count, 1)
        self.count = count

    def forward(self, query: Tensor, entries: Entries) -> Tensor:
        scores = dot_products(query, entries)
        chosen = entries.visible.unsqueeze(1)
        if self.count < entries.most:
            ranked = scores.detach().masked_fill(~chosen, -torch.inf)
            last = ranked.topk(self.count, dim=-1).values[..., -1:]
            chosen = chosen & (ranked >= last - 1e-6 * (1.0 + last.abs()))
        return weighted_mean(scores, chosen, entries.values)


def dot_products(query: Tensor, entries: Entries) -> Tensor:
    """`[B, H, T, n]`: every query with every key."""
    return torch.einsum("bthk,bnhk->bhtn", query, entries.keys)


def weighted_mean(scores: Tensor, chosen: Tensor, values: Tensor) -> Tensor:
    """`[B, T, H, V]`: values `[B, n, H, V]` by the softmax of scores `[B, H, T, n]` where chosen.

    `chosen` broadcasts against the scores; zero where nothing is chosen.
    """
    # A finite filler: a row of -inf would turn into NaN.
    weights = scores.masked_fill(~chosen, -1e30).softmax(-1).masked_fill(~chosen, 0.0)
    return torch.einsum("bhtn,bnhv->bthv", weights, values)
