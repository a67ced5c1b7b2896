"""The errors that all edits of N chunks write, as an affine function of the weights they meet.

    e_t = value_t - W erase_t:   (I + tril(s(erase, write), -1)) E = value - (erase * decay) W_in^T

s is the decayed product of `channel_decay`. What the memory holds at any time of the chunk, and
what a query reads from it then, follow from E by products.

Source: the UT/WY form of KDA (Kimi Team 2025) and DPLR (Peng et al. 2025), written here for
mid-chunk resets to a learned initial state and for errors taken before or after the decay.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .channel_decay import ChannelDecay, Placement, before_write
from .channel_rule import Edits
from .chunk_writes import ChunkWrites
from .objective import Prediction
from .triangular import unit_lower_inverse


class ReadMap(NamedTuple):
    """O = reads + probes W_in^T."""

    reads: Tensor
    """`[B, M, N, n, V]`"""
    probes: Tensor
    """`[B, M, N, n, K]`"""


class WeightMap(NamedTuple):
    """W_out = writes + W_in transition."""

    writes: Tensor
    """`[B, M, N, V, K]`"""
    transition: Tensor
    """`[B, M, N, K, K]`"""


class EditChunks:
    """Chunks of `edits` `[B, M, N, C, ...]` and their systems; `initial` `[M, 1, V, K]` weights.

    `reads_live` says that `live_writes` will be asked for, which is cheaper known beforehand.
    """

    def __init__(
        self,
        edits: Edits,
        decay: ChannelDecay,
        initial: Tensor,
        predicts_with: Prediction,
        reads_live: bool,
    ) -> None:
        self.edits = edits
        self.decay = decay
        self.initial = initial
        self.after = decay.after_write()
        self.near = decay.near_keys(edits.write)
        self.live_scores: Tensor | None = None
        # Errors E = (I + tril(system, -1))^{-1} (values - erased W_in^T).
        self.values = edits.value
        self.erased: Tensor | None = None
        self.system: Tensor | None = None
        if edits.erase is None:
            return
        erase, met = edits.erase.unsqueeze(-2), self.after
        if predicts_with == "previous":
            met, met_near = decay.before_decay(), before_write(self.near, decay.block_size)
            system = self._scores(met, erase, met_near)[..., 0, :]
        elif reads_live:
            # Both products share their decays.
            rows = torch.cat([erase, edits.query.unsqueeze(-2)], dim=-2)
            system, self.live_scores = self._scores(self.after, rows, self.near).unbind(-2)
        else:
            system = self._scores(self.after, erase, self.near)[..., 0, :]
        if met.initial is not None:
            self.values = self.values - (edits.erase * met.initial) @ self.initial.mT
        self.erased = edits.erase * met.carried
        self.system = system

    def _scores(self, place: Placement, rows: Tensor, near: Tensor) -> Tensor:
        return self.decay.scores(place, rows, self.edits.write, near)

    def live_writes(self) -> ChunkWrites:
        """What the chunks write, and what every query reads right after its own edit."""
        scores, query = self.live_scores, self.edits.query
        if scores is None:
            scores = self._scores(self.after, query.unsqueeze(-2), self.near)[..., 0, :]
        end = self.decay.at_end()
        reads = start = None
        if self.after.initial is not None and end.initial is not None:
            reads = (query * self.after.initial) @ self.initial.mT
            start = self.initial * end.initial
        return ChunkWrites(
            values=self.values,
            keys=self.decay.decayed_keys(end, self.edits.write),
            scores=scores,
            probes=query * self.after.carried,
            kept=end.carried,
            erased=self.erased,
            system=self.system,
            reads=reads,
            start=start,
        )

    def solve(self) -> SolvedChunks:
        """The chunks with E = values - erased W_in^T: errors as a function of the weights met."""
        return SolvedChunks(self)


class SolvedChunks:
    """What the memory holds and shows at any time of the chunks, as functions of the weights met.

    Errors E = values - erased W_in^T.
    """

    def __init__(self, chunks: EditChunks) -> None:
        self.edits, self.decay, self.near = chunks.edits, chunks.decay, chunks.near
        self.initial = chunks.initial
        self.values, self.erased = chunks.values, chunks.erased
        if chunks.system is not None and chunks.erased is not None:
            inverse = unit_lower_inverse(chunks.system)
            self.values = inverse @ chunks.values
            self.erased = inverse @ chunks.erased

    def reads_at(self, index: Tensor) -> ReadMap:
        """Query n reads what the memory holds after edit `index[..., n]`."""
        place, query = self.decay.at(index), self.edits.query.unsqueeze(-2)
        scores = self.decay.scores_at(index, place, query, self.edits.write, self.near)
        return self._reads(scores[..., 0, :], place)

    def _reads(self, scores: Tensor, place: Placement) -> ReadMap:
        query = self.edits.query
        reads, probes = scores @ self.values, query * place.carried
        if self.erased is not None:
            probes = probes - scores @ self.erased
        if place.initial is not None:
            reads = reads + (query * place.initial) @ self.initial.mT
        return ReadMap(reads, probes)

    def weights_at(self, place: Placement) -> WeightMap:
        """The weights at the time of the one row of `place`."""
        keys = self.decay.decayed_keys(place, self.edits.write)
        writes = self.values.mT @ keys
        carried = place.carried.squeeze(-2)
        transition = torch.diag_embed(carried.expand(*carried.shape[:-1], keys.shape[-1]))
        if self.erased is not None:
            transition = transition - self.erased.mT @ keys
        if place.initial is not None:
            writes = writes + self.initial * place.initial
        return WeightMap(writes, transition)
