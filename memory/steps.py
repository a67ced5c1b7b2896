"""Rules beyond the plain gradient step: how far and with what memory of past steps weights move.

    momentum     M_t = mu_t M_{t-1} + b_t e_t k_t^T,   W_t = a_t W_{t-1} + p_t M_t
    implicit     b_t -> b_t / (1 + b_t |k_t|^2)
    normalised   b_t -> n_t = b_t / (|k_t|^2 + r_t),   a_t = 1 - n_t r_t
    selective    b_t = dt_t,   a_t = exp(-A_h dt_t),   dt_t = softplus(w . x_t + b_h)

Sources: Behrouz et al. 2024 (Titans); Liu et al. 2024 (Longhorn); Falcon, arXiv 2608.27763, a
normalised least-mean-squares step with ridge r; Dao & Gu 2024 (Mamba-2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from .checks import check_at_least
from .gates import ConstantRate, Gate, NoDecay, RetentionGate, WriteRate, spread_half_lives
from .heads import Heads
from .ridge import RidgeStep, normalise_step
from .rule import Gates, GradientStep, Rule
from .views import Tokens


class MomentumGates(NamedTuple):
    """Per token and head, `[B, T, H]`: log retention, write rate, log momentum (<= 0) and gain."""

    log_retention: Tensor
    write_rate: Tensor
    log_momentum: Tensor
    gain: Tensor


class MomentumStep(Rule):
    """One step of gradient descent with momentum per token.

    `momentum` is the log retention of past steps, `gain` what of them is added to the weights. A
    write of rate b moves the weights by b * gain / (1 - momentum) in the end: start below 1.
    """

    gates = MomentumGates

    def __init__(
        self,
        heads: Heads,
        retention: Callable[[Heads], Gate] = RetentionGate,
        write_rate: Callable[[Heads], Gate] = WriteRate,
        momentum: Callable[[Heads], Gate] = RetentionGate,
        gain: Callable[[Heads], Gate] = ConstantRate,
    ) -> None:
        super().__init__(heads)
        self.step = GradientStep(heads, retention, write_rate)
        self.momentum = momentum(heads)
        self.gain = gain(heads)
        self.sizes = [
            self.step.num_features,
            self.momentum.num_features,
            self.gain.num_features,
        ]
        self.num_features = sum(self.sizes)

    def init_projection(self, weight: Tensor) -> None:
        step, momentum, gain = torch.split(weight, self.sizes)
        self.step.init_projection(step)
        self.momentum.init_projection(momentum)
        self.gain.init_projection(gain)

    def forward(self, features: Tensor, tokens: Tokens) -> MomentumGates:
        step, momentum, gain = torch.split(features, self.sizes, dim=-1)
        log_retention, rate = self.step(step, tokens)
        return MomentumGates(log_retention, rate, self.momentum(momentum), self.gain(gain))


class ImplicitStep(Rule):
    """The exact minimiser of |W - W_old|^2 + b |W k - v|^2: never overshoots, whatever the key.

    The squared error must be taken at the decayed weights.
    """

    def __init__(
        self,
        heads: Heads,
        retention: Callable[[Heads], Gate] = NoDecay,
        write_rate: Callable[[Heads], Gate] = WriteRate,
    ) -> None:
        super().__init__(heads)
        self.step = GradientStep(heads, retention, write_rate)
        self.forgets = self.step.forgets
        self.num_features = self.step.num_features

    def init_projection(self, weight: Tensor) -> None:
        self.step.init_projection(weight)

    def forward(self, features: Tensor, tokens: Tokens) -> Gates:
        log_retention, rate = self.step(features, tokens)
        return Gates(log_retention, rate / (1.0 + rate * tokens.key.square().sum(-1)))


class NormalisedStep(Rule):
    """A step normalised by the key's energy, with a learned, input-dependent ridge that forgets.

    A token whose key is zero holds no pair: it neither writes nor forgets. Any other key that is
    short beside the ridge forgets at the full write rate, so keys should be normalised. The ridge
    starts at half-lives log-spaced over the heads, for keys of unit length.
    """

    def __init__(
        self,
        heads: Heads,
        write_rate: Callable[[Heads], Gate] = WriteRate,
        shortest: float = 16.0,
        longest: float = 128.0,
    ) -> None:
        super().__init__(heads)
        self.step = RidgeStep(heads, write_rate, shortest, longest)
        self.num_features = self.step.num_features

    def init_projection(self, weight: Tensor) -> None:
        self.step.init_projection(weight)

    def forward(self, features: Tensor, tokens: Tokens) -> Gates:
        return normalise_step(self.step(features, tokens), tokens.key.square().sum(-1))


class SelectiveStep(Rule):
    """One learned, input-dependent time step that both writes and forgets.

    It starts at `time_step`, with half-lives log-spaced over the heads; `largest` bounds it.
    """

    def __init__(
        self,
        heads: Heads,
        time_step: float = 0.1,
        shortest: float = 16.0,
        longest: float = 128.0,
        largest: float = 10.0,
    ) -> None:
        super().__init__(heads)
        check_at_least("time_step", time_step, 1e-4)
        check_at_least("largest time step", largest, time_step)
        self.largest = largest
        self.num_features = heads.num_heads
        half_lives = spread_half_lives(heads.num_heads, shortest, longest)
        self.log_rate = nn.Parameter(torch.log(math.log(2) / (half_lives * time_step)))
        self.bias = nn.Parameter(torch.full((heads.num_heads,), math.log(math.expm1(time_step))))

    def init_projection(self, weight: Tensor) -> None:
        nn.init.normal_(weight, std=0.02)

    def forward(self, features: Tensor, tokens: Tokens) -> Gates:
        time_step = functional.softplus(features + self.bias).clamp(max=self.largest)
        return Gates(-self.log_rate.exp() * time_step, time_step)
