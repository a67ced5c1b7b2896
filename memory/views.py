"""What a memory sees of a token: a query, a key and a value per head.

    q, k = R_t norm(phi(f(conv(W_qk x)))),   v = psi(g(conv(W_v x))),   q scaled by key_width^(-1/2)
    R_t  turns to the place p_t;   p_{t+1} = p_t + 1,   or steered: p_t + tanh(w . x_t + b)

R_t is a rotation by position, f and g are small learned networks per head; or nothing. key_width is
the length of the keys as they are stored. Source: the projections of DeltaNet (Yang et al. 2024),
with the feature map phi a choice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .checks import check_at_least, check_choice
from .convolution import ShortConvolution
from .feature_network import FeatureNetwork
from .features import EXPANSIONS, FEATURE_MAPS, KEY_NORMS
from .heads import Heads, Piece
from .rotary import ANGLES, rotate
from .segments import count_valid, travelled

INITIAL_HEADING = 2.0  # tanh of it is .96: at first a tape is wound forward


class Tokens(NamedTuple):
    """Queries and keys `[B, T, H, K]`, values `[B, T, H, V]`.

    With n writes per token, keys and values have n * H rows: `Heads.num_writes` gives their order;
    with n queries per head, queries have n * H rows in the order of `Heads.num_queries`.
    """

    query: Tensor
    key: Tensor
    value: Tensor


class TokenViews(Piece, ABC):
    """What makes tokens; `token_heads` gives their sizes: keys may be longer than in `heads`."""

    token_heads: Heads

    def lengthened(self, key: Tensor) -> Tensor:
        """Keys or queries `[..., heads.key_width]` with unit norm as they are stored, unscaled."""
        return key

    @abstractmethod
    def init_state(self, batch: int) -> dict[str, Tensor]:
        """The leaves `[B, ...]` that the views carry from call to call."""

    @abstractmethod
    def forward(
        self,
        features: Tensor,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tokens, dict[str, Tensor]]:
        """Tokens of `features` `[B, T, num_features]`, and the next values of the leaves."""


class Views(TokenViews):
    """Projection, short convolution, feature map and normalisation: x to q, k, v.

    `conv_width` taps look back over `conv_width - 1` tokens (1: no convolution). `feature_map` acts
    on queries and keys, `value_map` on values: identity, silu, relu or elu_plus_one; the maps dpfp,
    dpfp2, dpfp3, taylor and hedgehog make queries and keys longer. `key_norm` is `l2` (needed by
    delta rules: longer keys make the write overshoot) or `none`. `positions`: `rotary` or `even`
    (how keys and queries turn with every valid token since the reset: `rotate`), `steered` (even,
    but every token says how far to go on, from -1 to 1: a tape that can be read backwards) or
    `none`.

    `key_network` and `value_network` are hidden units per channel of a learned network per head
    (`FeatureNetwork`), one for queries and keys and one for values; 0: none.
    """

    first_position: Tensor

    def __init__(
        self,
        heads: Heads,
        conv_width: int = 4,
        feature_map: str = "silu",
        key_norm: str = "l2",
        value_map: str = "silu",
        positions: str = "none",
        key_network: int = 0,
        value_network: int = 0,
    ) -> None:
        super().__init__(heads)
        check_at_least("conv_width", conv_width, 1)
        check_choice("feature_map", feature_map, [*FEATURE_MAPS, *EXPANSIONS])
        check_choice("value_map", value_map, FEATURE_MAPS)
        check_choice("key_norm", key_norm, KEY_NORMS)
        check_choice("positions", positions, (*ANGLES, "steered", "none"))
        self.num_key_features = (heads.num_queries + heads.num_writes) * heads.key_width
        self.num_features = self.num_key_features + heads.num_writes * heads.value_width
        self.convolution = (
            ShortConvolution(self.num_features, conv_width) if conv_width > 1 else None
        )
        if feature_map in EXPANSIONS:
            self.feature_map, grown_width = EXPANSIONS[feature_map]
            self.token_heads = replace(heads, key_width=grown_width(heads.key_width))
        else:
            self.feature_map, self.token_heads = FEATURE_MAPS[feature_map], heads
        if positions != "none" and self.token_heads.key_width % 2:
            raise ValueError(
                f"keys must have even width for {positions} positions, got "
                f"{self.token_heads.key_width}; use {self.token_heads.key_width + 1}"
            )
        self.positions = positions
        self.register_buffer("first_position", torch.zeros(1, dtype=torch.int64), persistent=False)
        self.heading: nn.Parameter | None = None
        if positions == "steered":
            self.num_features += 1
            self.heading = nn.Parameter(torch.tensor([INITIAL_HEADING]))
        self.key_network = _network("key_network", heads, heads.key_width, key_network)
        self.value_network = _network("value_network", heads, heads.value_width, value_network)
        self.value_map = FEATURE_MAPS[value_map]
        self.key_norm = KEY_NORMS[key_norm]

    def lengthened(self, key: Tensor) -> Tensor:
        if self.token_heads is self.heads:
            return key
        return self.key_norm(self.feature_map(key))

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """`conv_window` `[B, conv_width - 1, num_features]`, absent without a convolution.

        With positions also `position` `[B]` (int64), or steered ones `place` `[B, 1]` (float64).
        """
        leaves: dict[str, Tensor] = {}
        if self.convolution is not None:
            leaves["conv_window"] = self.convolution.empty_window(batch)
        if self.heading is not None:
            device = self.heading.device
            leaves["place"] = torch.zeros(batch, 1, dtype=torch.float64, device=device)
        elif self.positions != "none":
            leaves["position"] = self.first_position.expand(batch)
        return leaves

    def forward(
        self,
        features: Tensor,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tokens, dict[str, Tensor]]:
        """Split `features` `[B, T, num_features]` into tokens; also the next convolution window."""
        next_state: dict[str, Tensor] = {}
        where = None
        if self.heading is not None:
            features, move = features[..., :-1], torch.tanh(features[..., -1] + self.heading)
            where, next_state["place"] = self._steer(move, state["place"], reset, mask)
        elif self.positions != "none":
            where, next_state["position"] = count_valid(
                state["position"], features.shape[1], reset, mask
            )
        if self.convolution is not None:
            window = state["conv_window"]
            features, next_state["conv_window"] = self.convolution(features, window, reset, mask)

        heads = self.heads
        keys, values = torch.split(
            features, [self.num_key_features, features.shape[-1] - self.num_key_features], dim=-1
        )
        keys = torch.unflatten(keys, -1, (heads.num_queries + heads.num_writes, heads.key_width))
        if self.key_network is not None:
            keys = self.key_network(keys)
        keys = self.key_norm(self.feature_map(keys))
        if where is not None:
            keys = rotate(keys, where, "rotary" if self.positions == "rotary" else "even")
        query, key = torch.split(keys, [heads.num_queries, heads.num_writes], dim=-2)
        value = torch.unflatten(values, -1, (heads.num_writes, heads.value_width))
        if self.value_network is not None:
            value = self.value_network(value)
        value = self.value_map(value)
        return Tokens(query * self.token_heads.key_width**-0.5, key, value), next_state

    def _steer(
        self, move: Tensor, place: Tensor, reset: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Places `[B, T]` before the moves of the tokens, and the one `[B, 1]` after them.

        A token that is no number moves nothing, so that a reset clears it. Added up in float64, so
        that acting equals training; even angles are whole turns after twice as many places as keys
        are wide, so that a place never grows long.
        """
        move = move.double().nan_to_num()
        if mask is not None:
            move = torch.where(mask, move, 0.0)
        before, end = travelled(place.squeeze(1), move, reset)
        return before, end.remainder(2 * self.token_heads.key_width).unsqueeze(1)


def _network(name: str, heads: Heads, width: int, expansion: int) -> FeatureNetwork | None:
    """The network of `expansion` hidden units per channel, None for 0."""
    check_at_least(name, expansion, 0)
    return FeatureNetwork(heads.num_heads, width, expansion) if expansion else None
