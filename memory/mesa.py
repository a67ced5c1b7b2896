"""The solver of MesaNet: reads with the weights that are optimal for everything remembered.

    W_t = argmin_W  sum_{j<=t} c_tj |W k_j - v_j|^2 + tr(W Lambda W^T),   c_tj = b_j a_{j+1} ... a_t
    o_t = W_t q_t = V_t (G_t + Lambda)^{-1} q_t
    G_t = a_t G_{t-1} + b_t k_t k_t^T,   V_t = a_t V_{t-1} + b_t v_t k_t^T

Both moments are Hebbian memories, so their chunk form needs no solve; the systems do. The ridge
Lambda does not decay, which keeps them well posed in endless lives; so that the rounding of
float32 sums of equal keys stays below it, a_t is the rule's retention times 2^(-1/1000).

Source: von Oswald et al. 2025, arXiv 2506.05233.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from .checks import check_at_least
from .chunks import fold
from .decay import ChunkDecay, Coefficients
from .heads import Heads
from .objective import Objective
from .rule import Gates
from .solver import Solver
from .systems import Cholesky, Systems, SystemSolver
from .views import Tokens

SMALLEST_RIDGE = 0.25
"""Of every entry of Lambda: the paper's."""
FORGETTING = math.log(2) / 1000
"""Taken off every log retention. Without it the float32 rounding of G grows with the square of the
number of equal keys (0.4 after 10^4, 46 after 10^5) and makes the systems indefinite; with it the
rounding stays well below the smallest ridge for ever."""


class Mesa(Solver):
    """Ridge regression on the decayed past: the squared error of all tokens, not of the last one.

    `method`: `Cholesky` (exact) or `ConjugateGradient`. `ridge` is the initial value of Lambda,
    learned per head and key channel, never below `SMALLEST_RIDGE`. `chunk_size` is speed and
    storage only. The initial V is learned and starts at zero; G starts at zero.
    """

    def __init__(
        self,
        heads: Heads,
        objective: Objective,
        method: Callable[[], SystemSolver] = Cholesky,
        chunk_size: int = 32,
        ridge: float = 1.0,
    ) -> None:
        super().__init__(heads, objective)
        if objective.predicts_with == "none":
            raise ValueError(
                f"objective of Mesa must be a squared error, got {type(objective).__name__}; "
                "use SquaredError"
            )
        check_at_least("chunk_size", chunk_size, 1)
        check_at_least("ridge", ridge, SMALLEST_RIDGE + 0.01)
        self.method = method()
        self.chunk_size = chunk_size
        free = math.log(math.expm1(ridge - SMALLEST_RIDGE))
        self.free_ridge = nn.Parameter(torch.full((heads.num_heads, heads.key_width), free))
        self.initial_values = nn.Parameter(
            torch.zeros(heads.num_heads, heads.value_width, heads.key_width)
        )

    def ridges(self) -> Tensor:
        """`[H, K]`: the diagonal of Lambda."""
        return SMALLEST_RIDGE + functional.softplus(self.free_ridge)

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """`value_moments` V `[B, H, V, K]` and `key_moments` G `[B, H, K, K]`."""
        heads = self.heads
        return {
            "value_moments": self.initial_values.expand(batch, -1, -1, -1),
            "key_moments": self.initial_values.new_zeros(
                batch, heads.num_heads, heads.key_width, heads.key_width
            ),
        }

    def forward(
        self,
        tokens: Tokens,
        gates: Gates,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        steps = tokens.query.shape[1]
        gates = gates._replace(log_retention=gates.log_retention - FORGETTING)
        if mask is not None:
            gates = Gates(*(torch.where(mask.unsqueeze(-1), gate, 0.0) for gate in gates))
        query, key, value = (fold(view, self.chunk_size) for view in tokens)
        gates = Gates(*(fold(gate, self.chunk_size) for gate in gates))
        reset = None if reset is None else fold(reset.unsqueeze(-1), self.chunk_size)
        left = _what_is_left(gates, reset)

        strength = left.writes * gates.write_rate.unsqueeze(-2)
        moments = torch.cat([state["value_moments"], state["key_moments"]], dim=-2)
        met, moments = self._accumulate(
            moments, torch.cat([value, key], dim=-1), key, strength, left
        )
        sizes = [self.heads.value_width, self.heads.key_width]
        values_met, keys_met = torch.split(met, sizes, dim=-2)

        ridge = self.ridges()[:, None, None]
        solved = self.method(Systems(keys_met, left.carried, strength, key, ridge), query)
        reads = left.carried.unsqueeze(-1) * (solved @ values_met.mT)
        reads = reads + (strength * (solved @ key.mT)) @ value
        if left.initial is not None:
            start = self.initial_values.unsqueeze(1)
            reads = reads + left.initial.unsqueeze(-1) * (solved @ start.mT)
        values_after, keys_after = torch.split(moments, sizes, dim=-2)
        next_state = {"value_moments": values_after, "key_moments": keys_after}
        return reads.flatten(2, 3)[:, :, :steps].transpose(1, 2), next_state

    def _accumulate(
        self, moments: Tensor, rows: Tensor, key: Tensor, strength: Tensor, left: Coefficients
    ) -> tuple[Tensor, Tensor]:
        """The stacked moments V and G that every chunk meets, `[B, H, N, V + K, K]`, and the last.

        `rows` `[B, H, N, C, V + K]` are what each token adds along its key.
        """
        writes = rows.mT @ (strength[..., -1, :].unsqueeze(-1) * key)
        if left.initial is not None:
            start = functional.pad(self.initial_values, (0, 0, 0, self.heads.key_width))
            writes = writes + left.initial[..., -1, None, None] * start.unsqueeze(1)
        carried = left.carried[..., -1, None, None]
        met = []
        for written, kept in zip(writes.unbind(2), carried.unbind(2), strict=True):
            met.append(moments)
            moments = kept * moments + written
        return torch.stack(met, dim=2), moments


def _what_is_left(gates: Gates, reset: Tensor | None) -> Coefficients:
    """The coefficients of the moments; of a single token without the general machinery."""
    if gates.log_retention.shape[2:] == (1, 1) and reset is None:
        ones = torch.ones_like(gates.log_retention).unsqueeze(-1)
        return Coefficients(ones, gates.log_retention.exp(), None)
    return ChunkDecay(gates.log_retention, reset).after_write()
