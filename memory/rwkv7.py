"""RWKV-7's generalised delta rule: erase along one direction, write along another.

    W_t = W_{t-1} (Diag(w_t) - c_t (a_t * c_t)^T) + v_t h_t^T,   o_t = W_t q_t + <q_t, r * h_t> v_t
    c = normalise(k * x),   h = k * (1 + m * (a - 1)),   w = exp(-e^(-1/2) sigmoid(.))

An erase and a write are two edits in a row. Rotation of values between layers and low-rank
projections are left out; the memory's short convolution stands for the token shift.

Source: Peng et al. 2025, arXiv 2503.14456.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .channel_gates import BoundedRetention, ChannelRate
from .channel_rule import ChannelRule, Edits
from .heads import Heads, Piece
from .normalise import l2_normalise
from .objective import Prediction
from .views import Tokens


class GeneralisedDelta(ChannelRule):
    """The previous weights' answer to c leaves along a * c; then v enters along h.

    The erase is not symmetric: it can lengthen the weights for a while.
    """

    predicts_with: Prediction = "previous"
    edits_per_token = 2

    def __init__(
        self,
        heads: Heads,
        retention: Callable[[Heads], Piece] = BoundedRetention,
        erase_bias: float = 0.0,
    ) -> None:
        gates = {
            "retention": retention(heads),
            "erase_rate": ChannelRate(heads, "key", erase_bias),
        }
        super().__init__(heads, gates)
        channels = (heads.num_heads, heads.key_width)
        self.erase_scale = nn.Parameter(torch.ones(channels))
        self.write_mixing = nn.Parameter(torch.ones(channels))
        self.bonus = nn.Parameter(torch.zeros(channels))

    def forward(self, features: Tensor, tokens: Tokens) -> Edits:
        gates = self.gate_values(features)
        query, key, value = tokens
        direction = l2_normalise(key * self.erase_scale)
        written = self._written_key(key, gates["erase_rate"])
        nothing = torch.zeros_like(key)
        return Edits(
            query=_interleave(nothing, query),
            erase=_interleave(direction, nothing),
            write=_interleave(gates["erase_rate"] * direction, written),
            value=_interleave(torch.zeros_like(value), value),
            log_retention=_interleave(gates["retention"], nothing),
        )

    def bypass(self, features: Tensor, tokens: Tokens) -> Tensor:
        """The bonus of the current token, <q, r * h> v."""
        query, key, value = tokens
        written = self._written_key(key, self.gate_values(features)["erase_rate"])
        return (query * self.bonus * written).sum(-1, keepdim=True) * value

    def _written_key(self, key: Tensor, rate: Tensor) -> Tensor:
        return key * (1.0 + self.write_mixing * (rate - 1.0))


def _interleave(first: Tensor, second: Tensor) -> Tensor:
    """`[B, T, ...]` twice to `[B, 2 T, ...]`, first and second in turn."""
    return torch.stack([first, second], dim=2).flatten(1, 2)
