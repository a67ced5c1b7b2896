"""A memory of fast weights, composed from five pieces.

    views     x -> q, k, v              what is stored and asked
    objective                           what one write improves
    rule      x -> retention, rate      how the fast weights move in time
    solver                              runs the recurrence, by token or by chunk
    readout                             from what the heads read to the output

A published model is a choice of pieces; without any the model is Gated DeltaNet (Yang et al. 2024).
"""

from __future__ import annotations

from collections.abc import Callable

from tensordict import TensorDict
from torch import Tensor

from .backend import choose_backend
from .core import MemoryCore
from .exact import ExactScalar
from .heads import Heads, Piece, project_pieces
from .objective import Objective, SquaredError
from .precision import full_precision, state_dtype
from .readout import Readout
from .rule import GradientStep, Rule
from .several_reads import SeveralReads
from .several_writes import SeveralWrites
from .slabs import in_slabs
from .solver import Solver
from .views import TokenViews, Views


class FastWeightMemory(MemoryCore):
    """`num_heads` matrices of `value_width` x `key_width` fast weights, trained by the stream.

    The pieces are factories that take `Heads` (the solver also the objective), for example
    `views=partial(Views, conv_width=1)`. A token makes `writes_per_token` writes, one after the
    other, and reads every matrix with `queries_per_head` queries. `commit` is ignored: reads see
    the live weights. `backend`: `torch`, `fla` or `auto` (`memory/backend.py`). Raises ValueError
    when the solver does not take the gates that the rule makes.
    """

    def __init__(
        self,
        width: int,
        num_heads: int = 2,
        key_width: int = 16,
        value_width: int = 16,
        writes_per_token: int = 1,
        queries_per_head: int = 1,
        views: Callable[[Heads], TokenViews] = Views,
        objective: Callable[[Heads], Objective] = SquaredError,
        rule: Callable[[Heads], Rule] = GradientStep,
        solver: Callable[[Heads, Objective], Solver] = ExactScalar,
        readout: Callable[[Heads], Readout] = Readout,
        backend: str = "torch",
    ) -> None:
        super().__init__(width)
        heads = Heads(width, num_heads, key_width, value_width, writes_per_token, queries_per_head)
        self.views = views(heads)
        self.rule = rule(heads)
        self.solver = solver(self.views.token_heads, objective(heads))
        if self.rule.gates is not self.solver.gates:
            raise ValueError(
                f"solver {type(self.solver).__name__} takes {self.solver.gates.__name__}, but rule "
                f"{type(self.rule).__name__} makes {self.rule.gates.__name__}; use a rule that "
                f"makes {self.solver.gates.__name__}"
            )
        self.solver.check_rule(self.rule)
        self.solver.forgets = self.rule.forgets
        choose_backend(self.solver, backend)
        self.anchored = self.solver.anchored
        if self.anchored:
            self.slab_numbers = None
        if writes_per_token > 1:
            self.solver = SeveralWrites(self.solver)
        if queries_per_head > 1:
            self.solver = SeveralReads(self.solver)
        self.readout = readout(heads)
        pieces: list[Piece] = [self.views, self.rule, self.readout]
        self.feature_sizes = [piece.num_features for piece in pieces]
        self.projection = project_pieces(width, pieces)

    def init_state(self, batch: int) -> TensorDict:
        """The leaves of solver and views: `weights` `[B, H, V, K]`, `conv_window` and others."""
        leaves = self.views.init_state(batch) | self.solver.init_state(batch)
        return TensorDict(leaves, batch_size=[batch])

    def reset_rows(self, state: TensorDict, rows: Tensor) -> TensorDict:
        cleared = super().reset_rows(state, rows)
        clocks = {name: state[name] for name in self.solver.clocks}
        return cleared.update(clocks) if clocks else cleared

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
            gates = self.rule(for_rule, tokens)
            reads, solver_state = self.solver(tokens, gates, leaves, reset, mask)
        y: Tensor = self.readout(reads, for_readout)
        return y, TensorDict(views_state | solver_state, batch_size=state.batch_size)
