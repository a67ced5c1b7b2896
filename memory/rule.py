"""How the fast weights move in time.

    W_t = a_t W_{t-1} + b_t e_t k_t^T,   a_t = exp(log_retention_t),  e_t from the objective

Source: the fast-weight view of linear attention, Schlag et al. 2021.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .gates import Gate, RetentionGate, WriteRate
from .heads import Heads, Piece


class Gates(NamedTuple):
    """Per token and head: the log retention (<= 0) and the write rate, both `[B, T, H]`."""

    log_retention: Tensor
    write_rate: Tensor


class GradientStep(Piece):
    """One gradient step per token: `retention` scales the old weights, `write_rate` the step."""

    def __init__(
        self,
        heads: Heads,
        retention: Callable[[Heads], Gate] = RetentionGate,
        write_rate: Callable[[Heads], Gate] = WriteRate,
    ) -> None:
        super().__init__(heads)
        self.retention = retention(heads)
        self.write_rate = write_rate(heads)
        self.sizes = [self.retention.num_features, self.write_rate.num_features]
        self.num_features = sum(self.sizes)

    def init_projection(self, weight: Tensor) -> None:
        retention, write_rate = torch.split(weight, self.sizes)
        self.retention.init_projection(retention)
        self.write_rate.init_projection(write_rate)

    def forward(self, features: Tensor) -> Gates:
        """Gates of every token from `features` `[B, T, num_features]`."""
        retention, write_rate = torch.split(features, self.sizes, dim=-1)
        return Gates(self.retention(retention), self.write_rate(write_rate))
