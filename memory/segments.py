"""Bookkeeping of flags: which tokens share a segment, and how many valid tokens came before each.

A reset at token t starts a new segment at t. A token is valid where `mask` is set.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class ValidCounts(NamedTuple):
    """Valid tokens of the segment `before` `[B, T]` each token and at the `end` `[B]`."""

    before: Tensor
    end: Tensor


def segment_ids(reset: Tensor) -> Tensor:
    """`[B, T]` int64: 0 for tokens that still see the carried-in state, +1 at every reset."""
    return reset.long().cumsum(1)


def same_segment(reset: Tensor) -> Tensor:
    """`[B, T, T]` bool: tokens t and j with no reset between them."""
    segment = segment_ids(reset)
    return segment.unsqueeze(2) == segment.unsqueeze(1)


def travelled(carried: Tensor, moves: Tensor, reset: Tensor | None) -> tuple[Tensor, Tensor]:
    """Sum of `moves` `[B, T]` since the last reset, `carried` `[B]` without one: before each token
    `[B, T]`, and at the end `[B]`.
    """
    sums = torch.nn.functional.pad(moves.cumsum(1), (1, 0))
    places = sums + carried.unsqueeze(1)
    if reset is not None:
        tokens = torch.arange(moves.shape[1], device=moves.device)
        at_reset = torch.where(reset, tokens, -1).cummax(1).values
        at_reset = torch.cat([at_reset, at_reset[:, -1:]], dim=1)
        since = sums - sums.gather(1, at_reset.clamp(min=0))
        places = torch.where(at_reset < 0, places, since)
    return places[:, :-1], places[:, -1].clone()


def count_valid(
    carried: Tensor, steps: int, reset: Tensor | None, mask: Tensor | None
) -> ValidCounts:
    """Count valid tokens since the last reset, starting from `carried` `[B]` (int64) of them."""
    carried = carried.unsqueeze(1)
    if mask is None:
        borders = torch.arange(steps + 1, device=carried.device).expand(carried.shape[0], -1)
    else:
        borders = torch.nn.functional.pad(mask.long().cumsum(1), (1, 0))
    if reset is None:
        counts = borders + carried
    else:
        # `borders` never falls, so its running maximum over resets is its value at the last reset.
        at_reset = torch.where(reset, borders[:, :-1], -1).cummax(1).values
        at_reset = torch.cat([at_reset, at_reset[:, -1:]], dim=1)
        counts = torch.where(at_reset < 0, borders + carried, borders - at_reset)
    # A copy, so that a state does not keep the whole call's counts alive.
    return ValidCounts(counts[:, :-1], counts[:, -1].clone())
