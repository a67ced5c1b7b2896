"""Steps made orthogonal: all singular values of a layer's accumulated step brought close to 1.

    Muon(S) = NS(S / |S|) min(1, |S| / s),   NS: X <- a X + (b A + c A^2) X,  A = X X^T,  5 times

Newton-Schulz is blind to the length of S. A step that is short beside s is therefore scaled down:
otherwise one tiny gradient would move the weights as far as a thousand large ones, and derivatives
would grow like 1 / |S|. Lengths are Frobenius norms. It runs in the precision of the state, float32
or float64; half precision costs two per cent.

Sources: Jordan et al. 2024 (Muon); the coefficients of Zhang et al. 2025 (LaCT, arXiv 2505.23884);
the limit s is ours.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .heads import Heads, Piece

COEFFICIENTS = (
    (4.0848, -6.8946, 2.9270),
    (3.9505, -6.3029, 2.6377),
    (3.7418, -5.5913, 2.3037),
    (2.8769, -3.1427, 1.2046),
    (2.8366, -3.0525, 1.2012),
)
SMALLEST_NORM = 1e-6  # relative to s: what a zero step is divided by


def newton_schulz(x: Tensor) -> Tensor:
    """The nearest orthogonal matrices, roughly, to `x` `[..., m, n]` of Frobenius norm at most 1.

    Singular values above 0.005 end between 0.97 and 1.12, all others below 1.15.
    """
    wide = x.shape[-2] <= x.shape[-1]
    x = x if wide else x.mT
    # In one go rounding would grow with the product of all five slopes.
    for stage in (COEFFICIENTS[:2], COEFFICIENTS[2:]):
        x = _stage(x @ x.mT, stage) @ x
    return x if wide else x.mT


def _stage(gram: Tensor, coefficients: tuple[tuple[float, float, float], ...]) -> Tensor:
    """F of X <- F X, several iterations, from A = X X^T alone: X <- p X makes A <- p A p."""
    power = _polynomial(gram, *coefficients[0])
    factor = power
    for one in coefficients[1:]:
        gram = power @ gram @ power
        power = _polynomial(gram, *one)
        factor = power @ factor
    return factor


def _polynomial(gram: Tensor, a: float, b: float, c: float) -> Tensor:
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    return a * eye + b * gram + c * gram @ gram


class PostStep(Piece):
    """What is done to an accumulated step `[..., out, in]` before it is added; here nothing."""

    def forward(self, step: Tensor) -> Tensor:
        return step


class Orthogonalise(PostStep):
    """Muon; steps shorter than `smallest` (s) stay short."""

    def __init__(self, heads: Heads, smallest: float = 0.1) -> None:
        super().__init__(heads)
        if not smallest > 0:
            raise ValueError(f"smallest step must be above 0, got {smallest}; use 0.1")
        self.smallest = smallest

    def forward(self, step: Tensor) -> Tensor:
        shortest = self.smallest * SMALLEST_NORM
        norm = (step.square().sum((-2, -1), keepdim=True) + shortest**2).sqrt()
        return newton_schulz(step / norm) * (norm / self.smallest).clamp(max=1.0)
