"""How strongly a token's step improves each pair of its window, and what it forgets.

    by age       b_t p_tj,   p_t = softmax over the window's pairs of a learned score per age
    by energy    n_t,        n_t = b_t / (sum_j |k_j|^2 + c r_t),   retention 1 - n_t c r_t

Either way no step of rate b <= 1 overshoots: the weights sum to b for keys of length 1, or the
step is divided by all energy that it fits. The ridge c r is r per pair of a full window.

Sources: by age, Behrouz et al. 2025 (ATLAS, arXiv 2505.23735), with one score per age in place of
a gate per pair; by energy, Falcon-3, arXiv 2608.27763.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from .heads import Heads, Piece
from .ridge import RidgeGates, normalise_step
from .rule import Gates

HIDDEN_SCORE = -1e30  # its softmax is zero, and a row of nothing else is still finite


def shares(scores: Tensor, visible: Tensor) -> Tensor:
    """The softmax of `scores` over the `visible` (bool) entries of the last axis, else zero."""
    return scores.masked_fill(~visible, HIDDEN_SCORE).softmax(-1) * visible


class PairWeights(Piece, ABC):
    """Weighs the pairs of windows of `window` tokens; takes gates of the type `gates`."""

    gates: type[tuple[Tensor, ...]] = Gates

    def __init__(self, heads: Heads, window: int) -> None:
        super().__init__(heads)
        self.window = window

    @abstractmethod
    def forward(self, gates: Any, key: Tensor, full: Tensor) -> tuple[Tensor, Tensor]:
        """Log retention `[B, T, H]` and the weight of every pair `[B, T, H, c]`, newest last.

        `key` `[B, T, H, c, K]`; `full` `[B, T, H, c]` (bool): slots that hold a pair. Gates of a
        masked token are zero; it must neither write nor forget.
        """


class AgeWeights(PairWeights):
    """The token's own rate, shared out by age; `scores` start equal."""

    def __init__(self, heads: Heads, window: int) -> None:
        super().__init__(heads, window)
        self.scores = nn.Parameter(torch.zeros(heads.num_heads, window))

    def forward(self, gates: Gates, key: Tensor, full: Tensor) -> tuple[Tensor, Tensor]:
        return gates.log_retention, gates.write_rate.unsqueeze(-1) * shares(self.scores, full)


class EnergyWeights(PairWeights):
    """The same weight for all pairs: the rate divided by their energy and the ridge."""

    gates = RidgeGates

    def forward(self, gates: RidgeGates, key: Tensor, full: Tensor) -> tuple[Tensor, Tensor]:
        energy = (key.square().sum(-1) * full).sum(-1)
        gates = gates._replace(ridge=self.window * gates.ridge)
        log_retention, rate = normalise_step(gates, energy)
        return log_retention, rate.unsqueeze(-1) * full
