"""The control of recall probes: the short convolution alone, the memory reset at every step.

    y_t = core(x_t) from the initial state, except for the convolution's window at t

What a memory scores above its control it owes to its fast weights and not to the convolution, which
carries `conv_width` - 1 tokens by itself.
"""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor
from torch.nn import functional

from sojourn.memory import MemoryCore

WINDOW = "conv_window"


class ResetEveryStep(MemoryCore):
    """`core` with every leaf of its state but the convolution windows reset before every token.

    Sequences start at the call's first token, the state passed in and the flags are ignored. All
    tokens are computed at once: one row for each, whose windows are filled by the tokens before it.
    """

    def __init__(self, core: MemoryCore) -> None:
        super().__init__(core.width)
        self.core = core

    def init_state(self, batch: int) -> TensorDict:
        """The initial state of the core."""
        return self.core.init_state(batch)

    def advance(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
        commit: Tensor | None = None,
    ) -> tuple[Tensor, TensorDict]:
        del reset, mask, commit
        rows, steps, width = x.shape
        initial = self.core.init_state(rows * steps)
        length = _window_length(initial)
        if length:
            past = functional.pad(x, (0, 0, length, 0)).unfold(1, length + 1, 1)[..., :length]
            age = torch.arange(length, 0, -1, device=x.device)
            exists = torch.arange(steps, device=x.device).unsqueeze(1) >= age
            # The core sees only the tokens that exist: a window of zeros is not an empty one.
            _, seen = self.core(
                past.mT.reshape(rows * steps, length, width),
                initial,
                mask=exists.repeat(rows, 1),
            )
            initial = _with_windows(initial, seen)
        y, _ = self.core(x.reshape(rows * steps, 1, width), initial)
        return y.view(rows, steps, width), state


def _window_length(state: TensorDict) -> int:
    """Tokens that the longest convolution window holds, 0 without one."""
    lengths = [0]
    for name, leaf in state.items():
        if isinstance(leaf, Tensor):
            lengths.append(leaf.shape[1] if name == WINDOW else 0)
        else:
            lengths.append(_window_length(leaf))
    return max(lengths)


def _with_windows(state: TensorDict, other: TensorDict) -> TensorDict:
    """`state` with the convolution windows of `other`."""
    leaves = {}
    for name, leaf in state.items():
        if isinstance(leaf, Tensor):
            leaves[name] = other.get(name) if name == WINDOW else leaf
        else:
            leaves[name] = _with_windows(leaf, other.get(name))
    return TensorDict(leaves, batch_size=state.batch_size)
