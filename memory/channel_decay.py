"""What is left of writes when every key channel c has its own retention.

    s(x, y)[i, j] = sum_c x[i,c] y[j,c] exp(A[i,c] - A[j,c]),   A = cumulative log retention

The decay stands inside the contraction. Writes in the row's own block (near) are decayed token by
token. Those of the block before it, then of the pair of blocks before its pair, and so on (far),
are decayed over an anchor r at the end of these: exp(A_i - r) exp(r - A_j). No exponent is
positive, so that products can underflow but not overflow, and no anchor lies in a row's future.
Sums are in float64. Where all channels of a memory share one retention (K = 1 in its sums) the
decay stands outside the contraction, and all writes are decayed at once.

Source: the secondary chunking of GLA (Yang et al. 2023), anchored and cut at resets.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

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
    """Decays inside chunks: `log_retention` `[..., C, K]` <= 0, `reset` `[..., C]` bool or None.

    `[..., C, 1]` is one retention for all channels. C is `block_size` times a power of two.
    """

    def __init__(self, log_retention: Tensor, reset: Tensor | None, block_size: int) -> None:
        self.dtype = log_retention.dtype
        self.block_size = block_size
        self.log_retention = log_retention
        self.is_shared = log_retention.shape[-1] == 1
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
            self.start = take_rows(self.before, starts)

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
            start = take_rows(self.start, index)
        return self._place(take_rows(self.after, index), visible, segment, start)

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

    def decayed_keys(self, place: Placement, keys: Tensor) -> Tensor:
        """`keys` `[..., C, K]` as they stand in the memory that the one row of `place` meets."""
        gap = (place.exponent - self.after).masked_fill(~place.visible.mT, -torch.inf)
        return keys * gap.to(self.dtype).exp()

    def near_keys(self, keys: Tensor) -> Tensor:
        """`[..., C, b, K]`: the keys of each token's own block as they stand after its write.

        Not decayed, and of the token alone (b = 1), where one retention serves all channels.
        """
        if self.is_shared:
            return keys.unsqueeze(-2)
        keys, log_retention = (
            torch.unflatten(one, -2, (-1, self.block_size)) for one in (keys, self.log_retention)
        )
        retention = log_retention.exp()
        held = keys[..., :1, :]
        rows = [held]
        for row in range(1, self.block_size):
            own = slice(row, row + 1)
            held = torch.cat([held * retention[..., own, :], keys[..., own, :]], dim=-2)
            rows.append(held)
        size = self.block_size
        padded = [functional.pad(held, (0, 0, 0, size - held.shape[-2])) for held in rows]
        return torch.stack(padded, dim=-3).flatten(-4, -3)

    def scores(self, place: Placement, rows: Tensor, keys: Tensor, near: Tensor) -> Tensor:
        """Decayed products `[..., C, m, C]` of `rows` `[..., C, m, K]` and `keys` `[..., C, K]`.

        `place` has row i at token i, and `near` `[..., C, b, K]` are the keys of row i's block as
        its placement meets them; m products share the decays.
        """
        if self.is_shared:
            return self._shared(place, rows, keys)
        # Diagonal squares `[..., C / size, size, m, size]` that double until one is left.
        squares = torch.unflatten(_small_products(rows, near), -3, (-1, self.block_size))
        while squares.shape[-4] > 1:
            size = squares.shape[-1]
            corner = self._far(
                halves(place.exponent, size, 1),
                halves(self.after, size, 0),
                torch.unflatten(rows, -3, (-1, 2, size))[..., 1, :, :, :],
                halves(keys, size, 0),
            )
            upper = functional.pad(squares[..., ::2, :, :, :], (0, size))
            lower = torch.cat([corner, squares[..., 1::2, :, :, :]], dim=-1)
            squares = torch.cat([upper, lower], dim=-3)
        scores = squares.squeeze(-4)
        if self.segment is None:
            return scores
        return scores * place.visible.unsqueeze(-2).to(self.dtype)

    def scores_at(
        self, index: Tensor, place: Placement, rows: Tensor, keys: Tensor, near: Tensor
    ) -> Tensor:
        """As `scores`, with row i placed at any token `index[..., i]`: `place` is `at(index)`."""
        if self.is_shared:
            return self._shared(place, rows, keys)
        size = self.block_size
        num_blocks = keys.shape[-2] // size
        blocks = torch.arange(num_blocks, device=index.device)
        in_block = (index.unsqueeze(-1) // size == blocks).to(self.dtype)
        near = take_rows(near.flatten(-2), index)
        own = _small_products(rows, torch.unflatten(near, -1, (size, -1)))
        # `[..., C, m, C / b, b]`: zero in all blocks but that of the row's token.
        near = own.unsqueeze(-2) * in_block.unsqueeze(-2).unsqueeze(-1)
        exponent, rows = place.exponent.unsqueeze(-3), rows.unsqueeze(-4)
        after, keys = (torch.unflatten(one, -2, (-1, size)) for one in (self.after, keys))
        # `[..., C / b, C, m, b]`: every block as if it ended before every row.
        far = self._far(exponent, after, rows, keys).movedim(-4, -2).flatten(-2)
        later = (index.unsqueeze(-1) // size > self.times // size) & place.visible
        far = far * later.unsqueeze(-2).to(self.dtype)
        return near.flatten(-2) * place.visible.unsqueeze(-2).to(self.dtype) + far

    def _shared(self, place: Placement, rows: Tensor, keys: Tensor) -> Tensor:
        """`scores` and `scores_at` for one retention."""
        gap = (place.exponent - self.after.mT).masked_fill(~place.visible, -torch.inf)
        products = rows.flatten(-3, -2) @ keys.mT
        decay = gap.to(self.dtype).exp().unsqueeze(-2)
        return torch.unflatten(products, -2, (-1, rows.shape[-2])) * decay

    def _far(self, exponent: Tensor, after: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
        """Products `[..., n, m, c]` of rows `[..., n, m, K]` with keys `[..., c, K]` before them.

        `exponent` `[..., n, K]` and `after` `[..., c, K]` are their cumulative log retentions.
        """
        anchor = after[..., -1:, :]
        # Rounding can make a difference of equal sums positive; hidden rows may lie earlier.
        down = (exponent - anchor).clamp(max=0.0).to(self.dtype).exp()
        up = (anchor - after).to(self.dtype).exp()
        left = (rows * down.unsqueeze(-2)).flatten(-3, -2)
        products: Tensor = left @ (keys * up).mT
        return torch.unflatten(products, -2, (-1, rows.shape[-2]))


def _small_products(left: Tensor, right: Tensor) -> Tensor:
    """`left @ right.mT` of many matrices of few rows: for them a matrix product is slow."""
    return (left.unsqueeze(-2) * right.unsqueeze(-3)).sum(-1)


def halves(x: Tensor, size: int, which: int) -> Tensor:
    """First (0) or second (1) halves `[..., P, size, d]` of the squares in `x` `[..., C, d]`."""
    return torch.unflatten(x, -2, (-1, 2, size))[..., which, :, :]


def before_write(near: Tensor, block_size: int) -> Tensor:
    """Near keys `[..., C, b, K]` as each token meets them before its own decay and write."""
    blocks = torch.unflatten(near, -3, (-1, block_size))[..., :-1, :, :]
    return functional.pad(blocks, (0, 0, 0, 0, 1, 0)).flatten(-4, -3)


def take_rows(x: Tensor, index: Tensor) -> Tensor:
    """`x[..., index[..., n], :]` for `x` `[..., C, d]`."""
    index = index.expand(*x.shape[:-2], index.shape[-1])
    return x.gather(-2, index.unsqueeze(-1).expand(*index.shape, x.shape[-1]))
