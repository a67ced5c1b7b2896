"""From what the heads read to the memory's output.

    y_t = W_out (rms_norm(o_t) * g(W_g x_t)),   normalised per head

Source: Sun et al. 2023 (RetNet), Yang et al. 2024 (Gated DeltaNet).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from .checks import check_choice
from .heads import Heads, Piece
from .normalise import rms_normalise
from .precision import full_precision

GATES: dict[str, Callable[[Tensor], Tensor] | None] = {
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "none": None,
}


class Readout(Piece):
    """Norm, gate and output projection: reads `[B, T, H, V]` to `[B, T, width]`.

    With n queries per head there are n * H reads, all side by side.

    `norm`: `rms` (per head, with a learned scale; makes the output blind to how much the memory
    holds) or `none`. `gate`: `silu`, `sigmoid` or `none`, of a projection of the input.
    """

    def __init__(self, heads: Heads, norm: str = "rms", gate: str = "silu") -> None:
        super().__init__(heads)
        check_choice("norm", norm, ("rms", "none"))
        check_choice("gate", gate, GATES)
        channels = heads.num_queries * heads.value_width
        self.gate = GATES[gate]
        self.num_features = 0 if self.gate is None else channels
        self.scale = nn.Parameter(torch.ones(channels)) if norm == "rms" else None
        self.output = nn.Linear(channels, heads.width, bias=False)

    def forward(self, reads: Tensor, features: Tensor) -> Tensor:
        """Outputs `[B, T, width]` of reads `[B, T, H, V]` and features `[B, T, num_features]`."""
        with full_precision(reads):
            if self.scale is not None:
                reads = rms_normalise(reads)
            reads = reads.flatten(-2)
            if self.gate is not None:
                # A copy, so that the backward pass keeps these features and not all that were
                # projected with them.
                reads = reads * self.gate(features.contiguous())
            # Scaling the columns of the weight costs less than scaling every read.
            weight = self.output.weight if self.scale is None else self.scale * self.output.weight
        return functional.linear(reads, weight)
