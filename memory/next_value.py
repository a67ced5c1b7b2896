"""Views that pair each value with the key before it, so that a memory predicts what comes next.

    k_t -> k_{t-1},  t - 1 the previous valid token of the segment; zero for its first token

Source: the prefix-aligned pairs of Falcon, arXiv 2608.27763.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from .heads import Heads
from .segments import count_valid
from .views import Tokens, TokenViews, Views
from .window import extend_window, slide_window, take


class NextValue(TokenViews):
    """The tokens of `views` with the previous valid key in place of each key."""

    def __init__(self, heads: Heads, views: Callable[[Heads], TokenViews] = Views) -> None:
        super().__init__(heads)
        self.views = views(heads)
        self.num_features = self.views.num_features
        self.token_heads = self.views.token_heads
        key_shape = (1, heads.num_writes, self.token_heads.key_width)
        self.register_buffer("no_key", torch.zeros(key_shape), persistent=False)

    no_key: Tensor

    def init_projection(self, weight: Tensor) -> None:
        self.views.init_projection(weight)

    def lengthened(self, key: Tensor) -> Tensor:
        return self.views.lengthened(key)

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """The leaves of `views` and `previous_key` `[B, 1, H, K]`, zero when there is none."""
        leaves = self.views.init_state(batch)
        leaves["previous_key"] = self.no_key.expand(batch, -1, -1, -1)
        return leaves

    def forward(
        self,
        features: Tensor,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tokens, dict[str, Tensor]]:
        tokens, next_state = self.views(features, state, reset, mask)
        steps = features.shape[1]
        extended = extend_window(state["previous_key"], tokens.key, mask)
        if mask is None:
            previous = extended[:, :steps]
        else:
            previous = take(extended, mask.long().cumsum(1) - mask.long())
        occupied = None
        if reset is not None:
            # A missing key is zero, so that the carried one may be counted as there.
            carried = torch.ones(features.shape[0], dtype=torch.int64, device=features.device)
            before, occupied = count_valid(carried, steps, reset, mask)
            previous = previous * (before > 0).unsqueeze(-1).unsqueeze(-1)
        next_state["previous_key"] = slide_window(extended, 1, occupied, mask)
        return tokens._replace(key=previous), next_state
