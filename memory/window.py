"""The last m valid tokens of a row, oldest first, newest last; empty slots hold zeros."""

from __future__ import annotations

import torch
from torch import Tensor


def extend_window(window: Tensor, tokens: Tensor, mask: Tensor | None) -> Tensor:
    """`[B, m + T, ...]`: the window, then the valid tokens of `tokens` `[B, T, ...]` in order.

    Tokens that are not valid are moved behind all valid ones, where no reader looks.
    """
    if mask is not None:
        order = torch.argsort((~mask).to(torch.int8), dim=1, stable=True)
        tokens = take(tokens, order)
    return torch.cat([window, tokens], dim=1)


def take(tokens: Tensor, index: Tensor) -> Tensor:
    """`tokens[b, index[b, i]]`: `[B, n, ...]`, `[B, k]` -> `[B, k, ...]`."""
    trailing = tokens.shape[2:]
    index = index.view(*index.shape, *(1,) * len(trailing)).expand(*index.shape, *trailing)
    return tokens.gather(1, index)


def slide_window(
    extended: Tensor, size: int, occupied: Tensor | None, mask: Tensor | None
) -> Tensor:
    """The window `[B, size, ...]` after the call, from the `extended` one.

    `occupied` `[B]`: how many valid tokens the last segment holds, or None when no reset happened.
    """
    if mask is None:
        window = extended[:, extended.shape[1] - size :].contiguous()
    else:
        slots = torch.arange(size, device=extended.device)
        window = take(extended, mask.sum(1, keepdim=True) + slots)
    if occupied is None:
        return window
    age = torch.arange(size - 1, -1, -1, device=extended.device)
    full = age < occupied.unsqueeze(1)
    return torch.where(full.view(*full.shape, *(1,) * (window.ndim - 2)), window, 0.0)
