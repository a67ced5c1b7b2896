"""What a memory sees of a token: a query, a key and a value per head.

    q, k = norm(phi(conv(W_qk x))),   v = psi(conv(W_v x)),   q scaled by key_width^(-1/2)

Source: the projections of DeltaNet (Yang et al. 2024), with the feature map phi a choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from .checks import check_at_least, check_choice
from .convolution import ShortConvolution
from .features import FEATURE_MAPS, KEY_NORMS
from .heads import Heads, Piece


class Tokens(NamedTuple):
    """Queries and keys `[B, T, H, K]`, values `[B, T, H, V]`."""

    query: Tensor
    key: Tensor
    value: Tensor


class Views(Piece):
    """Projection, short convolution, feature map and normalisation: x to q, k, v.

    `conv_width` taps look back over `conv_width - 1` tokens (1: no convolution). `feature_map` acts
    on queries and keys, `value_map` on values: identity, silu, relu or elu_plus_one. `key_norm` is
    `l2` (needed by delta rules: longer keys make the write overshoot) or `none`.
    """

    def __init__(
        self,
        heads: Heads,
        conv_width: int = 4,
        feature_map: str = "silu",
        key_norm: str = "l2",
        value_map: str = "silu",
    ) -> None:
        super().__init__(heads)
        check_at_least("conv_width", conv_width, 1)
        check_choice("feature_map", feature_map, FEATURE_MAPS)
        check_choice("value_map", value_map, FEATURE_MAPS)
        check_choice("key_norm", key_norm, KEY_NORMS)
        self.num_key_features = 2 * heads.num_heads * heads.key_width
        self.num_features = self.num_key_features + heads.num_heads * heads.value_width
        self.convolution = (
            ShortConvolution(self.num_features, conv_width) if conv_width > 1 else None
        )
        self.feature_map = FEATURE_MAPS[feature_map]
        self.value_map = FEATURE_MAPS[value_map]
        self.key_norm = KEY_NORMS[key_norm]

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """`conv_window` `[B, conv_width - 1, num_features]`, absent without a convolution."""
        if self.convolution is None:
            return {}
        return {"conv_window": self.convolution.empty_window(batch)}

    def forward(
        self,
        features: Tensor,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tokens, dict[str, Tensor]]:
        """Split `features` `[B, T, num_features]` into tokens; also the next convolution window."""
        next_state: dict[str, Tensor] = {}
        if self.convolution is not None:
            window = state["conv_window"]
            features, next_state["conv_window"] = self.convolution(features, window, reset, mask)

        heads = self.heads
        keys, values = torch.split(
            features, [self.num_key_features, self.num_features - self.num_key_features], dim=-1
        )
        keys = torch.unflatten(keys, -1, (2, heads.num_heads, heads.key_width))
        query, key = self.key_norm(self.feature_map(keys)).unbind(-3)
        value = torch.unflatten(self.value_map(values), -1, (heads.num_heads, heads.value_width))
        return Tokens(query * heads.key_width**-0.5, key, value), next_state
