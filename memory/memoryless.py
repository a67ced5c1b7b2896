"""The control without memory: y_t = f(x_t), whatever came before."""

from __future__ import annotations

from tensordict import TensorDict
from torch import Tensor

from .core import MemoryCore
from .feed_forward import feed_forward


class Memoryless(MemoryCore):
    """A two-layer network on every token by itself; the state is empty, all flags are ignored."""

    def __init__(self, width: int, mlp_ratio: float = 2.0) -> None:
        super().__init__(width)
        self.pointwise = feed_forward(width, mlp_ratio)

    def init_state(self, batch: int) -> TensorDict:
        """A state without leaves."""
        return TensorDict({}, batch_size=[batch])

    def advance(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
        commit: Tensor | None = None,
    ) -> tuple[Tensor, TensorDict]:
        return self.pointwise(x), state
