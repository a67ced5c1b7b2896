"""A memory of fast weights whose key channels fade at their own rates, composed from four pieces.

    views     x -> q, k, v
    rule      x, q, k, v -> edits of one or several matrices per head
    solver    runs the edits, by token or by chunk, and reads
    readout   from what the heads read to the output

Without any choice the model is KDA (Kimi Team 2025).
"""

from __future__ import annotations

from collections.abc import Callable

from tensordict import TensorDict
from torch import Tensor

from .backend import choose_backend
from .channel_rule import ChannelDelta, ChannelRule
from .channel_solver import ChannelSolver, ExactChannel
from .core import MemoryCore
from .heads import Heads, Piece, project_pieces
from .precision import full_precision, state_dtype
from .readout import Readout
from .slabs import in_slabs
from .views import TokenViews, Views


class ChannelGatedMemory(MemoryCore):
    """`num_heads` times `rule.num_experts` matrices of `value_width` x `key_width` fast weights.

    The pieces are factories that take `Heads`, the solver the rule. A token makes one write and one
    query per head. `commit` moves the snapshot of `SnapshotChannel` and is ignored by
    `ExactChannel`. `backend`: `torch`, `fla` or `auto` (`memory/backend.py`).
    """

    def __init__(
        self,
        width: int,
        num_heads: int = 2,
        key_width: int = 16,
        value_width: int = 16,
        views: Callable[[Heads], TokenViews] = Views,
        rule: Callable[[Heads], ChannelRule] = ChannelDelta,
        solver: Callable[[ChannelRule], ChannelSolver] = ExactChannel,
        readout: Callable[[Heads], Readout] = Readout,
        backend: str = "torch",
    ) -> None:
        super().__init__(width)
        heads = Heads(width, num_heads, key_width, value_width)
        self.views = views(heads)
        self.rule = rule(self.views.token_heads)
        self.solver = solver(self.rule)
        choose_backend(self.solver, backend)
        self.reads_commits = self.solver.reads_commits
        self.readout = readout(heads)
        pieces: list[Piece] = [self.views, self.rule, self.readout]
        self.feature_sizes = [piece.num_features for piece in pieces]
        self.projection = project_pieces(width, pieces)

    def init_state(self, batch: int) -> TensorDict:
        """`weights` `[B, M, V, K]`, `snapshot` where reads see one, `conv_window` where used."""
        leaves = self.views.init_state(batch) | self.solver.init_state(batch)
        return TensorDict(leaves, batch_size=[batch])

    @in_slabs
    def advance(
        self,
        x: Tensor,
        state: TensorDict,
        reset: Tensor | None = None,
        mask: Tensor | None = None,
        commit: Tensor | None = None,
    ) -> tuple[Tensor, TensorDict]:
        features = self.projection(x)
        with full_precision(x):
            features = features.to(state_dtype(self.projection.weight))
            for_views, for_rule, for_readout = features.split(self.feature_sizes, dim=-1)
            leaves = dict(state.items())
            tokens, views_state = self.views(for_views, leaves, reset, mask)
            edits = self.rule(for_rule, tokens)
            reads, solver_state = self.solver(edits, leaves, reset, mask, commit)
            if self.rule.num_experts > 1:
                reads = reads.unflatten(2, (-1, self.rule.num_experts)).sum(3)
            bypass = self.rule.bypass(for_rule, tokens)
            if bypass is not None:
                reads = reads + bypass
        y: Tensor = self.readout(reads, for_readout)
        return y, TensorDict(views_state | solver_state, batch_size=state.batch_size)
