"""What one write improves, as the error e_t in W_t = a_t W_{t-1} + b_t e_t k_t^T.

    dot product     -<W k_t, v_t>          e_t = v_t
    squared error   1/2 |W k_t - v_t|^2    e_t = v_t - a_t W_{t-1} k_t   at the decayed weights
                                           e_t = v_t - W_{t-1} k_t       at the previous weights

Sources: Katharopoulos et al. 2020; Schlag et al. 2021; Yang et al. 2024 (decays first).
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from .checks import check_choice
from .heads import Heads, Piece

Prediction = Literal["none", "decayed", "previous", "anchor"]


class Objective(Piece):
    """An online objective; the prediction of the `predicts_with` weights is taken off the value."""

    predicts_with: Prediction

    def gradient(self, prediction: Tensor, value: Tensor) -> Tensor:
        """The loss gradient at predictions of any network; both `[B, H, n, V]`."""
        raise ValueError(
            f"{type(self).__name__} has no gradient for a network; use SquaredError or DotProduct"
        )


class DotProduct(Objective):
    """Hebbian writing: every value is added in full, whatever the memory already says."""

    predicts_with: Prediction = "none"

    def gradient(self, prediction: Tensor, value: Tensor) -> Tensor:
        return -value


class SquaredError(Objective):
    """The delta rule: only what the memory gets wrong is written.

    `taken_at`: the gradient is taken at the `decayed` or at the `previous` weights.
    """

    def __init__(self, heads: Heads, taken_at: Literal["decayed", "previous"] = "decayed") -> None:
        super().__init__(heads)
        check_choice("taken_at", taken_at, ("decayed", "previous"))
        self.predicts_with = taken_at

    def gradient(self, prediction: Tensor, value: Tensor) -> Tensor:
        return prediction - value
