"""Objectives that measure the error otherwise than by its square; for anchored solvers.

    Huber   |e| < c ? e^2 / 2 : c (|e| - c / 2)      gradient clamp(e, -c, c)
    power   (e^2 + s^2)^(p/2) / p                    gradient e (e^2 + s^2)^(p/2 - 1)

summed over the value channels, e = prediction - value.

Source: Behrouz et al. 2025 (Miras, arXiv 2504.13173): Yaad, Moneta.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .checks import check_at_least
from .heads import Heads
from .objective import Objective, Prediction

SMOOTHING = 1e-2  # s: where |e|^p bends; without it the gradient of p < 2 jumps at zero


class HuberError(Objective):
    """Outliers pull with the constant force c, a threshold learned per head from `threshold` on."""

    predicts_with: Prediction = "anchor"

    def __init__(self, heads: Heads, threshold: float = 1.0) -> None:
        super().__init__(heads)
        check_at_least("threshold", threshold, 1e-3)
        inverse = torch.tensor(float(threshold)).expm1().log()
        self.threshold_bias = nn.Parameter(inverse.repeat(heads.num_heads))

    def gradient(self, prediction: Tensor, value: Tensor) -> Tensor:
        threshold = functional.softplus(self.threshold_bias).view(-1, 1, 1)
        error = prediction - value
        return torch.minimum(torch.maximum(error, -threshold), threshold)


class PowerError(Objective):
    """The l_p objective: p > 2 attends to the largest errors, p < 2 to how many there are."""

    predicts_with: Prediction = "anchor"

    def __init__(self, heads: Heads, power: float = 3.0) -> None:
        super().__init__(heads)
        check_at_least("power", power, 1.0)
        self.power = power

    def gradient(self, prediction: Tensor, value: Tensor) -> Tensor:
        error = prediction - value
        smooth = error.square() + SMOOTHING**2
        gradient: Tensor = error * smooth ** (self.power / 2 - 1)
        return gradient
