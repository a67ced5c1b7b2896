"""What is left, at every token of a chunk, of each write and of the carried-in and initial state.

    W_t = sum_{j<=t} D[t,j] write_j + carried_t W_in + initial_t W_0
    D[t,j] = exp(la_{j+1} + ... + la_t)

Every exponent is a sum of terms of one sign, made by a product with a matrix of zeros and ones: no
digits cancel, nothing overflows, nothing is divided, and gradients stay finite for any gate, as the
exponents of what is hidden are never positive either. A reset cuts the sums: it sets D to zero
across it and swaps W_in for W_0.

Source: the decay mask of RetNet (Sun et al. 2023) and Mamba-2 (Dao & Gu 2024), extended to resets.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

LOWEST_LOG = -1e3
"""Its exp is zero in any precision; far lower gates would swallow their neighbours' digits."""


class Coefficients(NamedTuple):
    """Weights in the state at token t: of write j `[..., C, C]`, of W_in and of W_0 `[..., C]`.

    `initial` is None when the chunks hold no reset.
    """

    writes: Tensor
    carried: Tensor
    initial: Tensor | None

    def before_decay(self, reset: Tensor | None) -> Coefficients:
        """The coefficients of W_{t-1} as token t meets it, after a `reset` at t; writes j < t."""
        initial = None if self.initial is None else met_next(self.initial, reset, at_reset=1.0)
        carried = met_next(self.carried, reset, at_start=1.0)
        return Coefficients(met_next(self.writes, reset, axis=-2), carried, initial)


def met_next(
    of_tokens: Tensor,
    reset: Tensor | None,
    at_start: float = 0.0,
    at_reset: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """What each token meets of what the one before it has left: `of_tokens` one place later.

    The first token meets `at_start`, one with a reset `[..., C]` meets `at_reset`; `axis` counts
    the C tokens.
    """
    earlier = of_tokens.narrow(axis, 0, of_tokens.shape[axis] - 1)
    met = functional.pad(earlier, (0, 0) * (-1 - axis) + (1, 0), value=at_start)
    if reset is None:
        return met
    return torch.where(reset[(..., *[None] * (-1 - axis))], at_reset, met)


class ChunkDecay:
    """The decays inside chunks: `log_retention` <= 0 and `reset` (bool or None), `[..., C]`."""

    def __init__(self, log_retention: Tensor, reset: Tensor | None) -> None:
        self.log_retention = log_retention.clamp(min=LOWEST_LOG)
        self.reset = reset
        self.segment = None if reset is None else reset.long().cumsum(-1)
        self.times = torch.arange(log_retention.shape[-1], device=log_retention.device)

    def after_write(self) -> Coefficients:
        """The coefficients of W_t, which the decay of token t has passed over."""
        size, times = self.log_retention.shape[-1], self.times
        passed = times <= times.unsqueeze(-1)
        # `[s, t]`: whether decay s is passed over by token t; `[s, j]`: whether it follows write j.
        counted = passed.mT.to(self.log_retention.dtype)
        follows = (times.unsqueeze(-1) > times).to(self.log_retention.dtype)
        carried = (self.log_retention @ counted).exp()
        spans = (counted.unsqueeze(-1) * follows.unsqueeze(1)).flatten(1)
        between = torch.unflatten(self.log_retention @ spans, -1, (size, size))
        if self.reset is None or self.segment is None:
            return Coefficients(between.exp() * passed.to(between.dtype), carried, None)
        own = self.segment.unsqueeze(-1) == self.segment.unsqueeze(-2)
        visible = (passed & own).to(between.dtype)
        writes = between.exp() * visible
        # A reset at t comes before the decay of token t.
        initial = self.log_retention.unsqueeze(-2) * visible
        is_carried = (self.segment == 0).to(self.log_retention.dtype)
        initial = initial.sum(-1).exp()
        return Coefficients(writes, carried * is_carried, initial * (1.0 - is_carried))
