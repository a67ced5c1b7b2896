"""Rotary position embedding: a rotation by position, so that q_t . k_j depends on t - j.

Source: Su et al. 2021 (RoFormer).
"""

from __future__ import annotations

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    """Rotate `x` `[B, T, H, d]`, d even, to integer `positions` `[B, T]`.

    Angles are formed in float64: a float32 angle is off by a radian after some ten million tokens.
    """
    half = x.shape[-1] // 2
    exponents = torch.arange(half, device=x.device, dtype=torch.float64) / half
    angles = positions.unsqueeze(-1) * base**-exponents
    cos = angles.cos().to(x.dtype).unsqueeze(2)
    sin = angles.sin().to(x.dtype).unsqueeze(2)
    first, second = torch.split(x, half, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
