"""Gates with one number per channel of a head's key or value.

    log a_c = -softplus(w_c . x + b_c),   b_c from a half-life in tokens
    log a_c = -s sigmoid(w_c . x + b_c),  s = e^(-1/2): never below 0.545
    rate_c  = sigmoid(w_c . x + b_c)

Sources: Yang et al. 2023 (GLA); Peng et al. 2025 (RWKV-7, the bounded retention). The papers
project through a low rank, here through the memory's one full-rank projection.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from .checks import check_at_least, check_choice
from .heads import Heads, Piece

LARGEST_BOUNDED_LOG = math.exp(-0.5)
"""-log of the smallest retention of the bounded gate."""


class ChannelGate(Piece):
    """One number per token, head and channel: features `[B, T, H width]` to `[B, T, H, width]`."""

    def __init__(self, heads: Heads, bias: Tensor) -> None:
        super().__init__(heads)
        self.bias = nn.Parameter(bias)
        self.num_features = bias.numel()

    def init_projection(self, weight: Tensor) -> None:
        """Small weights: at first the gate is its bias, nearly the same for every token."""
        nn.init.normal_(weight, std=0.02)

    def logits(self, features: Tensor) -> Tensor:
        """What the gate squashes, `[B, T, H, width]`."""
        return torch.unflatten(features, -1, self.bias.shape) + self.bias


class ChannelRetention(ChannelGate):
    """Log retention <= 0 per key channel; half-lives log-spaced over the channels of all heads.

    The channels of one head lie next to each other, so that a key fades nearly as a whole.
    """

    def __init__(self, heads: Heads, shortest: float = 16.0, longest: float = 128.0) -> None:
        half_lives = spread_half_lives(heads, shortest, longest)
        super().__init__(heads, torch.log(torch.expm1(math.log(2) / half_lives)))

    def forward(self, features: Tensor) -> Tensor:
        return -functional.softplus(self.logits(features))

    def half_lives(self) -> Tensor:
        """`[H, K]`: tokens after which half of a write is left, where the input says nothing."""
        return math.log(2) / functional.softplus(self.bias)


class BoundedRetention(ChannelGate):
    """Log retention in (-e^(-1/2), 0) per key channel: no token can clear the memory."""

    def __init__(self, heads: Heads, shortest: float = 16.0, longest: float = 128.0) -> None:
        check_at_least("shortest half-life", shortest, 1.5)
        fraction = math.log(2) / spread_half_lives(heads, shortest, longest) / LARGEST_BOUNDED_LOG
        super().__init__(heads, torch.logit(fraction))

    def forward(self, features: Tensor) -> Tensor:
        return -LARGEST_BOUNDED_LOG * torch.sigmoid(self.logits(features))

    def half_lives(self) -> Tensor:
        """`[H, K]`: tokens after which half of a write is left, where the input says nothing."""
        return math.log(2) / (LARGEST_BOUNDED_LOG * torch.sigmoid(self.bias))


class ChannelRate(ChannelGate):
    """A rate in (0, 1) per channel of the `key` or the `value`; sigmoid(`bias`) at first."""

    def __init__(self, heads: Heads, channels: str, bias: float = 0.0) -> None:
        check_choice("channels", channels, ("key", "value"))
        width = heads.key_width if channels == "key" else heads.value_width
        super().__init__(heads, torch.full((heads.num_heads, width), float(bias)))

    def forward(self, features: Tensor) -> Tensor:
        return torch.sigmoid(self.logits(features))


def spread_half_lives(heads: Heads, shortest: float, longest: float) -> Tensor:
    """`[H, K]` half-lives in tokens, log-spaced; a lone channel gets the geometric mean."""
    check_at_least("shortest half-life", shortest, 1e-3)
    check_at_least("longest half-life", longest, shortest)
    count = heads.num_heads * heads.key_width
    fractions = torch.linspace(0, 1, count) if count > 1 else torch.tensor([0.5])
    return (shortest * (longest / shortest) ** fractions).view(heads.num_heads, heads.key_width)
