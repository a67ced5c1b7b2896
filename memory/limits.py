"""Limits that keep the online training of a nonlinear memory inside its stable region.

A step of rate b on token t moves its prediction by b G_t e_t with the gain

    G_t = |g_t|^2 / |e_t|^2 = sum_l |errors_l|^2 |inputs_l|^2 / |errors_last|^2

and C equal tokens at one anchor by C b G_t e_t: above 2 the error grows. The gain of a network
rises with its own weights, so that unlimited memories run away. Ours; an infinite limit is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from .fast_net import Factors

TINY = 1e-12  # squared errors below have no gain


def shorten(error: Tensor, longest: float) -> Tensor:
    """Errors `[..., V]` no longer than `longest`: the gradient of a Huber loss of the norm."""
    if math.isinf(longest):
        return error
    squared = error.square().sum(-1, keepdim=True)
    return error * (longest * torch.rsqrt(squared.clamp(min=longest**2)))


class GainLimit(nn.Module):
    """Scales gradients whose gain exceeds `largest`.

    The norm of a `residual_layer_norm` is not counted: it limits the steps by itself.
    """

    def __init__(self, largest: float) -> None:
        super().__init__()
        if not largest > 0:
            raise ValueError(f"largest_gain must be above 0, got {largest}; use 1.0")
        self.largest = largest

    def forward(self, factors: Mapping[str, Factors]) -> dict[str, Factors]:
        """The gradients `[B, H, n, ...]` of all layers."""
        if math.isinf(self.largest):
            return dict(factors)
        gain = squared_norms(factors) / _squared(factors["last"].errors).clamp(min=TINY)
        scale = self.largest / gain.clamp(min=self.largest)
        return {
            layer: Factors(errors * scale, inputs) for layer, (errors, inputs) in factors.items()
        }


def squared_norms(factors: Mapping[str, Factors]) -> Tensor:
    """`[B, H, n, 1]`: of the gradients of all layers together."""
    squared = [_squared(errors) * _squared(inputs) for errors, inputs in factors.values()]
    return torch.stack(squared).sum(0)


def _squared(x: Tensor) -> Tensor:
    return x.square().sum(-1, keepdim=True)
