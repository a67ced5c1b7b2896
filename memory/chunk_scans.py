"""The recurrences that run over chunks one by one, with gradients written by hand.

    decayed sums   S_n = carry_n(S_{n-1}) + start_n + values_n^T keys_n
    delta errors   E_n = T_n (values_n - erased_n S_{n-1}^T),   T_n = (I + tril(system_n, -1))^{-1}
                   S_n = carry_n(S_{n-1}) + start_n + E_n^T keys_n

Back in time, with D_n the gradient at S_n,

    R_n = T_n^T (dE_n + keys_n D_n^T),   D_{n-1} = dmet_n + carry_n^T(D_n) - R_n^T erased_n

and all other gradients are products of what these leave, made for all chunks at once: the one at
the system is -tril(R_n E_n^T, -1), so that T itself needs none. All are differentiable again.
M memories run side by side.

Source: the chunked delta rule of Yang et al. 2024 (DeltaNet); the gradients are ours.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .carry import Carry
from .transforms import gradients_by_hand
from .triangular import solve_unit_lower


def decayed_sums(
    carry: Carry, state: Tensor, values: Tensor, keys: Tensor, start: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """States that N chunks meet `[M, N, V, K]`, and the last one, from `state` `[M, V, K]`.

    Shapes of the parts as in `ChunkWrites`, with one axis M for B H.
    """
    run = _DecayedSums.apply if gradients_by_hand() else _sum
    met, last = run(*carry, state, values, keys, start)
    return met, last


def delta_errors(
    carry: Carry,
    state: Tensor,
    values: Tensor,
    keys: Tensor,
    erased: Tensor,
    system: Tensor,
    start: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Errors `[M, N, C, V]`, the states met `[M, N, V, K]` and the last, from `[M, V, K]`.

    Shapes of the parts as in `ChunkWrites`, with one axis M for B H.
    """
    run = _DeltaErrors.apply if gradients_by_hand() else _correct
    errors, met, last, _ = run(*carry, state, values, keys, erased, system, start)
    return errors, met, last


def _sum(
    kept: Tensor,
    moved: Tensor | None,
    state: Tensor,
    values: Tensor,
    keys: Tensor,
    start: Tensor | None,
) -> tuple[Tensor, Tensor]:
    writes, met = values.mT @ keys, []
    if start is not None:
        writes = writes + start
    for carry, added in zip(Carry(kept, moved).chunks(), writes.unbind(1), strict=True):
        met.append(state)
        state = carry.apply(state, added)
    return torch.stack(met, dim=1), state


class _DecayedSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *parts: Any) -> tuple[Tensor, Tensor]:
        met, last = _sum(*parts)
        kept, moved, _, values, keys, start = parts
        ctx.has_start = start is not None
        ctx.save_for_backward(kept, moved, values, keys, met)
        return met, last

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *shares, values, keys, met = ctx.saved_tensors
        carry, (for_met, for_state) = Carry(*shares), gradients
        after = []
        for one, added in zip(carry.backwards(), for_met.unbind(1)[::-1], strict=True):
            after.append(for_state)
            for_state = one.apply_back(for_state, added)
        for_writes = torch.stack(after[::-1], dim=1)
        return (
            *carry.gradients(for_writes, met, ctx.needs_input_grad),
            for_state,
            keys @ for_writes.mT,
            values @ for_writes,
            for_writes if ctx.has_start else None,
        )


class _DeltaErrors(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *parts: Any) -> tuple[Tensor, ...]:
        outputs = _correct(*parts)
        kept, moved, _, _, keys, erased, _, start = parts
        errors, met, _, inverse = outputs
        ctx.has_start = start is not None
        ctx.save_for_backward(kept, moved, keys, erased, errors, met, inverse)
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        *shares, keys, erased, errors, met, inverse = ctx.saved_tensors
        carry, like = Carry(*shares), (errors, met, met[:, 0])
        for_errors, for_met, for_last = (
            torch.zeros_like(one) if gradient is None else gradient
            for gradient, one in zip(gradients, like, strict=False)
        )
        after, right, for_state = _go_back(
            carry, for_errors, for_met, for_last, keys, erased, inverse
        )
        for_system = (right @ errors.mT).tril(-1)
        if gradients[3] is not None:
            for_system = for_system + (inverse.mT @ gradients[3] @ inverse.mT).tril(-1)
        return (
            *carry.gradients(after, met, ctx.needs_input_grad),
            for_state,
            right,
            errors @ after,
            -(right @ met),
            -for_system,
            after if ctx.has_start else None,
        )


def _correct(
    kept: Tensor,
    moved: Tensor | None,
    state: Tensor,
    values: Tensor,
    keys: Tensor,
    erased: Tensor,
    system: Tensor,
    start: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Errors, the states met, the last state and T."""
    inverse = solve_unit_lower(system)
    errors, met = [], []
    parts = (part.unbind(1) for part in (values, keys, erased, inverse))
    columns = zip(Carry(kept, moved).chunks(), *parts, strict=True)
    for n, (carry, value, key, erase, solve) in enumerate(columns):
        met.append(state)
        errors.append(torch.bmm(solve, torch.baddbmm(value, erase, state.mT, alpha=-1)))
        left = carry.apply(state, None if start is None else start[:, n])
        state = torch.baddbmm(left, errors[-1].mT, key)
    return torch.stack(errors, dim=1), torch.stack(met, dim=1), state, inverse


def _go_back(
    carry: Carry,
    for_errors: Tensor,
    for_met: Tensor,
    for_state: Tensor,
    keys: Tensor,
    erased: Tensor,
    inverse: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """D `[M, N, V, K]` at the states after the chunks, R `[M, N, C, V]`, D before the first."""
    after, right = [], []
    parts = (part.unbind(1)[::-1] for part in (for_errors, for_met, keys, erased, inverse))
    for one, for_error, for_one, key, erase, solve in zip(carry.backwards(), *parts, strict=True):
        after.append(for_state)
        right.append(torch.bmm(solve.mT, torch.baddbmm(for_error, key, for_state.mT)))
        for_state = one.apply_back(for_state, for_one)
        for_state = torch.baddbmm(for_state, right[-1].mT, erase, alpha=-1)
    return torch.stack(after[::-1], dim=1), torch.stack(right[::-1], dim=1), for_state
