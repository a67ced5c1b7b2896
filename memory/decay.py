"""What is left, at every token of a chunk, of each write and of the carried-in and initial state.

    W_t = sum_{j<=t} D[t,j] write_j + carried_t W_in + initial_t W_0
    D[t,j] = exp(la_{j+1} + ... + la_t)

Every exponent is a difference of cumulative sums, taken in float64, masked *before* exp and never
positive: nothing overflows, nothing is divided, gradients stay finite for any gate. A reset cuts
the sums: it sets D to zero across it and swaps W_in for W_0.

Source: the decay mask of RetNet (Sun et al. 2023) and Mamba-2 (Dao & Gu 2024), extended to resets.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LOWEST_LOG = -1e3
"""Its exp is zero in any precision; far lower gates would swallow their neighbours' digits."""


class Coefficients(NamedTuple):
    """Weights in the state at token t: of write j `[..., C, C]`, of W_in and of W_0 `[..., C]`.

    `initial` is None when the chunks hold no reset.
    """

    writes: Tensor
    carried: Tensor
    initial: Tensor | None


class ChunkDecay:
    """The decays inside chunks: `log_retention` <= 0 and `reset` (bool or None), `[..., C]`."""

    def __init__(self, log_retention: Tensor, reset: Tensor | None) -> None:
        self.dtype = log_retention.dtype
        self.reset = reset
        self.segment = None if reset is None else reset.long().cumsum(-1)
        own = log_retention.double().clamp(min=LOWEST_LOG)
        self.after = own.cumsum(-1)
        self.before = self.after - own

    def after_write(self) -> Coefficients:
        """The coefficients of W_t, which the decay of token t has passed over."""
        return self._coefficients(self.after, youngest=0)

    def before_decay(self) -> Coefficients:
        """The coefficients of W_{t-1} as token t meets it, after a reset at t; writes j < t."""
        return self._coefficients(self.before, youngest=-1)

    def _coefficients(self, exponent: Tensor, youngest: int) -> Coefficients:
        between = (exponent.unsqueeze(-1) - self.after.unsqueeze(-2)).to(self.dtype)
        writes = torch.exp(between + self._hidden(exponent.shape[-1], youngest))
        carried = exponent.to(self.dtype).exp()
        if self.reset is None or self.segment is None:
            return Coefficients(writes, carried, None)
        # The cumulative sum just before the segment of each token.
        times = torch.arange(exponent.shape[-1], device=exponent.device)
        starts = torch.where(self.reset, times, 0).cummax(-1).values
        start = self.before.gather(-1, starts.expand_as(self.before))
        initial = (exponent - start).to(self.dtype).exp()
        is_carried = (self.segment == 0).to(self.dtype)
        return Coefficients(writes, carried * is_carried, initial * (1.0 - is_carried))

    def _hidden(self, size: int, youngest: int) -> Tensor:
        """0 where token t holds write j, -inf where it does not: j later, or a reset between."""
        visible = torch.ones(size, size, dtype=torch.bool, device=self.after.device).tril(youngest)
        if self.segment is not None:
            visible = visible & (self.segment.unsqueeze(-1) == self.segment.unsqueeze(-2))
        return torch.zeros_like(visible, dtype=self.dtype).masked_fill(~visible, -torch.inf)
