"""How the gradients of a block's tokens add up, in time, to the weights each token reads.

With g_t the gradient of token t at the anchor,

    decay           W_t = a_t W_{t-1} - b_t g_t                                     (Yaad, Moneta)
    momentum decay  S_t = m_t S_{t-1} - b_t g_t,   W_t = a_t W_{t-1} + S_t          (Titans)
    running mean    S_t = S_{t-1} - b_t g_t,   W_t = W + c_i S_t,  c_i = 1/i + d_i   (TTT)

with i the token's place in its cell, counted from the last reset. A masked token leaves W and S.

Sources: Behrouz et al. 2025 (Titans, arXiv 2501.00663; Miras, arXiv 2504.13173); Sun et al. 2024
(TTT, arXiv 2407.04620).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .decay import ChunkDecay
from .grid import Grid
from .heads import Heads
from .motion import LinearMixing, Mixture
from .steps import MomentumGates


class Decay(LinearMixing):
    """Plain gradient steps on weights that fade."""

    accumulates = False
    moves_weights = True

    def forward(
        self, gates: Any, grid: Grid, state: Mapping[str, Tensor]
    ) -> tuple[Mixture, dict[str, Tensor]]:
        after = ChunkDecay(gates.log_retention, over_heads(grid.reset)).after_write()
        gradients = -after.writes * gates.write_rate.unsqueeze(-2)
        return Mixture(gradients, after.carried, after.initial), {}


class MomentumDecay(LinearMixing):
    """Steps with momentum on weights that fade; a reset clears the momentum."""

    gates = MomentumGates
    accumulates = True
    moves_weights = True

    def forward(
        self, gates: Any, grid: Grid, state: Mapping[str, Tensor]
    ) -> tuple[Mixture, dict[str, Tensor]]:
        reset = over_heads(grid.reset)
        after = ChunkDecay(gates.log_retention, reset).after_write()
        momentum = ChunkDecay(gates.log_momentum, reset).after_write()
        # A masked token must not add the momentum once more.
        gain = gates.gain * grid.valid.unsqueeze(1)
        adds = after.writes * gain.unsqueeze(-2)
        steps = -momentum.writes * gates.write_rate.unsqueeze(-2)
        mixture = Mixture(
            adds @ steps,
            after.carried,
            after.initial,
            (adds @ momentum.carried.unsqueeze(-1)).squeeze(-1),
            steps[..., -1:, :],
            momentum.carried[..., -1:],
        )
        return mixture, {}


class RunningMean(LinearMixing):
    """The mean of the cell's gradients so far, with a learned correction d per place in the cell.

    The rule's retention is not used: nothing fades.
    """

    anchor = "weights"
    accumulates = True
    moves_weights = False

    def __init__(self, heads: Heads, chunk_size: int) -> None:
        super().__init__(heads, chunk_size)
        self.correction = nn.Parameter(torch.zeros(chunk_size))

    def init_state(self, batch: int, like: Tensor) -> dict[str, Tensor]:
        """`mean_count` `[B]` int64: valid tokens of the running cell since the last reset."""
        return {"mean_count": like.new_zeros(batch, dtype=torch.int64)}

    def forward(
        self, gates: Any, grid: Grid, state: Mapping[str, Tensor]
    ) -> tuple[Mixture, dict[str, Tensor]]:
        count, next_count = grid.count(state["mean_count"])
        scale = self._scale(count).unsqueeze(1)
        none = torch.zeros_like(gates.write_rate)
        visible = ChunkDecay(none, over_heads(grid.reset)).after_write()
        steps = -visible.writes * gates.write_rate.unsqueeze(-2)
        mixture = Mixture(
            scale.unsqueeze(-1) * steps,
            visible.carried,
            visible.initial,
            scale * visible.carried,
            steps[..., -1:, :],
            visible.carried[..., -1:],
        )
        return mixture, {"mean_count": next_count}

    def _scale(self, count: Tensor) -> Tensor:
        """c of a token that is the `count`-th of its cell; 0 before the first."""
        place = (count - 1).clamp(min=0)
        scale = (1.0 / (place + 1).to(self.correction.dtype) + self.correction[place]).clamp(min=0)
        return torch.where(count > 0, scale, 0.0)


def over_heads(reset: Tensor | None) -> Tensor | None:
    """`[B, N, L]` to `[B, 1, N, L]`."""
    return None if reset is None else reset.unsqueeze(1)
