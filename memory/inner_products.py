"""Inner products of vectors, many with many.

    P = L R^T,   dL = dP R,   dR = dP^T L;   P = X X^T,   dX = (dP + dP^T) X

Autograd would make the gradient of R^T and turn it, so that all that follows walks across the
memory; here every gradient lies as its vectors do.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .transforms import gradients_by_hand


def inner_products(left: Tensor, right: Tensor) -> Tensor:
    """`left` `[..., n, d]` by `right` `[..., m, d]`: `[..., n, m]`."""
    if not gradients_by_hand():
        return left @ right.mT
    products: Tensor = _InnerProducts.apply(left, right)  # type: ignore[no-untyped-call]
    return products


def own_products(vectors: Tensor) -> Tensor:
    """`vectors` `[..., n, d]` by themselves: `[..., n, n]`."""
    if not gradients_by_hand():
        return vectors @ vectors.mT
    products: Tensor = _OwnProducts.apply(vectors)  # type: ignore[no-untyped-call]
    return products


class _InnerProducts(torch.autograd.Function):
    """Differentiable again, as is the next one."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:
        ctx.save_for_backward(left, right)
        return left @ right.mT

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        left, right = ctx.saved_tensors
        return gradients[0] @ right, gradients[0].mT @ left


class _OwnProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(vectors)
        return vectors @ vectors.mT

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (vectors,) = ctx.saved_tensors
        # Two products: the sum of a matrix and its turn cannot be made in steps of a vector.
        gradient: Tensor = gradients[0] @ vectors + gradients[0].mT @ vectors
        return gradient
