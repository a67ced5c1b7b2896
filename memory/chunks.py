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
    """`[N, B, H, V, K]`"""
    transition: Tensor
    """`[N, B, H, K, K]`"""
    reads: Tensor
    """`[N, B, H, C, V]`: what the queries read if W_in is zero"""
    probes: Tensor
    """`[N, B, H, C, K]`: what they read besides, O = reads + probes W_in^T"""


def fold(x: Tensor, chunk_size: int, multiple_of: int = 1) -> Tensor:
    """`[B, T, H, ...]` to `[N, B, H, C, ...]`, C <= `chunk_size` and as even as possible.

    C is rounded up to a multiple of `multiple_of`, which must divide `chunk_size`.
    Zeros fill the last chunk: all gates and pairs of a token being zero, it changes no state.
    """
    num_chunks = math.ceil(x.shape[1] / chunk_size)
    size = math.ceil(x.shape[1] / (num_chunks * multiple_of)) * multiple_of
    missing = num_chunks * size - x.shape[1]
    if missing:
        x = functional.pad(x, (*(0, 0) * (x.ndim - 2), 0, missing))
    # A chunk's numbers lie together: a power of two apart, they would share few places of a cache.
    return torch.unflatten(x, 1, (num_chunks, size)).movedim((1, 3), (0, 2)).contiguous()


def unfold(x: Tensor, steps: int) -> Tensor:
    """The first `steps` tokens `[B, T, H, ...]` of chunks `[N, B, H, C, ...]`."""
    return x.movedim((0, 2), (1, 3)).flatten(1, 2)[:, :steps]


def run_chunks(maps: ChunkMaps, state: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Reads `[B, T, H, V]` of the first `steps` tokens and the last state, from `[B, H, V, K]`."""
    met = []
    for writes, transition in zip(maps.writes.unbind(0), maps.transition.unbind(0), strict=True):
        met.append(state)
        state = writes + state @ transition
    reads = maps.reads + maps.probes @ torch.stack(met).mT
    return unfold(reads, steps), state
