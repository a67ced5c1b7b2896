"""Stable Gated DeltaNet-2 with a mixture of storage: several memories per head, none left out.

    u = sqrt(b r_e) * k,   W_e <- W_e Diag(a_e) (I - u u^T) + r_e (w * v) u^T,   o = sum_e p_e W_e q

r and p are softmax routings of the write and of the read over the experts e. |u| <= |k| <= 1, so
I - u u^T never lengthens the weights, whatever the gates: they may stay open for a lifetime.

Source: MemT (stable erase, mixture of storage, snapshot reads). Its routing formula is not public:
softmax routing inside the root, and a half-life range spread over the experts, are our reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from .channel_gates import ChannelGate, ChannelRate, ChannelRetention
from .channel_rule import ChannelRule, Edits
from .checks import check_at_least
from .heads import Heads, Piece
from .views import Tokens


class LogRate(ChannelGate):
    """Log of a rate in (0, 1) per key channel: half of it is the log of the rate's root."""

    def __init__(self, heads: Heads, bias: float = 0.0) -> None:
        super().__init__(heads, torch.full((heads.num_heads, heads.key_width), float(bias)))

    def forward(self, features: Tensor) -> Tensor:
        return functional.logsigmoid(self.logits(features))


class Routing(ChannelGate):
    """Log weights `[B, T, H, num_experts]` that sum to one over the experts of each head."""

    def __init__(self, heads: Heads, num_experts: int) -> None:
        super().__init__(heads, torch.zeros(heads.num_heads, num_experts))

    def init_projection(self, weight: Tensor) -> None:
        """Not small: experts that are routed alike would learn alike."""
        Piece.init_projection(self, weight)

    def forward(self, features: Tensor) -> Tensor:
        return functional.log_softmax(self.logits(features), dim=-1)


class SymmetricErase(ChannelRule):
    """Erases and writes along the same vector, in `num_experts` memories per head at once.

    One write reads back as sqrt(b) w v, a converged one as w v / sqrt(b): normalise the readout.
    """

    def __init__(
        self,
        heads: Heads,
        num_experts: int = 4,
        retention: Callable[[Heads], Piece] = ChannelRetention,
        erase_bias: float = 0.0,
        write_bias: float = 0.0,
    ) -> None:
        check_at_least("num_experts", num_experts, 1)
        gates: dict[str, Piece] = {
            "retention": retention(replace(heads, num_heads=heads.num_heads * num_experts)),
            "erase_rate": LogRate(heads, erase_bias),
            "write_rate": ChannelRate(heads, "value", write_bias),
        }
        if num_experts > 1:
            gates["write_routing"] = Routing(heads, num_experts)
            gates["read_routing"] = Routing(heads, num_experts)
        super().__init__(heads, gates, num_experts)

    def forward(self, features: Tensor, tokens: Tokens) -> Edits:
        gates = self.gate_values(features)
        # `[B, T, H, 1, d]` views of the token, `[B, T, H, E, d]` of the experts.
        query, key = tokens.query.unsqueeze(-2), tokens.key.unsqueeze(-2)
        log_rate = gates["erase_rate"].unsqueeze(-2)
        written = (gates["write_rate"] * tokens.value).unsqueeze(-2)
        if self.num_experts > 1:
            log_routing = gates["write_routing"].unsqueeze(-1)
            log_rate = log_rate + log_routing
            written = written * log_routing.exp()
            # Reads are linear in the query, so routing it routes them.
            query = query * gates["read_routing"].exp().unsqueeze(-1)
        # The root of a sigmoid this way has a finite gradient at zero.
        edit = torch.exp(0.5 * log_rate) * key
        query, edit, value = (one.flatten(2, 3) for one in (query, edit, written))
        return Edits(query, edit, edit, value, gates["retention"])
