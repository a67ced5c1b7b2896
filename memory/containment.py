"""Keeps a non-finite number inside its own row and before that row's next reset.

Chunk forms select by multiplying with zero, and 0 * NaN = NaN: one bad token would reach its
chunk's past, and a bad state would outlive its reset. So bad tokens and bad state rows are replaced
before the core runs, and NaN is written afterwards to every output, and to the final state, that a
token-by-token run would have spoiled. Gradients of the outputs that are not spoiled stay finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from tensordict import TensorDict
from torch import Tensor

from .state import expand_rows, leaves, map_leaves

if TYPE_CHECKING:
    from .core import MemoryCore


def contain(
    core: MemoryCore,
    x: Tensor,
    state: TensorDict,
    reset: Tensor | None,
    mask: Tensor | None,
    commit: Tensor | None,
) -> tuple[Tensor, TensorDict]:
    """`core.advance`, where a bad token or state row spoils only what comes after it in its row."""
    bad_token = ~torch.isfinite(x.detach().sum(-1, dtype=_summing_dtype(x)))
    bad_row = bad_rows(state, bad_token)
    spoiled = spoiled_memory(bad_token, bad_row, reset, mask)

    y, state = core.advance(
        x.masked_fill(bad_token.unsqueeze(-1), 0.0),
        core.reset_rows(state, bad_row),
        reset,
        mask,
        commit,
    )
    # Adding 0 or NaN is cheaper than selecting, and its gradient is the identity.
    y = y + _nan_where(spoiled | bad_token, y).unsqueeze(-1)
    return y, map_leaves(lambda leaf: _spoil(leaf, spoiled[:, -1]), state)


def spoiled_memory(
    bad_token: Tensor, bad_row: Tensor, reset: Tensor | None, mask: Tensor | None
) -> Tensor:
    """`[B, T]`: whether the memory after token t holds something of a bad token or carried state.

    `bad_token` `[B, T]`, `bad_row` `[B]`. True when the last bad write is not older than the last
    reset; the carried state counts as written at time -1.
    """
    times = torch.arange(bad_token.shape[1], device=bad_token.device).expand_as(bad_token)
    carried = torch.where(bad_row, -1, -2).unsqueeze(1)
    written = bad_token if mask is None else bad_token & mask
    last_bad = torch.where(written, times, carried).cummax(1).values
    if reset is None:
        return last_bad >= -1
    return last_bad >= torch.where(reset, times, -1).cummax(1).values


def bad_rows(state: TensorDict, like: Tensor) -> Tensor:
    """`[B]`: rows with a non-finite number in a floating leaf; a sum is finite if its terms are.

    `like` `[B, ...]` gives the number of rows and the device.
    """
    bad = torch.zeros(like.shape[:1], dtype=torch.bool, device=like.device)
    for leaf in leaves(state):
        if leaf.is_floating_point() and leaf.numel():
            total = leaf.detach().flatten(1).sum(1, dtype=_summing_dtype(leaf))
            bad = bad | ~torch.isfinite(total)
    return bad


def _summing_dtype(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _spoil(leaf: Tensor, rows: Tensor) -> Tensor:
    if not leaf.is_floating_point():
        return leaf
    return leaf + expand_rows(_nan_where(rows, leaf), leaf)


def _nan_where(flags: Tensor, like: Tensor) -> Tensor:
    return torch.zeros_like(flags, dtype=like.dtype).masked_fill(flags, torch.nan)
