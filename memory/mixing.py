"""How the gradients of a block's tokens add up, in time, to the weights each token reads.

    W_t = carried_t W + initial_t W_0 + accumulated_t S + sum_j gradients[t, j] g_j

g_j is the gradient of token j at the anchor, W and S what the block meets, W_0 the initial weights:

    decay           W_t = a_t W_{t-1} - b_t g_t                                     (Yaad, Moneta)
    momentum decay  S_t = m_t S_{t-1} - b_t g_t,   W_t = a_t W_{t-1} + S_t          (Titans)
    running mean    S_t = S_{t-1} - b_t g_t,   W_t = W + c_i S_t,  c_i = 1/i + d_i   (TTT)

with i the token's place in its cell, counted from the last reset. A masked token leaves W and S.

Sources: Behrouz et al. 2025 (Titans, arXiv 2501.00663; Miras, arXiv 2504.13173); Sun et al. 2024
(TTT, arXiv 2407.04620).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .checks import check_at_least
from .decay import ChunkDecay
from .grid import Grid
from .heads import Heads, Piece
from .rule import Gates
from .steps import MomentumGates


class Mixture(NamedTuple):
    """Coefficients of N blocks of L slots; None where the term is absent."""

    gradients: Tensor
    """`[B, H, N, L, L]`"""
    carried: Tensor
    """`[B, H, N, L]`, as `initial` and `accumulated`."""
    initial: Tensor | None = None
    accumulated: Tensor | None = None
    step_gradients: Tensor | None = None
    """`[B, H, N, L]`: of g_j in S at the end of the block."""
    step_carried: Tensor | None = None
    """`[B, H, N, 1]`: of the S that the block meets in S at its end."""

    def blocks(self) -> Iterator[Mixture]:
        """The mixtures of the N blocks, without their axis N."""
        columns: list[Iterable[Any]] = [
            repeat(None) if part is None else part.unbind(2) for part in self
        ]
        # An absent term repeats without end.
        for parts in zip(*columns, strict=False):
            yield Mixture(*parts)


class Mixing(Piece, ABC):
    """Turns gates into a `Mixture`; `chunk_size` is the number of valid tokens of a cell."""

    gates: type[tuple[Tensor, ...]] = Gates
    """The type of gates that it takes from the rule."""
    accumulates: bool
    """Whether there is an S."""
    moves_weights: bool
    """Whether W moves at every token (then the anchor is kept beside it) or once per cell."""

    def __init__(self, heads: Heads, chunk_size: int) -> None:
        super().__init__(heads)
        check_at_least("chunk_size", chunk_size, 1)
        self.chunk_size = chunk_size

    def init_state(self, batch: int, like: Tensor) -> dict[str, Tensor]:
        """Leaves of the mixing's own; `like` gives the device."""
        return {}

    @abstractmethod
    def forward(
        self, gates: Any, grid: Grid, state: Mapping[str, Tensor]
    ) -> tuple[Mixture, dict[str, Tensor]]:
        """The mixture of all blocks and the next own leaves; gates are `[B, H, N, L]`."""


class Decay(Mixing):
    """Plain gradient steps on weights that fade."""

    accumulates = False
    moves_weights = True

    def forward(
        self, gates: Any, grid: Grid, state: Mapping[str, Tensor]
    ) -> tuple[Mixture, dict[str, Tensor]]:
        after = ChunkDecay(gates.log_retention, _over_heads(grid.reset)).after_write()
        gradients = -after.writes * gates.write_rate.unsqueeze(-2)
        return Mixture(gradients, after.carried, after.initial), {}


class MomentumDecay(Mixing):
    """Steps with momentum on weights that fade; a reset clears the momentum."""

    gates = MomentumGates
    accumulates = True
    moves_weights = True

    def forward(
        self, gates: Any, grid: Grid, state: Mapping[str, Tensor]
    ) -> tuple[Mixture, dict[str, Tensor]]:
        reset = _over_heads(grid.reset)
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
            steps[..., -1, :],
            momentum.carried[..., -1:],
        )
        return mixture, {}


class RunningMean(Mixing):
    """The mean of the cell's gradients so far, with a learned correction d per place in the cell.

    The rule's retention is not used: nothing fades.
    """

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
        visible = ChunkDecay(none, _over_heads(grid.reset)).after_write()
        steps = -visible.writes * gates.write_rate.unsqueeze(-2)
        mixture = Mixture(
            scale.unsqueeze(-1) * steps,
            visible.carried,
            visible.initial,
            scale * visible.carried,
            steps[..., -1, :],
            visible.carried[..., -1:],
        )
        return mixture, {"mean_count": next_count}

    def _scale(self, count: Tensor) -> Tensor:
        """c of a token that is the `count`-th of its cell; 0 before the first."""
        place = (count - 1).clamp(min=0)
        scale = (1.0 / (place + 1).to(self.correction.dtype) + self.correction[place]).clamp(min=0)
        return torch.where(count > 0, scale, 0.0)


def _over_heads(reset: Tensor | None) -> Tensor | None:
    return None if reset is None else reset.unsqueeze(1)
