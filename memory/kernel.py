"""Kernel regression on the visible keys and values, with a learned Gaussian kernel per head.

    kappa(a, b) = exp(-|a - b|^2 / 2 h^2)
    Nadaraya-Watson   o = sum_j kappa(q, k_j) v_j / sum_j kappa(q, k_j)
    kernel ridge      o = kappa(q, K) (kappa(K, K) + lambda I)^{-1} V

For keys and queries of length 1 the first is softmax attention with scores q . k / h^2, and the
second uses exp(q . k / h^2) up to a factor in lambda. h -> 0 gives the nearest neighbour's value.

Sources: Nadaraya 1964, Watson 1964; Saunders, Gammerman & Vovk 1998 (kernel ridge regression).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from .cache import Entries
from .checks import check_at_least
from .estimator import Estimator, weighted_mean
from .heads import Heads, Piece
from .window import take

SMALLEST_BANDWIDTH = 0.05
"""Below it float32 distances between equal keys of length 1 are too noisy for the ridge."""
SMALLEST_RIDGE = 1e-3
"""Repeated keys make the kernel matrix singular; the ridge keeps its factor finite in float32."""


class GaussianKernel(Piece):
    """The logarithm of kappa, with one learned bandwidth h per head that starts at `bandwidth`."""

    def __init__(self, heads: Heads, bandwidth: float = 0.5) -> None:
        super().__init__(heads)
        check_at_least("bandwidth", bandwidth, 2 * SMALLEST_BANDWIDTH)
        self.free_bandwidth = _positive_parameter(heads, bandwidth - SMALLEST_BANDWIDTH)

    def bandwidths(self) -> Tensor:
        """`[H]`: h, in units of keys."""
        return SMALLEST_BANDWIDTH + functional.softplus(self.free_bandwidth)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """`[B, H, ..., i, j]` <= 0 of vectors `[B, H, ..., i, K]` and `[B, H, ..., j, K]`."""
        lengths = left.square().sum(-1).unsqueeze(-1) + right.square().sum(-1).unsqueeze(-2)
        # Rounding may leave the distance of equal vectors negative.
        distances = torch.clamp(lengths - 2.0 * left @ right.mT, min=0.0)
        bandwidths = self.bandwidths().view(-1, *(1,) * (distances.ndim - 2))
        return -0.5 * distances / bandwidths.square()


class NadarayaWatson(Estimator):
    """The mean of the visible values, weighted by the kernel at the query."""

    def __init__(self, heads: Heads, bandwidth: float = 0.5) -> None:
        super().__init__(heads)
        self.kernel = GaussianKernel(heads, bandwidth)

    def forward(self, query: Tensor, entries: Entries) -> Tensor:
        query = self.unscale(query).transpose(1, 2)
        scores = self.kernel(query, entries.keys.transpose(1, 2))
        return weighted_mean(scores, entries.visible.unsqueeze(1), entries.values)


class KernelRidge(Estimator):
    """Ridge regression in the kernel's space: fits the visible pairs and interpolates between them.

    Solves one system of as many unknowns as a token sees pairs: meant for short windows. `ridge`
    is the initial lambda of every head, learned and at least `SMALLEST_RIDGE`. The bounds on
    lambda and h assume keys of length 1 (`key_norm: l2`).
    """

    def __init__(self, heads: Heads, bandwidth: float = 0.5, ridge: float = 0.1) -> None:
        super().__init__(heads)
        check_at_least("ridge", ridge, 2 * SMALLEST_RIDGE)
        self.kernel = GaussianKernel(heads, bandwidth)
        self.free_ridge = _positive_parameter(heads, ridge - SMALLEST_RIDGE)

    def ridges(self) -> Tensor:
        """`[H]`: lambda, against kernel values of at most 1."""
        return SMALLEST_RIDGE + functional.softplus(self.free_ridge)

    def forward(self, query: Tensor, entries: Entries) -> Tensor:
        keys, values, seen = seen_by_each(entries)
        at_query = self.kernel(self.unscale(query).transpose(1, 2).unsqueeze(3), keys).exp()
        at_query = at_query * seen.unsqueeze(-2)

        pairs = seen.unsqueeze(-1) & seen.unsqueeze(-2)
        kernel_matrix = self.kernel(keys, keys).exp().masked_fill(~pairs, 0.0)
        ridge = torch.where(seen, self.ridges().view(-1, 1, 1), 1.0)
        factor = torch.linalg.cholesky_ex(kernel_matrix + torch.diag_embed(ridge)).L
        weights = torch.cholesky_solve(at_query.mT, factor)
        return (weights.mT @ values).squeeze(3).transpose(1, 2)


def seen_by_each(entries: Entries) -> tuple[Tensor, Tensor, Tensor]:
    """The visible entries of every token: keys `[B, H, T, m, K]`, values, seen `[B, 1, T, m]`.

    m is `entries.most`; slots that are not `seen` hold entries that the token does not see.
    """
    batch, steps, size = entries.visible.shape
    most = min(entries.most, size)
    rank = entries.visible.long().cumsum(-1)
    slot = torch.where(entries.visible, rank - 1, most)
    index = torch.arange(size, device=slot.device).expand_as(slot)
    sources = slot.new_zeros(batch, steps, most + 1).scatter(-1, slot, index)[..., :most]
    seen = torch.arange(most, device=slot.device) < rank[..., -1:]
    keys, values = (
        torch.unflatten(take(cells, sources.flatten(1)), 1, (steps, most)).movedim(3, 1)
        for cells in (entries.keys, entries.values)
    )
    return keys, values, seen.unsqueeze(1)


def _positive_parameter(heads: Heads, value: float) -> nn.Parameter:
    """`[H]`, whose softplus is `value`."""
    return nn.Parameter(torch.full((heads.num_heads,), math.log(math.expm1(value))))
