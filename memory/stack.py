"""Several memories on top of each other.

    h = x + core(norm(x)),   y = h + mlp(norm(h))     for every core in turn

Source: the pre-norm block of Xiong et al. 2020.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensordict import TensorDict
from torch import Tensor, nn

from .checks import check_at_least
from .composite import Composite
from .core import MemoryCore
from .feed_forward import feed_forward


class Block(nn.Module):
    """LayerNorm, core, residual, LayerNorm, two-layer network, residual."""

    def __init__(self, core: MemoryCore, mlp_ratio: float) -> None:
        super().__init__()
        self.core = core
        self.core_norm = nn.LayerNorm(core.width)
        self.mlp_norm = nn.LayerNorm(core.width)
        self.mlp = feed_forward(core.width, mlp_ratio)

    def forward(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None,
        mask: Tensor | None,
        commit: Tensor | None,
    ) -> tuple[Tensor, TensorDict]:
        """`x` `[B, T, D]` with the core's output and the network's added; the core's next state."""
        y, state = self.core.advance(self.core_norm(x), state, reset, mask, commit)
        x = x + y
        return x + self.mlp(self.mlp_norm(x)), state


class Stack(Composite):
    """Residual blocks around `cores` of any kinds and one width.

    The state holds the cores' states under "0", "1", ...; `mlp_ratio` is the hidden width of each
    block's network over the width; `recompute_every` as in `MemoryCore`. Raises ValueError when the
    cores' widths differ.
    """

    def __init__(
        self,
        cores: Sequence[MemoryCore],
        mlp_ratio: float = 2.0,
        recompute_every: int | None = None,
    ) -> None:
        widths = sorted({core.width for core in cores})
        if len(widths) != 1:
            raise ValueError(
                f"cores of a stack must share one width, got {len(cores)} of widths {widths}; "
                f"use one of {widths or [64]} for all"
            )
        super().__init__(widths[0])
        if recompute_every is not None:
            check_at_least("recompute_every", recompute_every, 1)
        self.recompute_every = recompute_every
        blocks = [Block(core, mlp_ratio) for core in cores]
        self.blocks = nn.ModuleList(blocks)
        self.adopt(cores)

    def members(self) -> dict[str, MemoryCore]:
        return {name: block.core for name, block in self._named_blocks()}

    def advance(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
        commit: Tensor | None = None,
    ) -> tuple[Tensor, TensorDict]:
        states = {}
        for name, block in self._named_blocks():
            x, states[name] = block(x, state.get(name), reset, mask, commit)
        return x, TensorDict(states, batch_size=state.batch_size)

    def _named_blocks(self) -> list[tuple[str, Block]]:
        children = self.blocks.named_children()
        return [(name, block) for name, block in children if isinstance(block, Block)]
