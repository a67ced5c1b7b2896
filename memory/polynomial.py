"""Polynomial features of queries and keys, which let a small network store more pairs.

    phi(k) = norm [k, sqrt(2 - [i = j]) k_i k_j for i <= j],   phi(q) . phi(k) = (s + s^2) / 2

with s = q . k for q and k of length 1, and phi of length 1 again. K numbers become K (K + 3) / 2.

Source: Behrouz et al. 2025 (ATLAS, arXiv 2505.23735), degree 2, with weights that make the
products of features a polynomial of s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from .heads import Heads
from .normalise import l2_normalise
from .views import Tokens, TokenViews, Views


def quadratic(x: Tensor) -> Tensor:
    """All x_i and x_i x_j, i <= j: `[..., d]` to `[..., d (d + 3) / 2]`."""
    size = x.shape[-1]
    first, second = torch.triu_indices(size, size, device=x.device)
    weight = torch.where(first == second, 1.0, math.sqrt(2.0)).to(x.dtype)
    return torch.cat([x, x[..., first] * x[..., second] * weight], dim=-1)


def _features(key: Tensor) -> Tensor:
    return l2_normalise(quadratic(key))


class Polynomial(TokenViews):
    """The tokens of `views`, queries and keys mapped to their normalised features of degree 2.

    The views should normalise keys: the two degrees then weigh the same.
    """

    def __init__(self, heads: Heads, views: Callable[[Heads], TokenViews] = Views) -> None:
        super().__init__(heads)
        self.views = views(heads)
        self.num_features = self.views.num_features
        size = self.views.token_heads.key_width
        self.token_heads = replace(self.views.token_heads, key_width=size * (size + 3) // 2)

    def init_projection(self, weight: Tensor) -> None:
        self.views.init_projection(weight)

    def lengthened(self, key: Tensor) -> Tensor:
        return _features(self.views.lengthened(key))

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """The leaves of `views`."""
        return self.views.init_state(batch)

    def forward(
        self,
        features: Tensor,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tokens, dict[str, Tensor]]:
        tokens, next_state = self.views(features, state, reset, mask)
        # Queries come scaled by the width of the keys that they were made with.
        query = _features(tokens.query * self.views.token_heads.key_width**0.5)
        key = _features(tokens.key)
        query = query * self.token_heads.key_width**-0.5
        return Tokens(query, key, tokens.value), next_state
