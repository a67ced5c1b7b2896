"""Measures of the work inside a solver: how well its systems are solved, how steep its losses are.

    solve residual    sqrt(sum |A x - q|^2 / sum |q|^2)   over the reads of a ridge regression
    inner gradient    |g_t|_F over all layers of a net, at its anchor, as it enters the weights
    gain limited      share of the g_t that were shortened on the way

Watched by hooks, at the cost of a few reductions per chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from .anchored import AnchoredGradient
from .fast_weight import FastWeightMemory
from .limits import squared_norms
from .mesa import Mesa

TINY = 1e-30  # squared lengths below count as zero
SHORTENED = 0.999  # gradients that keep less of their length count as limited


class Watch(Protocol):
    """What is kept of a pass, and the measures `[H]` of it; none without a pass."""

    def measures(self) -> dict[str, Tensor]: ...


@contextmanager
def watch_solver(core: FastWeightMemory) -> Iterator[list[Watch]]:
    """Watches the solvers inside a memory while it runs."""
    watches: list[Watch] = []
    with ExitStack() as hooks:
        for solver in core.solver.modules():
            if isinstance(solver, Mesa):
                watches.append(SystemsWatch(solver, hooks))
            elif isinstance(solver, AnchoredGradient):
                watches.append(GradientsWatch(solver, hooks))
        yield watches


class SystemsWatch:
    """The residuals of the linear systems of `Mesa`, masked reads included."""

    def __init__(self, solver: Mesa, hooks: ExitStack) -> None:
        self.residuals: list[Tensor] = []
        self.right: list[Tensor] = []
        hooks.callback(solver.method.register_forward_hook(self._record).remove)

    def _record(self, _: nn.Module, args: tuple[Any, ...], x: Tensor) -> None:
        systems, right = args
        # `[B, H, N, C]`; empty slots have a zero right-hand side.
        self.residuals.append((systems.apply(x) - right).square().sum(-1))
        self.right.append(right.square().sum(-1))

    def measures(self) -> dict[str, Tensor]:
        """`solve_residual` of all reads together and `solve_residual_largest` of any."""
        if not self.right:
            return {}
        residual, right = (
            torch.cat([one.movedim(1, -1).flatten(0, -2) for one in part])
            for part in (self.residuals, self.right)
        )
        of_all = residual.sum(0) / right.sum(0).clamp(min=TINY)
        of_any = (residual / right.clamp(min=TINY)).amax(0)
        return {"solve_residual": of_all.sqrt(), "solve_residual_largest": of_any.sqrt()}


class GradientsWatch:
    """The gradients that the valid tokens of a pass take in `AnchoredGradient`."""

    def __init__(self, solver: AnchoredGradient, hooks: ExitStack) -> None:
        self.taken: list[Tensor] = []
        self.kept: list[Tensor] = []
        self.valid: Tensor | None = None
        hooks.callback(solver.gain_limit.register_forward_hook(self._record).remove)
        hooks.callback(solver.mixing.register_forward_hook(self._record_grid).remove)

    def _record_grid(self, _: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        self.valid = args[1].valid

    def _record(self, _: nn.Module, args: tuple[Any, ...], limited: Any) -> None:
        assert self.valid is not None
        # A window puts older pairs before the block's own.
        own = slice(-self.valid.shape[2], None)
        for kept, factors in ((self.taken, args[0]), (self.kept, limited)):
            kept.append(squared_norms(factors).squeeze(-1)[:, :, own].sqrt())

    def measures(self) -> dict[str, Tensor]:
        """`inner_gradient`, its mean, `inner_gradient_largest` and `gain_limited`."""
        if self.valid is None or not self.valid.any():
            return {}
        # `[B, N, L, H]` of every slot to `[n, H]` of those whose token writes.
        taken, kept = (
            torch.stack(part, dim=1).transpose(2, 3)[self.valid] for part in (self.taken, self.kept)
        )
        limited = (kept < SHORTENED * taken).to(kept.dtype)
        return {
            "inner_gradient": kept.mean(0),
            "inner_gradient_largest": kept.amax(0),
            "gain_limited": limited.mean(0),
        }
