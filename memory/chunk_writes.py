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
    """`[N, B, H, C, V]`"""
    keys: Tensor
    """`[N, B, H, C, K]`: as they stand in the state after the chunk"""
    scores: Tensor
    """`[N, B, H, C, C]`: what each token reads of each write"""
    probes: Tensor
    """`[N, B, H, C, K]`"""
    kept: Tensor
    """`[N, B, H, 1, K or 1]`"""
    moved: Tensor | None = None
    """`[N, B, H, 1, 1]`: of the second half of the columns into the first"""
    erased: Tensor | None = None
    """`[N, B, H, C, K]`, None where values are written as they are"""
    system: Tensor | None = None
    """`[N, B, H, C, C]`, with `erased`; only the strictly lower part is read"""
    reads: Tensor | None = None
    """`[N, B, H, C, V]`"""
    start: Tensor | None = None
    """`[N, B, H, V, K]`"""


def run_writes(writes: ChunkWrites, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Reads and errors `[N, B, H, C, V]` and the last state, from `[B, H, V, K]`."""
    values, keys = writes.values.flatten(1, 2), writes.keys.flatten(1, 2)
    moved, start = (
        None if part is None else part.flatten(1, 2) for part in (writes.moved, writes.start)
    )
    carry, weights = Carry(writes.kept.flatten(1, 2), moved), state.reshape(-1, *state.shape[2:])
    if writes.erased is None or writes.system is None:
        errors = values
        met, last = decayed_sums(carry, weights, values, keys, start)
    else:
        erased, system = writes.erased.flatten(1, 2), writes.system.flatten(1, 2)
        errors, met, last = delta_errors(carry, weights, values, keys, erased, system, start)
    reads = torch.bmm(writes.scores.flatten(0, 2), errors.flatten(0, 1))
    reads = reads + inner_products(writes.probes.flatten(0, 2), met.flatten(0, 1))
    reads = reads.view_as(writes.values)
    if writes.reads is not None:
        reads = reads + writes.reads
    return reads, errors.view_as(reads), last.view_as(state)
