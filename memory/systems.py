"""Linear systems of second-order memories, one per token, all tokens of a chunk at once.

    (G_t + Lambda) x_t = q_t,   G_t = carried_t G_in + sum_{j<=t} strength[t,j] k_j k_j^T

Sources: von Oswald et al. 2025 (MesaNet: conjugate gradients without forming G_t); Hestenes &
Stiefel 1952.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .checks import check_at_least


class Systems(NamedTuple):
    """Symmetric positive definite systems, in the shapes of N chunks of C tokens."""

    met: Tensor
    """G_in `[B, H, N, K, K]`"""
    carried: Tensor
    """`[B, H, N, C]`"""
    strength: Tensor
    """`[B, H, N, C, C]`, zero for j > t"""
    key: Tensor
    """`[B, H, N, C, K]`"""
    ridge: Tensor
    """The diagonal of Lambda, `[H, 1, 1, K]`"""

    def apply(self, x: Tensor) -> Tensor:
        """(G_t + Lambda) x_t for `x` `[B, H, N, C, K]`, in two products for all tokens."""
        written = (self.strength * (x @ self.key.mT)) @ self.key
        return self.carried.unsqueeze(-1) * (x @ self.met) + written + self.ridge * x

    def matrices(self) -> Tensor:
        """G_t + Lambda `[B, H, N, C, K, K]`."""
        outer = (self.key.unsqueeze(-1) * self.key.unsqueeze(-2)).flatten(-2)
        written = torch.unflatten(self.strength @ outer, -1, self.met.shape[-2:])
        carried = self.carried[..., None, None] * self.met.unsqueeze(-3)
        return written + carried + torch.diag_embed(self.ridge)


class SystemSolver(nn.Module, ABC):
    """Solves the systems of all tokens for one right-hand side each.

    The gradient is that of the exact solution, whatever the method: one solve more, and products.
    """

    def forward(self, systems: Systems, right: Tensor) -> Tensor:
        """x_t `[B, H, N, C, K]` for right-hand sides `[B, H, N, C, K]`."""
        # torch.compile takes no function that has both modes, and asks for the reverse one only.
        by_hand = _ReverseSolve if torch.compiler.is_compiling() else _ImplicitSolve
        x: Tensor = by_hand.apply(self, right, *systems)  # type: ignore[no-untyped-call]
        return x

    @abstractmethod
    def solve(self, systems: Systems, right: Tensor) -> Tensor:
        """The same, without a gradient of its own."""


class Cholesky(SystemSolver):
    """Forms and factorises every system: exact; K^3 / 3 flops per token.

    K^2 numbers per token exist meanwhile, but none are kept for the backward pass.
    """

    def forward(self, systems: Systems, right: Tensor) -> Tensor:
        # torch.compile does not take the gradient by hand, and autograd's own is exact here.
        if torch.compiler.is_compiling():
            return self.solve(systems, right)
        return super().forward(systems, right)

    def solve(self, systems: Systems, right: Tensor) -> Tensor:
        factor = torch.linalg.cholesky_ex(systems.matrices()).L
        return torch.cholesky_solve(right.unsqueeze(-1), factor).squeeze(-1)


class ConjugateGradient(SystemSolver):
    """`num_iterations` of conjugate gradients from zero: never forms a system.

    Exact up to rounding from about K iterations on. Differentiating the iteration itself would be
    wrong wherever it converges early, as it does for every token soon after a reset. Single tokens
    and chunks agree even when truncated.
    """

    def __init__(self, num_iterations: int = 16) -> None:
        super().__init__()
        check_at_least("num_iterations", num_iterations, 1)
        self.num_iterations = num_iterations

    def solve(self, systems: Systems, right: Tensor) -> Tensor:
        return conjugate_gradient(systems, right, self.num_iterations)


def _pull_back(
    method: SystemSolver, x: Tensor, system: Sequence[Tensor], gradient: Tensor
) -> tuple[Tensor | None, ...]:
    """dq = A^{-1} dx and, of dA = -dq x^T, the parts; None for the method itself."""
    y = method(Systems(*system), gradient)
    met, carried, strength, key, _ = system
    x_scores, y_scores = x @ key.mT, y @ key.mT
    for_key = (strength * x_scores).mT @ y + (strength * y_scores).mT @ x
    for_met = -(carried.unsqueeze(-1) * x).mT @ y
    return (
        None,
        y,
        (for_met + for_met.mT) / 2,  # of a symmetric matrix, as autograd has it of a factorisation
        -(y * (x @ met)).sum(-1),
        -x_scores * y_scores,
        -for_key,
        -(x * y).sum((0, 2, 3)).unsqueeze(1).unsqueeze(1),
    )


class _ReverseSolve(torch.autograd.Function):
    """x = A^{-1} q in reverse mode, as torch.compile takes it."""

    @staticmethod
    def forward(ctx: Any, method: SystemSolver, right: Tensor, *system: Tensor) -> Tensor:
        x = method.solve(Systems(*system), right)
        ctx.method = method
        ctx.save_for_backward(x, *system)
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, *system = ctx.saved_tensors
        return _pull_back(ctx.method, x, system, gradients[0])


class _ImplicitSolve(torch.autograd.Function):
    """x = A^{-1} q in both modes, differentiable again."""

    generate_vmap_rule = True

    @staticmethod
    def forward(method: SystemSolver, right: Tensor, *system: Tensor) -> Tensor:
        return method.solve(Systems(*system), right)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.method, _, *system = inputs
        ctx.save_for_backward(output, *system)
        ctx.save_for_forward(output, *system)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, *system = ctx.saved_tensors
        return _pull_back(ctx.method, x, system, gradients[0])

    @staticmethod
    def jvp(ctx: Any, _: None, right: Tensor, *tangents: Tensor) -> Tensor:
        """A dx = dq - dA x."""
        x, *system = ctx.saved_tensors
        applied = torch.func.jvp(lambda *parts: Systems(*parts).apply(x), tuple(system), tangents)
        solved: Tensor = ctx.method(Systems(*system), right - applied[1])
        return solved


def conjugate_gradient(systems: Systems, right: Tensor, num_iterations: int) -> Tensor:
    """The iterate x_t `[B, H, N, C, K]` after `num_iterations`; a solved system stands still."""
    x = torch.zeros_like(right)
    residual = direction = right
    size = residual.square().sum(-1, keepdim=True)
    limits = torch.finfo(right.dtype)
    vanished = size * limits.eps**2 + limits.tiny
    for _ in range(num_iterations):
        active = size > vanished
        applied = systems.apply(direction)
        curvature = (direction * applied).sum(-1, keepdim=True)
        step = torch.where(active, size, 0.0) / torch.where(active, curvature, 1.0)
        x = x + step * direction
        residual = residual - step * applied
        next_size = residual.square().sum(-1, keepdim=True)
        turn = torch.where(active, next_size, 0.0) / torch.where(active, size, 1.0)
        direction = residual + turn * direction
        size = next_size
    return x
