"""Folding the tokens of a call into chunks of equal length."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional


def fold_chunks(x: Tensor, num_chunks: int, multiple_of: int = 1) -> Tensor:
    """`[B, T, H, ...]` to `[B, H, N, C, ...]`; the zeros that fill the last chunk write nothing.

    C is the smallest multiple of `multiple_of` for which N chunks hold all tokens.
    """
    size = math.ceil(x.shape[1] / (num_chunks * multiple_of)) * multiple_of
    missing = num_chunks * size - x.shape[1]
    if missing:
        x = functional.pad(x, (*(0, 0) * (x.ndim - 2), 0, missing))
    return torch.unflatten(x, 1, (num_chunks, size)).movedim(3, 1).contiguous()
