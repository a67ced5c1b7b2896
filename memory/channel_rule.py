"""What a channel-gated memory does at a token, and the rules without an expert mixture.

    W_t = W_{t-1} Diag(a_t) + (value_t - W erase_t) write_t^T,   o_t = W_t query_t

W on the right is W_{t-1} Diag(a_t) (decayed) or W_{t-1} (previous).

    Hebbian          erase = 0      write = k   value = v        Yang et al. 2023 (GLA)
    delta            erase = b k    write = k   value = b v      Kimi Team 2025 (KDA)
    selective delta  erase = b * k  write = k   value = w * v    Gated DeltaNet-2, b and w vectors
    feedback delta   erase = b d k  write = k   value = b v      Hu et al. 2025 (Comba)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .backend_kernels import CHANNEL_DELTA, CHANNEL_HEBBIAN, FEEDBACK_DELTA, Kernel
from .channel_gates import ChannelRate, ChannelRetention
from .gates import Gate, RetentionGate, WriteRate
from .heads import Heads, Piece
from .objective import Prediction
from .views import Tokens


class Edits(NamedTuple):
    """Edits in the order of time, E = T times `edits_per_token`, for M memories; one read each."""

    query: Tensor
    """`[B, E, M, K]`"""
    erase: Tensor | None
    """`[B, E, M, K]`, None when nothing is erased."""
    write: Tensor
    """`[B, E, M, K]`"""
    value: Tensor
    """`[B, E, M, V]`"""
    log_retention: Tensor
    """`[B, E, M, K]`, or `[B, E, M, 1]` for one in all channels; <= 0."""
    erase_rate: Tensor | None = None
    """`[B, E, M, K]` or `[B, E, M, 1]`: erase = rate * write, where the rule knows one."""


class ChannelRule(Piece, ABC):
    """Turns tokens into edits of `num_experts` memories per head; their reads are added up."""

    predicts_with: Prediction = "decayed"
    edits_per_token: int = 1
    kernel: Kernel | None = None
    """The kernel that can run its edits; see `backend_kernels`."""

    def __init__(self, heads: Heads, gates: Mapping[str, Piece], num_experts: int = 1) -> None:
        super().__init__(heads)
        self.num_experts = num_experts
        self.gates = nn.ModuleDict(gates)
        self.sizes = [gate.num_features for gate in gates.values()]
        self.num_features = sum(self.sizes)

    @property
    def memories(self) -> Heads:
        """The sizes of the memories that the edits are for."""
        return replace(self.heads, num_heads=self.heads.num_heads * self.num_experts)

    def init_projection(self, weight: Tensor) -> None:
        parts = torch.split(weight, self.sizes)
        for gate, rows in zip(self.gates.values(), parts, strict=True):
            if isinstance(gate, Piece):
                gate.init_projection(rows)

    def gate_values(self, features: Tensor) -> dict[str, Tensor]:
        """Every gate's value, by name."""
        parts = torch.split(features, self.sizes, dim=-1)
        return {
            name: gate(part) for (name, gate), part in zip(self.gates.items(), parts, strict=True)
        }

    @abstractmethod
    def forward(self, features: Tensor, tokens: Tokens) -> Edits:
        """The edits of `tokens`, gated by `features` `[B, T, num_features]`."""

    def bypass(self, features: Tensor, tokens: Tokens) -> Tensor | None:
        """What is read past the memory, `[B, T, H, V]`, or None for nothing."""
        return None


class ChannelHebbian(ChannelRule):
    """Adds every value in full; key channels fade at their own rates."""

    predicts_with: Prediction = "none"
    kernel = CHANNEL_HEBBIAN

    def __init__(
        self, heads: Heads, retention: Callable[[Heads], Piece] = ChannelRetention
    ) -> None:
        super().__init__(heads, {"retention": retention(heads)})

    def forward(self, features: Tensor, tokens: Tokens) -> Edits:
        retention = self.gate_values(features)["retention"]
        return Edits(tokens.query, None, tokens.key, tokens.value, retention)


class ChannelDelta(ChannelRule):
    """The delta rule with one write rate per head after a decay per key channel."""

    kernel = CHANNEL_DELTA

    def __init__(
        self,
        heads: Heads,
        retention: Callable[[Heads], Piece] = ChannelRetention,
        write_rate: Callable[[Heads], Gate] = WriteRate,
    ) -> None:
        super().__init__(heads, {"retention": retention(heads), "write_rate": write_rate(heads)})

    def forward(self, features: Tensor, tokens: Tokens) -> Edits:
        gates = self.gate_values(features)
        query, key, value = tokens
        rate = gates["write_rate"].unsqueeze(-1)
        return Edits(query, rate * key, key, rate * value, gates["retention"], rate)


class SelectiveDelta(ChannelRule):
    """Erases each key channel and writes each value channel at a rate of its own.

    One erase can lengthen the weights by up to 2/sqrt(3), and alternating keys without decay make
    them grow without bound: prefer `SymmetricErase` where retention stays near 1.
    """

    kernel = CHANNEL_DELTA

    def __init__(
        self,
        heads: Heads,
        retention: Callable[[Heads], Piece] = ChannelRetention,
        erase_bias: float = 0.0,
        write_bias: float = 0.0,
    ) -> None:
        gates = {
            "retention": retention(heads),
            "erase_rate": ChannelRate(heads, "key", erase_bias),
            "write_rate": ChannelRate(heads, "value", write_bias),
        }
        super().__init__(heads, gates)

    def forward(self, features: Tensor, tokens: Tokens) -> Edits:
        gates = self.gate_values(features)
        query, key, value = tokens
        erase, written = gates["erase_rate"] * key, gates["write_rate"] * value
        return Edits(query, erase, key, written, gates["retention"], gates["erase_rate"])


class FeedbackDelta(ChannelRule):
    """Erases a learned fraction d of what the previous weights say, one retention per head.

    `correction` starts D of o_t = W_t (q_t - D d k_t), which takes the key out of the query.
    """

    predicts_with: Prediction = "previous"
    kernel = FEEDBACK_DELTA

    def __init__(
        self,
        heads: Heads,
        retention: Callable[[Heads], Gate] = RetentionGate,
        write_rate: Callable[[Heads], Gate] = WriteRate,
        correction: float = 0.02,
    ) -> None:
        super().__init__(heads, {"retention": retention(heads), "write_rate": write_rate(heads)})
        self.feedback = nn.Parameter(torch.ones(heads.num_heads))
        self.correction = nn.Parameter(torch.full((heads.num_heads,), float(correction)))

    def forward(self, features: Tensor, tokens: Tokens) -> Edits:
        gates = self.gate_values(features)
        query, key, value = tokens
        rate = gates["write_rate"].unsqueeze(-1)
        predicted = torch.sigmoid(self.feedback).unsqueeze(-1) * key
        # Queries come scaled by key_width^(-1/2).
        scale = self.correction.unsqueeze(-1) * self.heads.key_width**-0.5
        retention = gates["retention"].unsqueeze(-1)
        return Edits(query - scale * predicted, rate * predicted, key, rate * value, retention)
