"""Calls cut into chunks, and the recurrences over the chunks.

Of an affine map of the state:

    S_n = writes_n + S_{n-1} transition_n,   O_n = reads_n + probes_n S_{n-1}^T

Of the errors E_n that the tokens of a chunk write, where there is no need for the map itself:

    E_n = inverse_n (values_n - erased_n S_{n-1}^T)
    S_n = kept_n * S_{n-1} + start_n + E_n^T keys_n
    O_n = reads_n + probes_n S_{n-1}^T + scores_n E_n

Source: the chunked form of linear recurrences, Yang et al. 2024 (DeltaNet), Dao & Gu 2024.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class ChunkWrites(NamedTuple):
    """What N chunks of C tokens write into a state `[B, H, V, K]` and read from it."""

    values: Tensor
    """`[B, H, N, C, V]`"""
    keys: Tensor
    """`[B, H, N, C, K]`: as they stand in the state after the chunk"""
    scores: Tensor
    """`[B, H, N, C, C]`: what each token reads of each write"""
    probes: Tensor
    """`[B, H, N, C, K]`"""
    kept: Tensor
    """`[B, H, N, 1, K or 1]`"""
    erased: Tensor | None = None
    """`[B, H, N, C, K]`, None where values are written as they are"""
    inverse: Tensor | None = None
    """`[B, H, N, C, C]`, with `erased`"""
    reads: Tensor | None = None
    """`[B, H, N, C, V]`"""
    start: Tensor | None = None
    """`[B, H, N, V, K]`"""

    def chunks(self) -> Iterator[ChunkWrites]:
        """The N chunks in order, each with one axis B H in front."""
        columns: list[Iterable[Any]] = [
            repeat(None) if part is None else part.flatten(0, 1).unbind(1) for part in self
        ]
        # An absent part repeats without end.
        for parts in zip(*columns, strict=False):
            yield ChunkWrites(*parts)


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


def run_writes(writes: ChunkWrites, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Reads and errors `[B, H, N, C, V]` and the last state, from `[B, H, V, K]`."""
    weights = state.reshape(-1, *state.shape[2:])
    errors, met = [], []
    for chunk in writes.chunks():
        error = chunk.values
        if chunk.erased is not None and chunk.inverse is not None:
            error = torch.baddbmm(error, chunk.erased, weights.mT, alpha=-1)
            error = torch.bmm(chunk.inverse, error)
        errors.append(error)
        met.append(weights)
        kept = chunk.kept * weights
        if chunk.start is not None:
            kept = kept + chunk.start
        weights = torch.baddbmm(kept, error.mT, chunk.keys)
    written = _joined(errors)
    reads = torch.bmm(writes.scores.flatten(0, 2), written)
    reads = torch.baddbmm(reads, writes.probes.flatten(0, 2), _joined(met).mT)
    reads = reads.view_as(writes.values)
    if writes.reads is not None:
        reads = reads + writes.reads
    return reads, written.view_as(reads), weights.view_as(state)


def _joined(chunks: list[Tensor]) -> Tensor:
    """N tensors `[B H, ...]` as one `[B H N, ...]`."""
    return chunks[0] if len(chunks) == 1 else torch.stack(chunks, dim=1).flatten(0, 1)
