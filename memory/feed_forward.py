"""The two-layer network applied to every token by itself."""

from __future__ import annotations

from torch import nn

from .checks import check_at_least


def feed_forward(width: int, ratio: float) -> nn.Sequential:
    """`width -> ratio * width -> width` with SiLU between."""
    check_at_least("mlp_ratio", ratio, 1 / width)
    hidden = round(ratio * width)
    return nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, width))
