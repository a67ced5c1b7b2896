"""What chunks of tokens write into a state, and the run over the chunks.

    E_n = (I + tril(system_n, -1))^{-1} (values_n - erased_n S_{n-1}^T),   or values_n
    S_n = kept_n * S_{n-1} + start_n + E_n^T keys_n   (+ moved_n of the right half, on the left)
    O_n = reads_n + probes_n S_{n-1}^T + scores_n E_n

Source: the chunked form of Yang et al. 2024 (DeltaNet), Dao & Gu 2024.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .carry import Carry
from .chunk_scans import decayed_sums, delta_errors
from .inner_products import inner_products


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
    moved: Tensor | None = None
    """`[B, H, N, 1, 1]`: of the second half of the columns into the first"""
    erased: Tensor | None = None
    """`[B, H, N, C, K]`, None where values are written as they are"""
    system: Tensor | None = None
    """`[B, H, N, C, C]`, with `erased`; only the strictly lower part is read"""
    reads: Tensor | None = None
    """`[B, H, N, C, V]`"""
    start: Tensor | None = None
    """`[B, H, N, V, K]`"""


def run_writes(writes: ChunkWrites, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Reads and errors `[B, H, N, C, V]` and the last state, from `[B, H, V, K]`."""
    values, keys = writes.values.flatten(0, 1), writes.keys.flatten(0, 1)
    moved, start = (
        None if part is None else part.flatten(0, 1) for part in (writes.moved, writes.start)
    )
    carry, weights = Carry(writes.kept.flatten(0, 1), moved), state.reshape(-1, *state.shape[2:])
    if writes.erased is None or writes.system is None:
        errors = values
        met, last = decayed_sums(carry, weights, values, keys, start)
    else:
        erased, system = writes.erased.flatten(0, 1), writes.system.flatten(0, 1)
        errors, met, last = delta_errors(carry, weights, values, keys, erased, system, start)
    reads = torch.bmm(writes.scores.flatten(0, 2), errors.flatten(0, 1))
    reads = reads + inner_products(writes.probes.flatten(0, 2), met.flatten(0, 1))
    reads = reads.view_as(writes.values)
    if writes.reads is not None:
        reads = reads + writes.reads
    return reads, errors.view_as(reads), last.view_as(state)
