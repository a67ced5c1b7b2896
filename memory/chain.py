"""Several memories in a chain, each of which sees what the ones before it have made of a token.

    h_0 = x_t,   h_i = h_{i-1} + memory_i(norm_i(h_{i-1})),   y_t = h_n - x_t

The token itself is left to the residual stream around the chain. With members that are updated at
different rates the chain is a continuum memory system: the fast ones learn the present, the slow
ones what lasts, and each level reads through the levels before it.

Source: the continuum memory system of Behrouz et al. 2025 (Nested Learning, arXiv 2512.24695), a
chain of blocks with one update period each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tensordict import TensorDict
from torch import Tensor, nn

from .composite import Composite, check_member_width
from .core import MemoryCore


class Chain(Composite):
    """`members` of any kinds, in order: factories that take the width, by name.

    The state holds their states under these names. Raises ValueError when there is no member, when
    a member has another width, and when a name is not a plain word.
    """

    def __init__(self, width: int, members: Mapping[str, Callable[[int], MemoryCore]]) -> None:
        super().__init__(width)
        if not members:
            raise ValueError("members of a chain must be at least 1, got 0; use {fast: ..., ...}")
        self.cores = nn.ModuleDict()
        self.norms = nn.ModuleDict()
        for name, make in members.items():
            if not name.isidentifier() or hasattr(self.cores, name):
                raise ValueError(
                    f"name of a member of a chain must be a plain word, got {name!r}; "
                    f"use fast, middle, slow or the like"
                )
            core = make(width)
            check_member_width(name, core, width, "chain")
            self.cores[name] = core
            self.norms[name] = nn.LayerNorm(width)
        self.adopt(self.members().values())

    def members(self) -> dict[str, MemoryCore]:
        return {name: core for name, core in self.cores.items() if isinstance(core, MemoryCore)}

    def advance(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
        commit: Tensor | None = None,
    ) -> tuple[Tensor, TensorDict]:
        total, states = None, {}
        for name, core in self.members().items():
            seen = x if total is None else x + total
            y, states[name] = core.advance(
                self.norms[name](seen), state.get(name), reset, mask, commit
            )
            total = y if total is None else total + y
        assert total is not None
        return total, TensorDict(states, batch_size=state.batch_size)
