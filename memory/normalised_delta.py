"""The normalised step with a rate and a ridge per key channel, for channel-gated memories.

    W_t = W_{t-1} Diag(1 - n_t * r_t) + (v_t - W_{t-1} k_t) (n_t * k_t)^T
    n_t = b_t / (|k_t|^2 + r_t),   b_t, r_t in R^K

Source: Falcon-2, arXiv 2608.27763, with its columns read as key channels; `value_channels` reads
them as value channels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from .channel_rule import ChannelRule, Edits
from .gates import Gate, WriteRate
from .heads import Heads
from .objective import Prediction
from .ridge import RidgeGates, RidgeStep, normalise_step
from .views import Tokens


class NormalisedDelta(ChannelRule):
    """Every key channel is written and fades at its own rate; half-lives spread over them all.

    The write is not along the key: as with `SelectiveDelta`, keys in turn can lengthen the weights
    where retention stays near 1.
    """

    predicts_with: Prediction = "previous"

    def __init__(
        self,
        heads: Heads,
        write_rate: Callable[[Heads], Gate] = WriteRate,
        shortest: float = 16.0,
        longest: float = 128.0,
    ) -> None:
        channels = replace(heads, num_heads=heads.num_heads * heads.key_width)
        super().__init__(heads, {"step": RidgeStep(channels, write_rate, shortest, longest)})

    def forward(self, features: Tensor, tokens: Tokens) -> Edits:
        query, key, value = tokens
        step = self.gates["step"](features, tokens)
        per_channel = RidgeGates(*(torch.unflatten(gate, -1, key.shape[-2:]) for gate in step))
        energy = key.square().sum(-1, keepdim=True)
        log_retention, rate = normalise_step(per_channel, energy)
        return Edits(query, key, rate * key, value, log_retention)
