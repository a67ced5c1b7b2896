"""The contract of every memory: a map with state, fed one token at a time or many at once.

y_t, S_t = memory(x_t, S_{t-1}),   S_{t-1} replaced by the learned S_0 where reset_t is set
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from .checks import check_at_least, check_flags, check_precision, check_rows, check_tokens
from .compiled import pays_off, run_compiled
from .containment import contain
from .recompute import recompute
from .state import state_bytes, where_reset


class MemoryCore(nn.Module, ABC):
    """A map `[B, T, width] -> [B, T, width]` whose whole memory is the state passed in and out.

    Nothing is remembered in the module and nothing is changed in place. Feeding T tokens at once,
    one by one, or in any split gives the same outputs, the same final state and the same gradients.

    Flags are `[B, T]` bool, or None for "nowhere":

    - `reset`: the row's state becomes the learned initial state *before* token t is consumed;
    - `mask`: False means that token t changes no part of the state; its read is still produced, and
      a reset at t still happens;
    - `commit`: moves the snapshot of memories that read from one; ignored by all others.

    A token or state row with a non-finite number spoils its own row until that row's next reset,
    and nothing else. State and solves stay in float32 (float64 in a float64 module) under autocast.
    """

    grows: bool = False
    """Whether the state's size grows with the number of tokens."""
    anchored: bool = False
    """Whether the size of chunks is part of the model; then a clock survives resets."""
    reads_commits: bool = False
    """Whether reads see a snapshot that only `commit` moves."""

    recompute_every: int | None = None
    """Tokens after which a call keeps its state for the backward pass, which then recomputes all
    between; None keeps everything. Never changes a number, only time and memory: use a few chunks.
    """

    slab_numbers: int | None = 2**18
    """Numbers of input that exact memories work through at a time on a CPU, so that all that is
    made of them stays in its caches; None takes a call in one piece. Never changes a number either.
    """

    compiled: bool = False
    """Whether calls run as compiled code where that pays off; `compile_calls` sets it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        check_at_least("width", width, 1)
        self.width = width

    @abstractmethod
    def init_state(self, batch: int) -> TensorDict:
        """The learned initial state of `batch` rows: leaves `[B, ...]`, differentiable."""

    @abstractmethod
    def advance(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
        commit: Tensor | None = None,
    ) -> tuple[Tensor, TensorDict]:
        """What a core implements: `forward` for T >= 1 finite tokens; `reset` is None if T = 1."""

    def reset_rows(self, state: TensorDict, rows: Tensor) -> TensorDict:
        """The state with the learned initial state in the rows where `rows` `[B]` (bool) is set."""
        return where_reset(rows, self.init_state(rows.shape[0]), state)

    def forward(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
        commit: Tensor | None = None,
    ) -> tuple[Tensor, TensorDict]:
        """Consume `x` `[B, T, width]` from `state`: outputs `[B, T, width]`, state after them.

        Raises ValueError when a shape or the type of a flag is wrong.
        """
        check_tokens(x, self.width)
        check_rows(state, x)
        for name, flags in (("reset", reset), ("mask", mask), ("commit", commit)):
            check_flags(name, flags, x)
        if x.shape[1] == 0:
            return x, state
        every = self.recompute_every
        if every is None or every >= x.shape[1] or not torch.is_grad_enabled():
            return self.consume(x, state, reset, mask, commit)
        return recompute(self, every, x, state, reset, mask, commit)

    def consume(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None,
        mask: Tensor | None,
        commit: Tensor | None,
    ) -> tuple[Tensor, TensorDict]:
        """`forward` for T >= 1 tokens of checked shapes, in one piece."""
        if self.compiled and pays_off(x):
            return run_compiled(self, x, state, reset, mask, commit)
        return self.consume_eagerly(x, state, reset, mask, commit)

    def consume_eagerly(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None,
        mask: Tensor | None,
        commit: Tensor | None,
    ) -> tuple[Tensor, TensorDict]:
        """`consume`, operation by operation."""
        if x.shape[1] == 1 and reset is not None:
            state, reset = self.reset_rows(state, reset[:, 0]), None
        # One valid token can spoil only what it may; a masked one must not reach the state.
        if x.shape[1] > 1 or mask is not None:
            return contain(self, x, state, reset, mask, commit)
        return self.advance(x, state, None, mask, commit)

    def step(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
        commit: Tensor | None = None,
    ) -> tuple[Tensor, TensorDict]:
        """`forward` for one token: `x` `[B, width]`, flags `[B]`; output `[B, width]`, state."""
        flags = (None if flag is None else flag.unsqueeze(1) for flag in (reset, mask, commit))
        y, state = self.forward(x.unsqueeze(1), state, *flags)
        return y.squeeze(1), state

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> MemoryCore:
        """What `to`, `half`, `bfloat16` and their kin call; raises ValueError for a low type."""
        check_precision(fn(torch.empty(0)).dtype)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def state_bytes(self) -> int:
        """Bytes of the initial state per batch row."""
        return state_bytes(self.init_state(1))
