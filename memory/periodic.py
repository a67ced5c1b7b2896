"""Weights that stand still between updates: one step per cell, with all its tokens' gradients.

    S_t = S_{t-1} - b_t g_t,   W_t = W_{t-1}                       inside a cell
    W_t = a_t W_{t-1} + S_t,   S_t <- 0                            where token t completes the cell

g_t is the gradient at W_{t-1}. Reads see what the last completed cell left, the completing token
what it has just made. Nothing fades between updates: half-lives count updates, not tokens.

Source: the update periods of Behrouz et al. 2025 (Nested Learning, arXiv 2512.24695).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .decay import ChunkDecay
from .grid import Grid
from .motion import LinearMixing, Mixture


class PeriodicStep(LinearMixing):
    """One gradient step per cell of `chunk_size` valid tokens: the slow level of a chain.

    The cell's steps add up: its rates times its tokens should stay below 2. A reset clears them.
    """

    anchor = "weights"
    accumulates = True
    moves_weights = False

    def forward(
        self, gates: Any, grid: Grid, state: Mapping[str, Tensor]
    ) -> tuple[Mixture, dict[str, Tensor]]:
        completing, completed = _completion(grid)
        none = torch.zeros_like(gates.write_rate)
        reset = None if grid.reset is None else grid.reset.unsqueeze(1)
        visible = ChunkDecay(none, reset).after_write()
        kept = torch.where(completing, gates.log_retention, 0.0).cumsum(-1).exp()
        done = completed.to(none.dtype)
        steps = -visible.writes * gates.write_rate.unsqueeze(-2)
        mixture = Mixture(
            done.unsqueeze(-1) * steps,
            kept * visible.carried,
            None if visible.initial is None else kept * visible.initial,
            done * visible.carried,
            steps[..., -1:, :],
            visible.carried[..., -1:],
        )
        return mixture, {}


def _completion(grid: Grid) -> tuple[Tensor, Tensor]:
    """`[B, 1, N, L]`: the slot whose token completes a cell, and the slots from it on."""
    count = grid.valid.long().cumsum(-1)
    completed = grid.full.unsqueeze(-1) & (count == count[..., -1:])
    return (completed & grid.valid).unsqueeze(1), completed.unsqueeze(1)
