"""Gates of a gradient step with momentum.

    S_t = m_t S_{t-1} - b_t g_t,   W_t = a_t W_{t-1} + S_t

Source: Behrouz, Zhong & Mirrokni 2025 (Titans, arXiv 2501.00663).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .gates import Gate, RetentionGate, WriteRate
from .heads import Heads, Piece
from .rule import Gates


class MomentumGates(NamedTuple):
    """Log retention and log momentum (<= 0) and the write rate, all `[B, T, H]`."""

    log_retention: Tensor
    write_rate: Tensor
    log_momentum: Tensor


def map_gates(
    function: Callable[[Tensor], Tensor], gates: Gates | MomentumGates
) -> Gates | MomentumGates:
    """The gates with `function` applied to each."""
    if isinstance(gates, MomentumGates):
        return MomentumGates(*(function(gate) for gate in gates))
    return Gates(*(function(gate) for gate in gates))


class MomentumStep(Piece):
    """One step per token with a gate for what the weights keep, the rate and the momentum.

    A momentum m multiplies the size of a lasting step by 1 / (1 - m).
    """

    def __init__(
        self,
        heads: Heads,
        retention: Callable[[Heads], Gate] = RetentionGate,
        write_rate: Callable[[Heads], Gate] = WriteRate,
        momentum: Callable[[Heads], Gate] = RetentionGate,
    ) -> None:
        super().__init__(heads)
        self.retention = retention(heads)
        self.write_rate = write_rate(heads)
        self.momentum = momentum(heads)
        self.sizes = [gate.num_features for gate in self._gates()]
        self.num_features = sum(self.sizes)

    def init_projection(self, weight: Tensor) -> None:
        for gate, rows in zip(self._gates(), torch.split(weight, self.sizes), strict=True):
            gate.init_projection(rows)

    def forward(self, features: Tensor) -> MomentumGates:
        """Gates of every token from `features` `[B, T, num_features]`."""
        parts = torch.split(features, self.sizes, dim=-1)
        pairs = zip(self._gates(), parts, strict=True)
        return MomentumGates(*(gate(part) for gate, part in pairs))

    def _gates(self) -> tuple[Gate, Gate, Gate]:
        return self.retention, self.write_rate, self.momentum
