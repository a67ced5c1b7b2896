"""Vectors brought to a given length, along their last axis.

    y = length * x / sqrt(|x|^2 + epsilon),   dx = (length dy - y (y . dy) / length) / sqrt(...)

Source: L2-normalised keys, Yang et al. 2024 (DeltaNet); the same with length sqrt(d) is the RMS
norm of Zhang & Sennrich 2019.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .transforms import gradients_by_hand


def with_length(x: Tensor, length: float, epsilon: float) -> Tensor:
    """`x` `[..., d]` with norm `length`; zero stays zero, with a finite gradient."""
    if not gradients_by_hand():
        return _normalise(x, length, epsilon)[0]
    y: Tensor = _WithLength.apply(x, length, epsilon)[0]  # type: ignore[no-untyped-call]
    return y


def l2_normalise(x: Tensor) -> Tensor:
    """`x` with unit norm."""
    return with_length(x, 1.0, 1e-6)


def rms_normalise(x: Tensor) -> Tensor:
    """`x` with mean square one."""
    size = x.shape[-1]
    return with_length(x, math.sqrt(size), 1e-5 * size)


def _normalise(x: Tensor, length: float, epsilon: float) -> tuple[Tensor, Tensor]:
    scale = length * torch.rsqrt(x.square().sum(-1, keepdim=True) + epsilon)
    return x * scale, scale


class _WithLength(torch.autograd.Function):
    """Differentiable again, with two thirds of the passes over memory of autograd's own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, length: float, epsilon: float) -> tuple[Tensor, Tensor]:
        y, scale = _normalise(x, length, epsilon)
        ctx.length = length
        ctx.save_for_backward(y, scale)
        return y, scale

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        y, scale = ctx.saved_tensors
        for_y, for_scale = gradients
        along = (for_y * y).sum(-1, keepdim=True) + for_scale * scale
        return scale * torch.addcmul(for_y, along, y, value=-(ctx.length**-2)), None, None
