"""Several processes that train one agent: each lives lifetimes of its own, all learn from all.

    gradient = mean over ranks of the gradient on its own lifetimes

Every rank holds the same parameters, optimiser and luck; what is a mean over lifetimes in one
process is a mean over ranks of means over lifetimes. Without a process group there is one rank and
nothing is exchanged. All ranks must call these functions in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, distributed


def num_ranks() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return distributed.get_rank() if distributed.is_initialized() else 0


@torch.no_grad()
def mean_over_ranks(tensors: Sequence[Tensor]) -> None:
    """Replace tensors of one type and device by their means over ranks, in one exchange."""
    if num_ranks() == 1 or not tensors:
        return
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    distributed.all_reduce(flat)
    flat /= num_ranks()
    parts = torch.split(flat, [tensor.numel() for tensor in tensors])
    for tensor, part in zip(tensors, parts, strict=True):
        tensor.copy_(part.view_as(tensor))


def metrics_over_ranks(metrics: Mapping[str, float]) -> dict[str, float]:
    """Means over the ranks that know a number; NaN where none does."""
    if num_ranks() == 1:
        return dict(metrics)
    values = torch.tensor(list(metrics.values()), dtype=torch.float64)
    known = torch.isfinite(values)
    sums = torch.stack([torch.where(known, values, 0.0), known.double()])
    mean_over_ranks([sums])
    means = (sums[0] / sums[1]).tolist()
    return dict(zip(metrics, means, strict=True))


def from_all_ranks(value: Any) -> list[Any]:
    """What every rank has, in the order of ranks, on every rank."""
    if num_ranks() == 1:
        return [value]
    gathered: list[Any] = [None] * num_ranks()
    distributed.all_gather_object(gathered, value)
    return gathered
