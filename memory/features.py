"""Feature maps and normalisations of queries, keys and values.

Sources: elu + 1, Katharopoulos et al. 2020; SiLU with L2-normalised keys, Yang et al. 2024
(DeltaNet).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional


def identity(x: Tensor) -> Tensor:
    """The map that changes nothing."""
    return x


def elu_plus_one(x: Tensor) -> Tensor:
    """A positive feature map, exp(x) below zero and x + 1 above."""
    return functional.elu(x) + 1.0


def l2_normalise(x: Tensor, epsilon: float = 1e-6) -> Tensor:
    """`x` with unit norm along its last axis; zero stays zero, with a finite gradient."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + epsilon)


FEATURE_MAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": identity,
    "silu": functional.silu,
    "relu": functional.relu,
    "elu_plus_one": elu_plus_one,
}
"""Elementwise maps by name."""


KEY_NORMS: dict[str, Callable[[Tensor], Tensor]] = {"none": identity, "l2": l2_normalise}
"""Normalisations of queries and keys by name."""
