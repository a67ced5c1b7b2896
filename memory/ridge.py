"""A normalised least-mean-squares step: divided by the energy of what it fits, with a ridge.

    W_t = (1 - n_t r_t) W_{t-1} + n_t sum_j (v_j - W_{t-1} k_j) k_j^T,   n_t = b_t / (E_t + r_t)

E_t is the sum of |k_j|^2 over the pairs that the step fits, so that no b_t <= 1 overshoots.

Source: the Falcon family, arXiv 2608.27763.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from .gates import Gate, WriteRate, spread_half_lives
from .heads import Heads
from .rule import Gates, Rule
from .views import Tokens

SMALLEST_ENERGY = 1e-6  # added to the divisor
LARGEST_FORGOTTEN = 1.0 - 1e-6  # short of one, where the logarithm and its gradient end


class RidgeGates(NamedTuple):
    """The rate b and the ridge r >= 0 of every token and head, `[B, T, H]`, not yet normalised."""

    write_rate: Tensor
    ridge: Tensor


def normalise_step(gates: RidgeGates, energy: Tensor) -> Gates:
    """Retention 1 - n r and rate n = b / (`energy` + r); no energy, nothing to fit or forget."""
    rate = gates.write_rate / (energy + gates.ridge + SMALLEST_ENERGY)
    forgotten = torch.where(energy > 0, rate * gates.ridge, 0.0)
    return Gates(torch.log1p(-forgotten.clamp(max=LARGEST_FORGOTTEN)), rate)


class RidgeStep(Rule):
    """The learned, input-dependent rate and ridge of a step that is normalised later.

    The ridge starts at half-lives log-spaced over the heads, for pairs whose energy is 1. Raises
    ValueError when the write rate is too small to forget that fast.
    """

    gates = RidgeGates

    def __init__(
        self,
        heads: Heads,
        write_rate: Callable[[Heads], Gate] = WriteRate,
        shortest: float = 16.0,
        longest: float = 128.0,
    ) -> None:
        super().__init__(heads)
        if heads.writes_per_token > 1:
            raise ValueError(
                f"a normalised step makes one write per token, got writes_per_token "
                f"{heads.writes_per_token}; use 1"
            )
        self.write_rate = write_rate(heads)
        self.sizes = [self.write_rate.num_features, heads.num_heads]
        self.num_features = sum(self.sizes)
        forgotten = 1.0 - 0.5 ** (1.0 / spread_half_lives(heads.num_heads, shortest, longest))
        with torch.no_grad():
            rate = self.write_rate(torch.zeros(1, 1, self.sizes[0]))[0, 0]
        if not (forgotten < rate).all():
            nearest = math.ceil(math.log(0.5) / math.log1p(-0.9 * float(rate.min())))
            raise ValueError(
                f"shortest half-life must be longer for write rate {float(rate.min()):.3g}, "
                f"got {shortest}; use {nearest}"
            )
        ridge = forgotten / (rate - forgotten)
        self.ridge_bias = nn.Parameter(torch.log(torch.expm1(ridge)))

    def init_projection(self, weight: Tensor) -> None:
        rate, ridge = torch.split(weight, self.sizes)
        self.write_rate.init_projection(rate)
        nn.init.normal_(ridge, std=0.02)

    def forward(self, features: Tensor, tokens: Tokens) -> RidgeGates:
        for_rate, for_ridge = torch.split(features, self.sizes, dim=-1)
        ridge = functional.softplus(for_ridge + self.ridge_bias)
        return RidgeGates(self.write_rate(for_rate), ridge)
