"""The window of past pairs whose errors a token of an anchored memory improves besides its own.

    sum_{j in window(t)} p_tj g_j,   p_t = softmax over the window of a learned score per age

g_j is the gradient of pair j at the anchor of t's cell: pairs of earlier cells are back-propagated
once more. The window holds the last c valid pairs of the segment, token t's own included.

Source: the Omega rule of Behrouz et al. 2025 (ATLAS, arXiv 2505.23735), with one score per age in
place of a gate per pair, as in `pair_weights`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .checks import check_at_least
from .grid import Grid
from .heads import Heads, Piece
from .pair_weights import shares
from .segments import count_valid
from .views import Tokens
from .window import extend_window, slide_window, take


class BlockPairs(NamedTuple):
    """The P pairs that the tokens of each of N blocks see; the block's own L tokens come last."""

    key: Tensor
    """`[B, N, P, H, K]`"""
    value: Tensor
    """`[B, N, P, H, V]`"""
    shares: Tensor | None
    """`[B, H, N, L, P]`: p_tj; None when every token sees its own pair alone."""


class PairWindow(Piece):
    """Collects the pairs of windows of `window` valid tokens; 1 is the token alone."""

    def __init__(self, heads: Heads, window: int) -> None:
        super().__init__(heads)
        check_at_least("window", window, 1)
        self.window = window
        self.older = window - 1
        if window > 1:
            self.scores = nn.Parameter(torch.zeros(heads.num_heads, window))

    def init_state(self, batch: int, like: Tensor) -> dict[str, Tensor]:
        """`pairs` `[B, c - 1, H, K + V + 1]`, key, value and 1; nothing for a window of 1."""
        heads = self.heads
        row = heads.key_width + heads.value_width + 1
        if not self.older:
            return {}
        return {"pairs": like.new_zeros(batch, self.older, heads.num_heads, row)}

    def forward(
        self,
        tokens: Tokens,
        grid: Grid,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[BlockPairs, dict[str, Tensor]]:
        """The pairs of all blocks and the next leaves."""
        own_key, own_value = grid.fold(tokens.key), grid.fold(tokens.value)
        if not self.older:
            return BlockPairs(own_key, own_value, None), {}
        batch, steps = tokens.key.shape[:2]
        rows = torch.cat([tokens.key, tokens.value, torch.ones_like(tokens.key[..., :1])], dim=-1)
        extended = extend_window(state["pairs"], rows, mask)
        # Empty slots are marked, so that the carried window may be counted as full.
        full = torch.full((batch,), self.older, device=rows.device)
        before, end = count_valid(full, steps, reset, mask)
        valid = torch.ones_like(before) if mask is None else mask.long()
        rank = grid.fold(valid.cumsum(1) - valid)

        slots = torch.arange(self.older, device=rows.device)
        index = rank[..., :1] + slots
        older = torch.unflatten(take(extended, index.flatten(1)), 1, index.shape[1:])
        sizes = [self.heads.key_width, self.heads.value_width, 1]
        key, value, exists = torch.split(older, sizes, dim=-1)
        own = grid.valid.unsqueeze(-1).expand(*grid.valid.shape, self.heads.num_heads)
        exists = torch.cat([exists.squeeze(-1) > 0, own], dim=2)
        ranks = torch.cat([index - self.older, rank], dim=2)
        age = rank.unsqueeze(-1) - ranks.unsqueeze(-2)
        seen = self._shares(age, grid.fold(before), exists)
        pairs = BlockPairs(
            torch.cat([key, own_key], dim=2), torch.cat([value, own_value], dim=2), seen
        )
        occupied = None if reset is None else end
        return pairs, {"pairs": slide_window(extended, self.older, occupied, mask)}

    def _shares(self, age: Tensor, before: Tensor, exists: Tensor) -> Tensor:
        """p `[B, H, N, L, P]` from ages `[B, N, L, P]`, the tokens `[B, N, L]` of the segment
        before each token, and which pairs there are, `[B, N, P, H]`."""
        near = (age >= 0) & (age <= self.older) & (age <= before.unsqueeze(-1))
        visible = near.unsqueeze(1) & exists.movedim(3, 1).unsqueeze(3)
        scores = self.scores[:, self.older - age.clamp(0, self.older)].transpose(0, 1)
        return shares(scores, visible)
