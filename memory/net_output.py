"""From the last layer of a fast network to its prediction, and the gradient back.

    plain                  y = z
    residual               y = x + z
    residual_layer_norm    y = x + g * (z - mean z) / std z + b

Sources: residual and norm, Sun et al. 2024 (TTT). With the norm the prediction cannot run away:
the gradient shrinks as z grows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from .heads import Heads, Piece

EPSILON = 1e-6


class OutputMap(Piece, ABC):
    """The last step of a network with input `x` `[B, H, n, K]` and last layer `[B, H, n, V]`."""

    initial_std: float = 0.02
    """Of the last layer's initial weights: a new memory predicts nearly nothing."""

    @abstractmethod
    def forward(self, last: Tensor, x: Tensor) -> Tensor:
        """The prediction `[B, H, n, V]`."""

    def backward(self, last: Tensor, gradient: Tensor) -> Tensor:
        """The gradient with respect to `last` from that with respect to the prediction."""
        return gradient


class Plain(OutputMap):
    """The last layer is the prediction."""

    def forward(self, last: Tensor, x: Tensor) -> Tensor:
        return last


class Residual(OutputMap):
    """The network's input is added; needs key_width = value_width."""

    def __init__(self, heads: Heads) -> None:
        super().__init__(heads)
        _check_square(heads)

    def forward(self, last: Tensor, x: Tensor) -> Tensor:
        return x + last


class ResidualLayerNorm(OutputMap):
    """LayerNorm with a slow scale and shift per head, then the network's input is added."""

    initial_std = 0.1  # the norm divides by it: smaller weights would make the first steps larger

    def __init__(self, heads: Heads) -> None:
        super().__init__(heads)
        _check_square(heads)
        self.scale = nn.Parameter(torch.ones(heads.num_heads, 1, heads.value_width))
        self.shift = nn.Parameter(torch.zeros(heads.num_heads, 1, heads.value_width))

    def forward(self, last: Tensor, x: Tensor) -> Tensor:
        normalised, _ = _normalise(last)
        return x + normalised * self.scale + self.shift

    def backward(self, last: Tensor, gradient: Tensor) -> Tensor:
        normalised, inverse_std = _normalise(last)
        scaled = gradient * self.scale
        along = normalised * (scaled * normalised).mean(-1, keepdim=True)
        return (scaled - scaled.mean(-1, keepdim=True) - along) * inverse_std


def _check_square(heads: Heads) -> None:
    if heads.key_width != heads.value_width:
        raise ValueError(
            f"a residual output needs value_width = key_width, got {heads.value_width} and "
            f"{heads.key_width}; use value_width={heads.key_width} or output=plain"
        )


def _normalise(x: Tensor) -> tuple[Tensor, Tensor]:
    centred = x - x.mean(-1, keepdim=True)
    inverse_std = torch.rsqrt(centred.square().mean(-1, keepdim=True) + EPSILON)
    return centred * inverse_std, inverse_std


OUTPUTS: dict[str, type[OutputMap]] = {
    "plain": Plain,
    "residual": Residual,
    "residual_layer_norm": ResidualLayerNorm,
}
"""Output maps by name."""
