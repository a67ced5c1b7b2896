"""Calls cut into chunks, and the run over chunks that are affine maps of the state.

    S_n = writes_n + S_{n-1} transition_n,   O_n = reads_n + probes_n S_{n-1}^T

Source: the chunked form of linear recurrences, Yang et al. 2024 (DeltaNet), Dao & Gu 2024.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class ChunkMaps(NamedTuple):
    """What N chunks do to a state `[B, H, V, K]`: W_out = writes + W_in transition."""

    writes: Tensor
    """`[B, H, N, V, K]`"""
    transition: Tensor
    """`[B, H, N, K, K]`"""
    reads: Tensor
    """`[B, H, N, C, V]`: what the queries read if W_in is zero"""
    probes: Tensor
    """`[B, H, N, C, K]`: what they read besides, O = reads + probes W_in^T"""


def fold(x: Tensor, chunk_size: int, multiple_of: int = 1) -> Tensor:
    """`[B, T, H, ...]` to `[B, H, N, C, ...]`, C <= `chunk_size` and as even as possible.

    C is rounded up to a multiple of `multiple_of`, which must divide `chunk_size`.
    Zeros fill the last chunk: all gates and pairs of a token being zero, it changes no state.
    """
    num_chunks = math.ceil(x.shape[1] / chunk_size)
    size = math.ceil(x.shape[1] / (num_chunks * multiple_of)) * multiple_of
    missing = num_chunks * size - x.shape[1]
    if missing:
        x = functional.pad(x, (*(0, 0) * (x.ndim - 2), 0, missing))
    return torch.unflatten(x, 1, (num_chunks, size)).movedim(3, 1).contiguous()


def run_chunks(maps: ChunkMaps, state: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Reads `[B, T, H, V]` of the first `steps` tokens and the last state, from `[B, H, V, K]`."""
    met = []
    for writes, transition in zip(maps.writes.unbind(2), maps.transition.unbind(2), strict=True):
        met.append(state)
        state = writes + state @ transition
    reads = maps.reads + maps.probes @ torch.stack(met, dim=2).mT
    return reads.flatten(2, 3)[:, :, :steps].transpose(1, 2), state
