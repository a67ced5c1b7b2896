"""Gates: how much of the memory each head keeps, and how strongly it writes.

    log a_t = -softplus(w . x_t + b_h),   b_h = softplus^{-1}(ln 2 / half-life_h)
    beta_t  = sigmoid(w . x_t + b)

Sources: softplus retention, Gu & Dao 2023 (Mamba), Yang et al. 2024 (Gated DeltaNet). Initialising
by half-life is ours: language-model initialisations forget within about ten tokens.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

from .checks import check_at_least
from .heads import Heads, Piece


class Gate(Piece, ABC):
    """One number per token and head: features `[B, T, num_features]` to `[B, T, H]`."""

    def init_projection(self, weight: Tensor) -> None:
        """Small weights: at first the gate is its bias, nearly the same for every token."""
        if weight.numel():
            nn.init.normal_(weight, std=0.02)

    @abstractmethod
    def forward(self, features: Tensor) -> Tensor:
        """The gate of every token and head, `[B, T, H]`."""


def spread_half_lives(num_heads: int, shortest: float, longest: float) -> Tensor:
    """`[H]` half-lives in tokens, log-spaced; a single one is the geometric mean of both ends."""
    check_at_least("shortest half-life", shortest, 1e-3)
    check_at_least("longest half-life", longest, shortest)
    fractions = torch.linspace(0, 1, num_heads) if num_heads > 1 else torch.tensor([0.5])
    return shortest * (longest / shortest) ** fractions


class RetentionGate(Gate):
    """Log retention <= 0, learned and input-dependent; half-lives log-spaced over the heads.

    A single head starts at the geometric mean of `shortest` and `longest`, both in tokens.
    """

    def __init__(self, heads: Heads, shortest: float = 16.0, longest: float = 128.0) -> None:
        super().__init__(heads)
        self.num_features = heads.num_heads
        half_lives = spread_half_lives(heads.num_heads, shortest, longest)
        self.bias = nn.Parameter(torch.log(torch.expm1(math.log(2) / half_lives)))

    def forward(self, features: Tensor) -> Tensor:
        return -functional.softplus(features + self.bias)

    def half_lives(self) -> Tensor:
        """`[H]`: tokens after which half of a write is left, where the input says nothing."""
        return math.log(2) / functional.softplus(self.bias)


class FixedRetention(Gate):
    """The same log retention for every token, not learned; half-lives log-spaced over the heads."""

    log_retention: Tensor

    def __init__(self, heads: Heads, shortest: float = 16.0, longest: float = 128.0) -> None:
        super().__init__(heads)
        half_lives = spread_half_lives(heads.num_heads, shortest, longest)
        self.register_buffer("log_retention", -math.log(2) / half_lives)

    def forward(self, features: Tensor) -> Tensor:
        return self.log_retention.to(features.dtype).expand(*features.shape[:2], -1)


class NoDecay(Gate):
    """Log retention 0: nothing is forgotten except by overwriting."""

    def forward(self, features: Tensor) -> Tensor:
        return features.new_zeros(*features.shape[:2], self.heads.num_heads)


class WriteRate(Gate):
    """Learned, input-dependent write rate in (0, `largest`); `largest` * sigmoid(`bias`) at first.

    Above 1 a delta rule overshoots (negative eigenvalues); above 2 it diverges.
    """

    def __init__(self, heads: Heads, bias: float = 0.0, largest: float = 1.0) -> None:
        super().__init__(heads)
        if not 0 < largest <= 2:
            raise ValueError(f"largest write rate must be in (0, 2], got {largest}; use 1 or 2")
        self.num_features = heads.num_heads
        self.largest = largest
        self.bias = nn.Parameter(torch.full((heads.num_heads,), float(bias)))

    def forward(self, features: Tensor) -> Tensor:
        return self.largest * torch.sigmoid(features + self.bias)


class ConstantRate(Gate):
    """The same write rate for every token and head."""

    def __init__(self, heads: Heads, rate: float = 1.0) -> None:
        super().__init__(heads)
        if not 0 < rate <= 2:
            raise ValueError(f"constant write rate must be in (0, 2], got {rate}; use 1")
        self.rate = rate

    def forward(self, features: Tensor) -> Tensor:
        return features.new_full((*features.shape[:2], self.heads.num_heads), self.rate)
