"""Rotary positions: a rotation by position, so that q_t . k_j depends on t - j.

    pair n of the channels of a key of width K turns by  w_n = 10000^(-2n / K)    rotary
                                                         w_n = (2n + 1) pi / K    even

per token. Angles of the published embedding spread over four decades, so that places near each
other share most of their key. Evenly spread ones are those of a discrete Fourier basis: K places in
a row are orthogonal for a key that has every pair at equal length, and a delta rule that writes
such keys is a ring of the last K tokens; the place K tokens later is the same with the other sign.

Source: Su et al. 2021 (RoFormer); the even angles are ours.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

BASE = 10_000.0
ANGLES = ("rotary", "even")


def rotate(x: Tensor, positions: Tensor, angles: str = "rotary") -> Tensor:
    """Rotate `x` `[B, T, H, K]`, K even, to `positions` `[B, T]` by one of `ANGLES`.

    Angles are formed in float64: a float32 angle is off by a radian after some ten million tokens.
    """
    half = x.shape[-1] // 2
    pairs = torch.arange(half, device=x.device, dtype=torch.float64)
    turns = (pairs + 0.5) * (math.pi / half) if angles == "even" else BASE ** -(pairs / half)
    angle = positions.unsqueeze(-1) * turns
    cos = angle.cos().to(x.dtype).unsqueeze(2)
    sin = angle.sin().to(x.dtype).unsqueeze(2)
    first, second = torch.split(x, half, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
