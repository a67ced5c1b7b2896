"""A long-term memory and a short-term one, side by side on the same tokens.

    y_t = long_term(x_t) + short_term(x_t)

Each has its own output projection: the sum equals one projection of the heads of both. The short
one answers exactly about the recent past, the long one about what the window has lost.

Sources: parallel heads, Dong et al. 2024 (Hymba, arXiv 2411.13676); with fast weights, Zhang et al.
2025 (LaCT, arXiv 2505.23884).
"""

from __future__ import annotations

from collections.abc import Callable

from tensordict import TensorDict
from torch import Tensor

from .attention import AttentionMemory
from .composite import Composite, check_member_width
from .core import MemoryCore
from .fast_weight import FastWeightMemory


class Hybrid(Composite):
    """The sum of two memories of any kinds, given as factories that take the width.

    The state holds their states under `long_term` and `short_term`.
    """

    def __init__(
        self,
        width: int,
        long_term: Callable[[int], MemoryCore] = FastWeightMemory,
        short_term: Callable[[int], MemoryCore] = AttentionMemory,
    ) -> None:
        super().__init__(width)
        self.long_term = long_term(width)
        self.short_term = short_term(width)
        for name, core in self.members().items():
            check_member_width(name, core, width, "hybrid")
        self.adopt(self.members().values())

    def members(self) -> dict[str, MemoryCore]:
        return {"long_term": self.long_term, "short_term": self.short_term}

    def advance(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
        commit: Tensor | None = None,
    ) -> tuple[Tensor, TensorDict]:
        y, long_state = self.long_term.advance(x, state.get("long_term"), reset, mask, commit)
        y_short, short_state = self.short_term.advance(
            x, state.get("short_term"), reset, mask, commit
        )
        states = {"long_term": long_state, "short_term": short_state}
        return y + y_short, TensorDict(states, batch_size=state.batch_size)
