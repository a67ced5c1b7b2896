"""Running scale of a signal, debiased: mean and spread as exponential averages (van Hasselt et al.
2016, Pop-Art).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .ranks import mean_over_ranks

MIN_SPREAD = 1e-4


class RunningScale(nn.Module):
    """Tracks the mean and standard deviation of returns so that the value head works on unit scale.

    Averages decay by `decay` per update and are divided by 1 - decay^n, so the first updates count
    in full.
    """

    mean_sum: Tensor
    square_sum: Tensor
    weight: Tensor

    def __init__(self, decay: float = 0.99) -> None:
        super().__init__()
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"decay: expected a number in [0, 1), got {decay}")
        self.decay = decay
        for name in ("mean_sum", "square_sum", "weight"):
            self.register_buffer(name, torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def update(self, values: Tensor) -> None:
        """Take in a batch of values of any shape, of all ranks together; an empty one changes
        nothing.
        """
        if values.numel() == 0:
            return
        values = values.double()
        mean, square = values.mean(), values.square().mean()
        mean_over_ranks([mean, square])
        self.mean_sum.lerp_(mean, 1.0 - self.decay)
        self.square_sum.lerp_(square, 1.0 - self.decay)
        self.weight.lerp_(torch.ones_like(self.weight), 1.0 - self.decay)

    def restart(self) -> None:
        """Forget all values: the scale is that of a new one."""
        for buffer in self.buffers():
            buffer.zero_()

    @property
    def mean(self) -> Tensor:
        return torch.where(self.weight > 0, self.mean_sum / self._weight, 0.0)

    @property
    def spread(self) -> Tensor:
        variance = self.square_sum / self._weight - self.mean.square()
        spread = variance.clamp(min=0.0).sqrt().clamp(min=MIN_SPREAD)
        return torch.where(self.weight > 0, spread, 1.0)

    @property
    def _weight(self) -> Tensor:
        return self.weight.clamp(min=torch.finfo(torch.float64).tiny)

    def normalise(self, values: Tensor) -> Tensor:
        return (values - self.mean.to(values.dtype)) / self.spread.to(values.dtype)

    def denormalise(self, values: Tensor) -> Tensor:
        return values * self.spread.to(values.dtype) + self.mean.to(values.dtype)
