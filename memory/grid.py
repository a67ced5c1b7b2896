"""Where the tokens of a call fall on each row's own grid of cells.

A cell holds `size` valid tokens. `phase` counts those of the running cell that came in earlier
calls; it belongs to the row, is not touched by a reset and is advanced by valid tokens only. So the
rows of a batch, and the calls that cut a sequence, may stand anywhere on their grids.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .segments import count_valid


class Grid:
    """Arranges `[B, T, ...]` as `[B, N, L, ...]`: N blocks of L slots, the unused ones empty.

    A block holds tokens of one cell only; masked tokens may make a cell need several. N and L do
    not depend on the flags' values. `phase` is `[B]` int64.
    """

    def __init__(
        self, phase: Tensor, steps: int, size: int, reset: Tensor | None, mask: Tensor | None
    ) -> None:
        times = torch.arange(steps, device=phase.device).expand(phase.shape[0], -1)
        valid = torch.ones_like(times) if mask is None else mask.long()
        after = phase.unsqueeze(1) + valid.cumsum(1)
        cell = (after - valid) // size
        new_cell = functional.pad(cell.diff(dim=1) > 0, (1, 0))
        self.starts = new_cell if reset is None else new_cell | reset
        self.mask = mask
        self.next_phase = after[:, -1] % size

        place = times - torch.where(new_cell, times, 0).cummax(1).values
        block = (place % size == 0).long().cumsum(1) - 1
        self.num_slots = min(size, steps)
        num_cells = (steps + 2 * size - 2) // size  # enough for any phase
        self.num_blocks = num_cells if mask is None else min(steps, num_cells + steps // size)
        self.slots = block * self.num_slots + place % size
        self.in_order = steps == 1 or (size == 1 and mask is None)

        completes = (valid > 0) & (after % size == 0)
        self.full = self.fold(completes).any(-1)
        """`[B, N]`: whether a cell ends with the block."""
        self.valid = self.fold(valid > 0)
        """`[B, N, L]`: slots whose token writes."""
        self.reset = None if reset is None else self.fold(reset)
        self.restarted = None if self.reset is None else self.reset.long().cumsum(2) > 0
        """`[B, N, L]`: slots after a reset in their block, or None where no reset can be."""

    def fold(self, x: Tensor) -> Tensor:
        """`[B, T, ...]` to `[B, N, L, ...]`, zero in the empty slots."""
        if not self.in_order:
            size = self.num_blocks * self.num_slots
            empty = x.new_zeros(x.shape[0], size, *x.shape[2:])
            x = empty.scatter(1, self._index(x), x)
        return torch.unflatten(x, 1, (self.num_blocks, self.num_slots))

    def count(self, carried: Tensor) -> tuple[Tensor, Tensor]:
        """Valid tokens of the cell since the last reset, starting from `carried` `[B]` of them.

        `[B, N, L]` with each token itself, and `[B]` at the end, 0 where a cell was completed.
        Empty slots at the end of a block repeat its last token's count.
        """
        before, end = count_valid(carried, self.starts.shape[1], self.starts, self.mask)
        count = before + 1 if self.mask is None else before + self.mask.long()
        places = torch.arange(self.num_slots, device=carried.device)
        occupied = self.fold(torch.ones_like(self.starts))
        last = torch.where(occupied, places, 0).cummax(2).values
        return self.fold(count).gather(2, last), torch.where(self.next_phase == 0, 0, end)

    def unfold(self, x: Tensor) -> Tensor:
        """`[B, N, L, ...]` to `[B, T, ...]`."""
        x = x.flatten(1, 2)
        return x if self.in_order else x.gather(1, self._index(x))

    def _index(self, x: Tensor) -> Tensor:
        trailing = x.shape[2:]
        index = self.slots.view(*self.slots.shape, *(1,) * len(trailing))
        return index.expand(-1, -1, *trailing)
