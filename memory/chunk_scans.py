"""The recurrences that run over chunks one by one, with gradients written by hand.

    decayed sums   S_n = kept_n * S_{n-1} + writes_n
    delta errors   E_n = T_n (values_n - erased_n S_{n-1}^T),   T_n = (I + tril(system_n, -1))^{-1}
                   S_n = kept_n * S_{n-1} + start_n + E_n^T keys_n

Back in time, with D_n the gradient at S_n,

    R_n = T_n^T (dE_n + keys_n D_n^T),   D_{n-1} = dmet_n + kept_n * D_n - R_n^T erased_n

and all other gradients are products of what these leave, made for all chunks at once: the one at
the system is -tril(R_n E_n^T, -1), so that T itself needs none. All are differentiable again.
M memories run side by side.

Source: the chunked delta rule of Yang et al. 2024 (DeltaNet); the gradients are ours.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .transforms import gradients_by_hand
from .triangular import solve_unit_lower


def decayed_sums(kept: Tensor, writes: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """States that N chunks meet `[M, N, V, K]`, and the last one, from `state` `[M, V, K]`.

    `writes` `[M, N, V, K]`, `kept` `[M, N, 1, K or 1]`.
    """
    if not gradients_by_hand():
        return _sum(kept, writes, state)
    return _DecayedSums.apply(kept, writes, state)  # type: ignore[no-untyped-call,no-any-return]


def delta_errors(
    state: Tensor,
    values: Tensor,
    keys: Tensor,
    kept: Tensor,
    erased: Tensor,
    system: Tensor,
    start: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Errors `[M, N, C, V]`, the states met `[M, N, V, K]` and the last, from `[M, V, K]`.

    Shapes of the parts as in `ChunkWrites`, with one axis M for B H.
    """
    parts = (state, values, keys, kept, erased, system, start)
    run = _DeltaErrors.apply if gradients_by_hand() else _correct
    errors, met, last, _ = run(*parts)
    return errors, met, last


def _sum(kept: Tensor, writes: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    met = []
    for share, added in zip(kept.unbind(1), writes.unbind(1), strict=True):
        met.append(state)
        state = torch.addcmul(added, share, state)
    return torch.stack(met, dim=1), state


class _DecayedSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kept: Tensor, writes: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        met, last = _sum(kept, writes, state)
        ctx.save_for_backward(kept, met)
        return met, last

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        kept, met = ctx.saved_tensors
        for_met, for_last = gradients
        # The same sums, backwards in time.
        after, for_state = _sum(kept.flip(1), for_met.flip(1), for_last)
        after = after.flip(1)
        return _at_kept(ctx.needs_input_grad[0], after, met, kept), after, for_state


class _DeltaErrors(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *parts: Tensor | None) -> tuple[Tensor, ...]:
        outputs = _correct(*parts)  # type: ignore[arg-type]
        errors, met, _, inverse = outputs
        _, _, keys, kept, erased, _, start = parts
        ctx.has_start = start is not None
        ctx.save_for_backward(keys, kept, erased, errors, met, inverse)
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        keys, kept, erased, errors, met, inverse = ctx.saved_tensors
        like = (errors, met, met[:, 0])
        for_errors, for_met, for_last = (
            torch.zeros_like(one) if gradient is None else gradient
            for gradient, one in zip(gradients, like, strict=False)
        )
        after, right, for_state = _go_back(
            for_errors, for_met, for_last, keys, kept, erased, inverse
        )
        for_system = (right @ errors.mT).tril(-1)
        if gradients[3] is not None:
            for_system = for_system + (inverse.mT @ gradients[3] @ inverse.mT).tril(-1)
        return (
            for_state,
            right,
            errors @ after,
            _at_kept(ctx.needs_input_grad[3], after, met, kept),
            -(right @ met),
            -for_system,
            after if ctx.has_start else None,
        )


def _correct(
    state: Tensor,
    values: Tensor,
    keys: Tensor,
    kept: Tensor,
    erased: Tensor,
    system: Tensor,
    start: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Errors, the states met, the last state and T."""
    inverse = solve_unit_lower(system)
    errors, met = [], []
    parts = (part.unbind(1) for part in (values, keys, kept, erased, inverse))
    for n, (value, key, share, erase, solve) in enumerate(zip(*parts, strict=True)):
        met.append(state)
        errors.append(torch.bmm(solve, torch.baddbmm(value, erase, state.mT, alpha=-1)))
        left = share * state if start is None else torch.addcmul(start[:, n], share, state)
        state = torch.baddbmm(left, errors[-1].mT, key)
    return torch.stack(errors, dim=1), torch.stack(met, dim=1), state, inverse


def _go_back(
    for_errors: Tensor,
    for_met: Tensor,
    for_state: Tensor,
    keys: Tensor,
    kept: Tensor,
    erased: Tensor,
    inverse: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """D `[M, N, V, K]` at the states after the chunks, R `[M, N, C, V]`, D before the first."""
    after, right = [], []
    columns = (for_errors, for_met, keys, kept, erased, inverse)
    parts = (part.unbind(1)[::-1] for part in columns)
    for for_error, for_one, key, share, erase, solve in zip(*parts, strict=True):
        after.append(for_state)
        right.append(torch.bmm(solve.mT, torch.baddbmm(for_error, key, for_state.mT)))
        for_state = torch.addcmul(for_one, share, for_state)
        for_state = torch.baddbmm(for_state, right[-1].mT, erase, alpha=-1)
    return torch.stack(after[::-1], dim=1), torch.stack(right[::-1], dim=1), for_state


def _at_kept(needed: bool, after: Tensor, met: Tensor, kept: Tensor) -> Tensor | None:
    """The gradient at `kept`, from those at the states after the chunks."""
    return (after * met).sum_to_size(kept.shape) if needed else None
