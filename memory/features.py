"""Feature maps and normalisations of queries, keys and values.

Sources: elu + 1, Katharopoulos et al. 2020; SiLU with L2-normalised keys, Yang et al. 2024
(DeltaNet); DPFP, Schlag et al. 2021; Taylor, Zhang et al. 2024 (Hedgehog) and Arora et al. 2024
(Based); Hedgehog, Zhang et al. 2024, its linear map being the projection of queries and keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from .normalise import l2_normalise


def identity(x: Tensor) -> Tensor:
    """The map that changes nothing."""
    return x


def elu_plus_one(x: Tensor) -> Tensor:
    """A positive feature map, exp(x) below zero and x + 1 above."""
    return functional.elu(x) + 1.0


def dpfp(x: Tensor, num_shifts: int = 1) -> Tensor:
    """Products of r = [relu(x), relu(-x)] with its rolls: `[..., d]` to `[..., 2 num_shifts d]`."""
    rectified = torch.cat([functional.relu(x), functional.relu(-x)], dim=-1)
    rolled = [rectified * rectified.roll(shift, -1) for shift in range(1, num_shifts + 1)]
    return torch.cat(rolled, dim=-1)


def taylor(x: Tensor) -> Tensor:
    """phi(q) . phi(k) = 1 + s + s^2 / 2 with s = q . k / sqrt(d): the series of exp(s)."""
    size = x.shape[-1]
    x = x * size**-0.25
    first, second = torch.triu_indices(size, size, device=x.device)
    # Products of different entries stand for two terms of s^2, squares for one.
    weight = torch.where(first == second, math.sqrt(0.5), 1.0).to(x.dtype)
    return torch.cat([torch.ones_like(x[..., :1]), x, x[..., first] * x[..., second] * weight], -1)


def hedgehog(x: Tensor) -> Tensor:
    """A positive map with spikes, softmax([x, -x]): `[..., d]` to `[..., 2 d]`."""
    return torch.cat([x, -x], dim=-1).softmax(-1)


class Expansion(NamedTuple):
    """A feature map that makes vectors longer: `width` gives the new size from the old one."""

    map: Callable[[Tensor], Tensor]
    width: Callable[[int], int]


FEATURE_MAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": identity,
    "silu": functional.silu,
    "relu": functional.relu,
    "elu_plus_one": elu_plus_one,
}
"""Elementwise maps by name."""


EXPANSIONS: dict[str, Expansion] = {
    "dpfp": Expansion(dpfp, lambda size: 2 * size),
    "dpfp2": Expansion(partial(dpfp, num_shifts=2), lambda size: 4 * size),
    "dpfp3": Expansion(partial(dpfp, num_shifts=3), lambda size: 6 * size),
    "taylor": Expansion(taylor, lambda size: 1 + size + size * (size + 1) // 2),
    "hedgehog": Expansion(hedgehog, lambda size: 2 * size),
}
"""Maps of queries and keys to longer vectors, by name."""


KEY_NORMS: dict[str, Callable[[Tensor], Tensor]] = {"none": identity, "l2": l2_normalise}
"""Normalisations of queries and keys by name."""
