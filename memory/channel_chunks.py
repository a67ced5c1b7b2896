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
from .objective import Prediction


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


class SolvedChunks:
    """Chunks of `edits` `[B, M, N, C, ...]` after their solve; `initial` `[M, 1, V, K]` weights.

    `reads_live` says that `live_reads` will be asked for, which is cheaper known beforehand.
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
        # Errors E = values - erased W_in^T.
        self.values = edits.value
        self.erased: Tensor | None = None
        self.near = decay.near_keys(edits.write)
        self.live_scores: Tensor | None = None
        if edits.erase is None:
            return
        erase = edits.erase.unsqueeze(-2)
        if predicts_with == "previous":
            met, met_near = decay.before_decay(), before_write(self.near, decay.block_size)
            self._solve(edits.erase, self._scores(met, erase, met_near)[..., 0, :], met)
        elif reads_live:
            # Both products share their decays.
            rows = torch.cat([erase, edits.query.unsqueeze(-2)], dim=-2)
            system, self.live_scores = self._scores(self.after, rows, self.near).unbind(-2)
            self._solve(edits.erase, system, self.after)
        else:
            system = self._scores(self.after, erase, self.near)[..., 0, :]
            self._solve(edits.erase, system, self.after)

    def _scores(self, place: Placement, rows: Tensor, near: Tensor) -> Tensor:
        return self.decay.scores(place, rows, self.edits.write, near)

    def _solve(self, erase: Tensor, system: Tensor, met: Placement) -> None:
        values = self.edits.value
        if met.initial is not None:
            values = values - (erase * met.initial) @ self.initial.mT
        targets = torch.cat([values, erase * met.carried], dim=-1)
        # Only the strictly lower part of the system is read: the diagonal counts as ones.
        solved = torch.linalg.solve_triangular(system, targets, upper=False, unitriangular=True)
        self.values, self.erased = torch.split(solved, [values.shape[-1], erase.shape[-1]], dim=-1)

    def live_reads(self) -> ReadMap:
        """Every query reads right after its own edit."""
        scores = self.live_scores
        if scores is None:
            query = self.edits.query.unsqueeze(-2)
            scores = self._scores(self.after, query, self.near)[..., 0, :]
        return self._reads(scores, self.after)

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
