"""What is left of writes when every key channel c has its own retention.

    s(x, y)[i, j] = sum_c x[i,c] y[j,c] exp(A[i,c] - A[j,c]),   A = cumulative log retention

The decay stands inside the contraction, so it is taken either pair by pair (near columns) or, for
columns that end before the row's block, over an anchor r between them: exp(A_i - r) exp(r - A_j).
Both exponents are never positive, so a product can underflow but not overflow, and no anchor lies
in a row's future. Sums are in float64; exponents are masked before exp.

Source: the secondary chunking of GLA (Yang et al. 2023), anchored and cut at resets.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .decay import LOWEST_LOG


class Placement(NamedTuple):
    """Rows that look at the memory from some time of their chunk, n of them."""

    exponent: Tensor
    """`[..., n, K]` float64: cumulative log retention at that time."""
    visible: Tensor
    """`[..., n, C]` bool: the writes that the memory holds then."""
    carried: Tensor
    """`[..., n, K]`: what is left then of the carried-in weights, zero after a reset."""
    initial: Tensor | None
    """`[..., n, K]`: what is left of the initial weights; None when the chunks hold no reset."""


class ChannelDecay:
    """Decays inside chunks: `log_retention` `[..., C, K]` <= 0, `reset` `[..., C]` bool or None."""

    def __init__(self, log_retention: Tensor, reset: Tensor | None) -> None:
        self.dtype = log_retention.dtype
        own = log_retention.double().clamp(min=LOWEST_LOG)
        self.after = own.cumsum(-2)
        self.before = self.after - own
        self.times = torch.arange(own.shape[-2], device=own.device)
        self.segment: Tensor | None = None
        self.start: Tensor | None = None
        if reset is not None:
            self.segment = reset.long().cumsum(-1)
            starts = torch.where(reset, self.times, 0).cummax(-1).values
            # The cumulative sum just before the segment of each token.
            self.start = _take_rows(self.before, starts)

    def after_write(self) -> Placement:
        """Every token meets the memory after its own write."""
        visible = self.times <= self.times.unsqueeze(-1)
        return self._place(self.after, visible, self.segment, self.start)

    def before_decay(self) -> Placement:
        """Every token meets the memory before its decay and write, after a reset at it."""
        visible = self.times < self.times.unsqueeze(-1)
        return self._place(self.before, visible, self.segment, self.start)

    def at(self, index: Tensor) -> Placement:
        """Row n meets the memory after the write of token `index[..., n]` (int64)."""
        visible = self.times <= index.unsqueeze(-1)
        segment = start = None
        if self.segment is not None and self.start is not None:
            segment = self.segment.gather(-1, index.expand(*self.segment.shape[:-1], -1))
            start = _take_rows(self.start, index)
        return self._place(_take_rows(self.after, index), visible, segment, start)

    def at_end(self) -> Placement:
        """One row that meets the memory after the last token."""
        return self.at(self.times[-1:])

    def _place(
        self, exponent: Tensor, visible: Tensor, segment: Tensor | None, start: Tensor | None
    ) -> Placement:
        carried = exponent.to(self.dtype).exp()
        if self.segment is None or segment is None or start is None:
            return Placement(exponent, visible, carried, None)
        visible = visible & (segment.unsqueeze(-1) == self.segment.unsqueeze(-2))
        is_carried = (segment == 0).unsqueeze(-1).to(self.dtype)
        initial = (exponent - start).to(self.dtype).exp()
        return Placement(exponent, visible, carried * is_carried, initial * (1.0 - is_carried))

    def scores(self, place: Placement, rows: Tensor, keys: Tensor, block_size: int) -> Tensor:
        """Decayed products `[..., n, m, C]` of `rows` `[..., n, m, K]` and `keys` `[..., C, K]`.

        m products share the decays. With a block as long as the chunk every pair is taken by
        itself, which any placement allows; shorter blocks need row i placed at token i.
        """
        size, num_rows = keys.shape[-2], rows.shape[-3]
        if block_size >= size:
            return self._near(place, rows, keys, slice(0, num_rows), slice(0, size))
        columns = []
        for first in range(0, size, block_size):
            end = min(first + block_size, size)
            block = slice(first, end)
            near = self._near(place, rows, keys, block, block)
            # Rows before the block see nothing of it.
            above = near.new_zeros(*near.shape[:-3], first, *near.shape[-2:])
            parts = [above, near]
            if end < size:
                parts.append(self._far(place, rows, keys, slice(end, size), block))
            columns.append(torch.cat(parts, dim=-3))
        return torch.cat(columns, dim=-1)

    def _near(
        self, place: Placement, rows: Tensor, keys: Tensor, near: slice, block: slice
    ) -> Tensor:
        """Pair by pair: one exponent for every row, column and channel."""
        exponent = place.exponent[..., near, :].unsqueeze(-2)
        gap = exponent - self.after[..., block, :].unsqueeze(-3)
        hidden = ~place.visible[..., near, block].unsqueeze(-1)
        decays = gap.masked_fill(hidden, -torch.inf).to(self.dtype).exp()
        decayed = decays * keys[..., block, :].unsqueeze(-3)
        return rows[..., near, :, :] @ decayed.mT

    def _far(
        self, place: Placement, rows: Tensor, keys: Tensor, far: slice, block: slice
    ) -> Tensor:
        """Over the anchor at the block's last token: one matrix product."""
        anchor = self.after[..., block, :][..., -1:, :]
        # Rounding could make a difference of equal sums positive.
        down = (place.exponent[..., far, :] - anchor).clamp(max=0.0).to(self.dtype).exp()
        up = (anchor - self.after[..., block, :]).to(self.dtype).exp()
        left = (rows[..., far, :, :] * down.unsqueeze(-2)).flatten(-3, -2)
        products = left @ (keys[..., block, :] * up).mT
        products = torch.unflatten(products, -2, (-1, rows.shape[-2]))
        return products * place.visible[..., far, block].unsqueeze(-2).to(self.dtype)

    def decayed_keys(self, place: Placement, keys: Tensor) -> Tensor:
        """`keys` `[..., C, K]` as they stand in the memory that the one row of `place` meets."""
        gap = (place.exponent - self.after).masked_fill(~place.visible.mT, -torch.inf)
        return keys * gap.to(self.dtype).exp()


def _take_rows(x: Tensor, index: Tensor) -> Tensor:
    """`x[..., index[..., n], :]` for `x` `[..., C, K]`."""
    index = index.expand(*x.shape[:-2], index.shape[-1])
    return x.gather(-2, index.unsqueeze(-1).expand(*index.shape, x.shape[-1]))
