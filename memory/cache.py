"""What softmax attention keeps: every token since the reset, or the last `window` of them.

Token t sees the valid tokens j <= t of its own segment, cached or new, that are recent enough.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from .checks import check_at_least
from .heads import Heads, Piece
from .segments import same_segment, segment_ids
from .state import expand_rows
from .views import Tokens
from .window import extend_window, slide_window


class Entries(NamedTuple):
    """Keys `[B, n, H, K]`, values `[B, n, H, V]`, and which of them each token sees `[B, T, n]`.

    `most` <= n: no token sees more of them than that.
    """

    keys: Tensor
    values: Tensor
    visible: Tensor
    most: int


class Cache(Piece, ABC):
    """Stores keys and values; `position` `[B]` in the state counts valid tokens since the reset."""

    grows: bool = False

    @abstractmethod
    def init_state(self, batch: int, like: Tensor) -> dict[str, Tensor]:
        """The empty cache of `batch` rows, with the type and device of `like`."""

    @abstractmethod
    def reset_rows(self, state: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
        """The cache emptied in the rows where `rows` `[B]` is set."""

    @abstractmethod
    def forward(
        self,
        tokens: Tokens,
        state: Mapping[str, Tensor],
        occupied: Tensor,
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Entries, dict[str, Tensor]]:
        """What the tokens see, and the next cache; `occupied` `[B]` is the next `position`."""


class GrowingCache(Cache):
    """Every valid token since the reset: `keys`, `values` `[B, n, H, d]` and `valid` `[B, n]`.

    n grows with every token and is shared by the rows; calls with flags drop the slots that are
    valid in no row. States can be concatenated when their n agree. With flags n depends on data,
    which `torch.func.vmap` does not allow: map over rows with `SlidingWindow`.
    """

    grows = True

    def init_state(self, batch: int, like: Tensor) -> dict[str, Tensor]:
        heads = self.heads
        return {
            "keys": like.new_zeros(batch, 0, heads.num_heads, heads.key_width),
            "values": like.new_zeros(batch, 0, heads.num_heads, heads.value_width),
            "valid": like.new_zeros(batch, 0, dtype=torch.bool),
        }

    def reset_rows(self, state: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
        valid = state["valid"] & ~rows.unsqueeze(1)
        return _keep_valid(state["keys"], state["values"], valid)

    def forward(
        self,
        tokens: Tokens,
        state: Mapping[str, Tensor],
        occupied: Tensor,
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Entries, dict[str, Tensor]]:
        new = _visible_tokens(tokens, reset, mask)
        old = state["valid"].unsqueeze(1).expand(-1, new.shape[1], -1)
        if reset is not None:
            old = old & (segment_ids(reset) == 0).unsqueeze(-1)
        keys = torch.cat([state["keys"], tokens.key], dim=1)
        values = torch.cat([state["values"], tokens.value], dim=1)
        visible = torch.cat([old, new], dim=2)
        if reset is None and mask is None:
            next_state = {"keys": keys, "values": values, "valid": visible[:, -1].clone()}
        else:
            next_state = _keep_valid(keys, values, visible[:, -1])
        return Entries(keys, values, visible, keys.shape[1]), next_state


class SlidingWindow(Cache):
    """The last `window` valid tokens, oldest first: `keys`, `values` `[B, window, H, d]`."""

    def __init__(self, heads: Heads, window: int = 64) -> None:
        super().__init__(heads)
        check_at_least("window", window, 1)
        self.window = window

    def init_state(self, batch: int, like: Tensor) -> dict[str, Tensor]:
        heads = self.heads
        return {
            "keys": like.new_zeros(batch, self.window, heads.num_heads, heads.key_width),
            "values": like.new_zeros(batch, self.window, heads.num_heads, heads.value_width),
        }

    def reset_rows(self, state: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
        return {
            name: state[name].masked_fill(expand_rows(rows, state[name]), 0.0)
            for name in ("keys", "values")
        }

    def forward(
        self,
        tokens: Tokens,
        state: Mapping[str, Tensor],
        occupied: Tensor,
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Entries, dict[str, Tensor]]:
        new = _visible_tokens(tokens, reset, mask)
        batch, steps, device = *new.shape[:2], new.device
        # Order among valid tokens: 0 for the newest cached one, 1 for the first new one.
        if mask is None:
            order = torch.arange(1, steps + 1, device=device).expand(batch, -1)
        else:
            order = mask.long().cumsum(1)
        old_order = torch.arange(1 - self.window, 1, device=device)
        cached = old_order > -state["position"].unsqueeze(1)
        recent = order.unsqueeze(-1) - old_order < self.window
        old = cached.unsqueeze(1) & recent
        if reset is not None:
            old = old & (segment_ids(reset) == 0).unsqueeze(-1)
        new = new & (order.unsqueeze(2) - order.unsqueeze(1) < self.window)

        cells = {"keys": tokens.key, "values": tokens.value}
        full = None if reset is None else occupied
        next_state = {
            name: slide_window(extend_window(state[name], cell, mask), self.window, full, mask)
            for name, cell in cells.items()
        }
        entries = Entries(
            torch.cat([state["keys"], tokens.key], dim=1),
            torch.cat([state["values"], tokens.value], dim=1),
            torch.cat([old, new], dim=2),
            self.window,
        )
        return entries, next_state


def _visible_tokens(tokens: Tokens, reset: Tensor | None, mask: Tensor | None) -> Tensor:
    """`[B, T, T]`: the new tokens that each new token sees, itself included when it is valid."""
    batch, steps = tokens.key.shape[:2]
    visible = torch.ones(steps, steps, dtype=torch.bool, device=tokens.key.device).tril()
    visible = visible.expand(batch, -1, -1)
    if reset is not None:
        visible = visible & same_segment(reset)
    return visible if mask is None else visible & mask.unsqueeze(1)


def _keep_valid(keys: Tensor, values: Tensor, valid: Tensor) -> dict[str, Tensor]:
    """The cache without the slots that are valid in no row, and zeros in the invalid ones left."""
    used = valid.any(0)
    keys, values, valid = keys[:, used], values[:, used], valid[:, used]
    slots = valid.unsqueeze(-1).unsqueeze(-1)
    return {
        "keys": torch.where(slots, keys, 0.0),
        "values": torch.where(slots, values, 0.0),
        "valid": valid,
    }
