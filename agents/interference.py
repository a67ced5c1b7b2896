"""Interference: what a step on new data does to the loss of old data.

    outer parameters     dL_old ~ g_old . d + 1/2 d' H_old d,   H d = grad (grad L_old . d)
    linear fast weights  L_old = 1/2 |W K - V|^2 in closed form: exact for any change D of W,
                         dL_old = <W K - V, D K> + 1/2 |D K|^2
                         and for one write D = e k^T:  e' E (K' k) + 1/2 |e|^2 |K' k|^2
    alignment            cos(grad J_future, grad L_local) of parameters;
                         cos(-dL_future/dS, S_t - S_{t-1}) of a write into a memory

The second-order term of a write is the squared overlap of its key with the old ones, |K' k|^2. A
positive alignment says that what was learned locally helps what comes. Sources: Lopez-Paz &
Ranzato 2017, arXiv 1706.08840 (gradient alignment as transfer); Pearlmutter 1994 (exact products
with the Hessian).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from .gradient_horizon import cosine

ScalarLoss = Callable[[], Tensor]
"""A scalar of the parameters as they are; no randomness of its own."""


@dataclass(frozen=True)
class LossChange:
    """First- and second-order terms of a change of a loss, and the true change."""

    first: float
    second: float
    true: float

    @property
    def predicted(self) -> float:
        """The quadratic estimate."""
        return self.first + self.second


def loss_change(
    loss: ScalarLoss, parameters: Sequence[nn.Parameter], step: Sequence[Tensor]
) -> LossChange:
    """How a `step` from the parameters as they are changes `loss`, estimated and measured.

    Three backward passes and one forward pass; parameters and their gradients are left as they
    were. `loss` must be differentiable twice. Raises ValueError where the shapes do not fit.
    """
    _check_shapes(parameters, step)
    before = loss()
    gradients = _gradients(before, parameters, differentiable=True)
    slope = _inner(gradients, step)
    second = 0.0
    if slope.requires_grad:  # a loss that is linear in the parameters has no curvature
        curved = _gradients(slope, parameters, differentiable=False)
        second = 0.5 * float(_inner(curved, step))
    with torch.no_grad(), moved(parameters, step):
        after = loss()
    return LossChange(float(slope.detach()), second, float(after - before.detach()))


def gradient_alignment(
    future: ScalarLoss, local: ScalarLoss, parameters: Sequence[nn.Parameter]
) -> float:
    """Cosine of the gradients of two losses; NaN where one of them is zero."""
    one, other = (
        torch.cat([g.flatten() for g in _gradients(loss(), parameters, differentiable=False)])
        for loss in (future, local)
    )
    return cosine(one, other)


def future_gradient(loss: Callable[[TensorDict], Tensor], state: TensorDict) -> TensorDict:
    """dL/dS of a loss of what is lived from `state` on; zero where it does not depend on it."""
    real = [
        key for key, leaf in state.items(True, True) if leaf.is_floating_point() and leaf.numel()
    ]
    leaf_state = state.detach().clone()
    for key in real:
        leaf_state.set(key, leaf_state.get(key).requires_grad_())
    leaves = [leaf_state.get(key) for key in real]
    gradients = _gradients(loss(leaf_state), leaves, differentiable=False)
    found = TensorDict({}, batch_size=state.batch_size)
    for key, gradient in zip(real, gradients, strict=True):
        found.set(key, gradient)
    return found


def write_alignment(before: TensorDict, after: TensorDict, gradient: TensorDict) -> Tensor:
    """cos(-dL/dS, S_after - S_before) `[B]` over the leaves of `gradient`; NaN where one is zero.

    The write is the true one, with gates, momentum and decay.
    """
    keys = list(gradient.keys(True, True))
    write = torch.cat([(after.get(k) - before.get(k)).flatten(1) for k in keys], 1)
    descent = torch.cat([-gradient.get(k).flatten(1) for k in keys], 1)
    sizes: Tensor = write.norm(dim=1) * descent.norm(dim=1)
    return (write * descent).sum(1) / sizes


def matrix_interference(
    weights: Tensor, change: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    """First- and second-order terms `[...]` of the change of 1/2 sum_j |W k_j - v_j|^2.

    `weights` and `change` `[..., V, K]`, old pairs `keys` `[..., n, K]` and `values`
    `[..., n, V]`. Their sum is the true change: the loss is quadratic in W.
    """
    errors = keys @ weights.mT - values
    moved_by = keys @ change.mT
    return (errors * moved_by).sum((-2, -1)), 0.5 * moved_by.square().sum((-2, -1))


def write_interference(
    weights: Tensor, write: Tensor, key: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    """The same for one write `write key^T`, `[..., V]` and `[..., K]`, without forming it."""
    overlap = (keys @ key.unsqueeze(-1)).squeeze(-1)
    errors = keys @ weights.mT - values
    first = ((errors @ write.unsqueeze(-1)).squeeze(-1) * overlap).sum(-1)
    return first, 0.5 * write.square().sum(-1) * coherence(key, keys)


def coherence(key: Tensor, keys: Tensor) -> Tensor:
    """|K' k|^2 `[...]`: the squared overlap of a key `[..., K]` with old ones `[..., n, K]`."""
    return (keys @ key.unsqueeze(-1)).squeeze(-1).square().sum(-1)


@contextmanager
def moved(parameters: Sequence[nn.Parameter], step: Sequence[Tensor]) -> Iterator[None]:
    """The parameters a step further on, and back to the same bits afterwards."""
    kept = [parameter.detach().clone() for parameter in parameters]
    with torch.no_grad():
        for parameter, part in zip(parameters, step, strict=True):
            parameter.add_(part)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, old in zip(parameters, kept, strict=True):
                parameter.copy_(old)


def _inner(one: Sequence[Tensor], other: Sequence[Tensor]) -> Tensor:
    return torch.stack([(a * b).sum() for a, b in zip(one, other, strict=True)]).sum()


def _gradients(loss: Tensor, sources: Sequence[Tensor], differentiable: bool) -> tuple[Tensor, ...]:
    found: tuple[Tensor, ...] = torch.autograd.grad(
        loss, list(sources), create_graph=differentiable, allow_unused=True, materialize_grads=True
    )
    return found


def _check_shapes(parameters: Sequence[nn.Parameter], step: Sequence[Tensor]) -> None:
    expected, got = ([list(x.shape) for x in xs] for xs in (parameters, step))
    if expected != got:
        raise ValueError(f"step: expected tensors of shapes {expected}, got {got}")
