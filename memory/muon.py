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
    for a, b, c in COEFFICIENTS:
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x if wide else x.mT


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
