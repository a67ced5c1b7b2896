"""Reads from a snapshot of the memory that only moves when it is told to.

    o_t = S_{t-1} q_t,   S_t = W_t where commit_t is set, S_{t-1} elsewhere;   W_t learns all along

The read at t is that of the live weights at the last commit before t, or of the carried-in
snapshot, or of the initial weights when a reset came later.

Source: MemT, whose readers see the memory as it was when their turn began.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from .channel_rule import Edits
from .channel_solver import ChannelSolver, read


class Origin(NamedTuple):
    """Where snapshots come from: edit `edit` `[..., n]` of the chunk where `committed`.

    Elsewhere the snapshot is the initial one after a reset, or the one carried into the chunk:
    `committed`, `initial` and `carried` `[..., n, 1]` hold ones and zeros and add up to one.
    """

    edit: Tensor
    committed: Tensor
    initial: Tensor
    carried: Tensor


class SnapshotChannel(ChannelSolver):
    """Reads see the weights as of the last `commit` before the token; a reset resets both.

    A commit at a token takes its write along and is seen from the next token on; a masked token
    commits nothing. Without commits, reads see the initial weights only.
    """

    reads_commits = True

    def init_state(self, batch: int) -> dict[str, Tensor]:
        """`weights` and `snapshot` `[B, M, V, K]`: the learned initial weights in every row."""
        return {"weights": self.initial_rows(batch), "snapshot": self.initial_rows(batch)}

    def forward(
        self,
        edits: Edits,
        state: Mapping[str, Tensor],
        reset: Tensor | None,
        mask: Tensor | None,
        commit: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        weights, snapshot = state["weights"], state["snapshot"]
        steps = edits.query.shape[1] // self.edits_per_token
        if commit is not None and mask is not None:
            commit = commit & mask
        if steps > 1:
            return self._chunks(edits, weights, snapshot, reset, mask, commit)
        reads = read(snapshot, edits.query[:, -1:])
        # A bad write shows in the reads at once, as it does in chunks, and not at its commit.
        reads = reads + torch.where(_finite_rows(weights), 0.0, torch.nan)
        weights = self.write_token(edits, weights, mask)
        if commit is not None:
            snapshot = torch.where(commit.view(-1, 1, 1, 1), weights, snapshot)
        return reads, {"weights": weights, "snapshot": snapshot}

    def _chunks(
        self,
        edits: Edits,
        weights: Tensor,
        snapshot: Tensor,
        reset: Tensor | None,
        mask: Tensor | None,
        commit: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        chunks = self.cut_chunks(edits, reset, mask).solve()
        query, initial = chunks.edits.query, chunks.initial
        resets, commits = self._fold_events(edits, reset, commit)
        at_reads, at_end = find_origins(resets, commits, chunks.decay.dtype)

        reads = chunks.reads_at(at_reads.edit)
        end = chunks.weights_at(chunks.decay.at_end())
        taken = chunks.weights_at(chunks.decay.at(at_end.edit))
        taken_writes = at_end.committed * taken.writes + at_end.initial * initial
        taken_transition = at_end.committed * taken.transition
        parts = (end.writes, end.transition, taken_writes, taken_transition, at_end.carried)
        met, met_snapshots = [], []
        for writes, transition, take, take_transition, kept in zip(
            *(part.unbind(2) for part in parts), strict=True
        ):
            met.append(weights)
            met_snapshots.append(snapshot)
            snapshot = take + weights @ take_transition + kept * snapshot
            weights = writes + weights @ transition

        live = reads.reads + reads.probes @ torch.stack(met, dim=2).mT
        kept_reads = query @ torch.stack(met_snapshots, dim=2).mT
        outputs = at_reads.committed * live + at_reads.carried * kept_reads
        outputs = outputs + at_reads.initial * (query @ initial.mT)
        steps = edits.query.shape[1] // self.edits_per_token
        return self.unfold(outputs, steps), {"weights": weights, "snapshot": snapshot}

    def _fold_events(
        self, edits: Edits, reset: Tensor | None, commit: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Chunks `[B, 1, N, C]` of resets, at a token's first edit, and commits, at its last."""
        count = self.edits_per_token
        batch, num_edits = edits.query.shape[:2]
        nowhere = edits.query.new_zeros(batch, num_edits // count, dtype=torch.bool)
        return (
            self.fold_flags(nowhere if reset is None else reset, 0),
            self.fold_flags(nowhere if commit is None else commit, count - 1),
        )


def find_origins(resets: Tensor, commits: Tensor, dtype: torch.dtype) -> tuple[Origin, Origin]:
    """The origins of the snapshots that C reads see and of the one left after the chunk.

    `resets` and `commits` `[..., C]`; a reset happens before its edit, a commit after it.
    """
    times = torch.arange(resets.shape[-1], device=resets.device)
    # Events in the order in which they happen: twice the time, plus one for a commit.
    reset_events = torch.where(resets, 2 * times, -1).cummax(-1).values
    commit_events = torch.where(commits, 2 * times + 1, -1).cummax(-1).values
    earlier_commits = functional.pad(commit_events[..., :-1], (1, 0), value=-1)
    last = torch.maximum(reset_events, commit_events)[..., -1:]
    return (
        _origin(torch.maximum(reset_events, earlier_commits), dtype),
        _origin(last, dtype),
    )


def _origin(event: Tensor, dtype: torch.dtype) -> Origin:
    happened, is_commit = event >= 0, event % 2 == 1
    kinds = (happened & is_commit, happened & ~is_commit, ~happened)
    return Origin(event.clamp(min=0) // 2, *(kind.unsqueeze(-1).to(dtype) for kind in kinds))


def _finite_rows(weights: Tensor) -> Tensor:
    """`[B, 1, 1, 1]`: rows without a non-finite number; a sum is finite if its terms are."""
    return torch.isfinite(weights.detach().sum((1, 2, 3), keepdim=True))
