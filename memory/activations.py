"""Activations of fast networks, each with its derivative.

Writing back-propagates by hand, so that the gradient of the writing itself stays plain arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Activation(NamedTuple):
    """An elementwise function and its derivative."""

    function: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]


def gelu(x: Tensor) -> Tensor:
    """GELU in its tanh form (Hendrycks & Gimpel 2016)."""
    return functional.gelu(x, approximate="tanh")


def gelu_derivative(x: Tensor) -> Tensor:
    """The derivative of `gelu`."""
    scale, cubic = math.sqrt(2 / math.pi), 0.044715
    squared = x.square()
    t = torch.tanh(scale * x * (1 + cubic * squared))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t.square()) * scale * (1 + 3 * cubic * squared)


def silu_derivative(x: Tensor) -> Tensor:
    """The derivative of x sigmoid(x)."""
    gate = torch.sigmoid(x)
    return gate * (1 + x * (1 - gate))


def tanh_derivative(x: Tensor) -> Tensor:
    """The derivative of tanh."""
    return 1 - torch.tanh(x).square()


ACTIVATIONS = {
    "gelu": Activation(gelu, gelu_derivative),
    "silu": Activation(functional.silu, silu_derivative),
    "tanh": Activation(torch.tanh, tanh_derivative),
}
"""Activations by name."""
