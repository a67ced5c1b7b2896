"""The inverse of unit lower triangular systems: the only solve of a delta rule's chunk.

    T = (I + tril(A, -1))^{-1},   dA = -tril(T^T dT T^T, -1)

One solve gives T; its products serve every right-hand side and the gradient, where solving again
would cost as much each time. T stays small where the delta rule contracts:
|T_ij| <= b_i |k_i| |k_j| for rates b and keys k with b |k|^2 <= 2.

Source: the UT transform of Joffrain et al. 2006, as used by Yang et al. 2024 (DeltaNet).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .transforms import gradients_by_hand


class _UnitLowerInverse(torch.autograd.Function):
    """Differentiable again: the backward pass is made of differentiable products."""

    @staticmethod
    def forward(ctx: Any, system: Tensor) -> Tensor:
        inverse = solve_unit_lower(system)
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (inverse,) = ctx.saved_tensors
        gradient: Tensor = -(inverse.mT @ gradients[0] @ inverse.mT).tril(-1)
        return gradient


def solve_unit_lower(system: Tensor) -> Tensor:
    size = system.shape[-1]
    eye = torch.eye(size, dtype=system.dtype, device=system.device).expand_as(system)
    inverse: Tensor = torch.linalg.solve_triangular(system, eye, upper=False, unitriangular=True)
    return inverse


def unit_lower_inverse(system: Tensor) -> Tensor:
    """T `[..., C, C]` of `system` A `[..., C, C]`, whose strictly lower part alone is read."""
    if not gradients_by_hand():
        return solve_unit_lower(system)
    inverse: Tensor = _UnitLowerInverse.apply(system)  # type: ignore[no-untyped-call]
    return inverse
