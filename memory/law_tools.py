"""What the laws of a memory are checked with: tokens, flags, states, one-line comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tensordict import TensorDict
from torch import Tensor

from .core import MemoryCore
from .state import leaves

BATCH = 4
Flags = dict[str, Tensor]


def make_flags(kind: str, steps: int) -> Flags:
    """Resets at the first, consecutive and last tokens; one row without any valid token.

    Both kinds together come with commits, some of them at resets and at masked tokens.
    """
    reset = torch.rand(BATCH, steps) < 0.15
    reset[0, 0] = reset[1, 4] = reset[1, 5] = reset[2, -1] = True
    mask = torch.rand(BATCH, steps) < 0.7
    mask[3] = False
    mask[1, 5] = False
    flags = {name: flag for name, flag in (("reset", reset), ("mask", mask)) if name in kind}
    if len(flags) == 2:
        flags["commit"] = torch.rand(BATCH, steps) < 0.3
    return flags


def make_tokens(core: MemoryCore, steps: int, batch: int = BATCH) -> Tensor:
    """Random tokens `[B, T, width]` of the core's own type and device."""
    like = next(core.parameters(), torch.empty(0, dtype=torch.float64))
    return torch.randn(batch, steps, core.width, dtype=like.dtype, device=like.device)


def live_state(core: MemoryCore, batch: int = BATCH) -> TensorDict:
    """A state that has seen some tokens, cut from the graph that made it."""
    with torch.no_grad():
        return core(make_tokens(core, 7, batch), core.init_state(batch))[1]


def run_in_parts(
    core: MemoryCore, x: Tensor, state: TensorDict, flags: Flags, sizes: Sequence[int]
) -> tuple[Tensor, TensorDict]:
    """Feed `x` in calls of the given sizes, tokens one by one where the size is 1."""
    outputs, start = [], 0
    for size in sizes:
        part = {name: flag[:, start : start + size] for name, flag in flags.items()}
        if size == 1:
            part = {name: flag[:, 0] for name, flag in part.items()}
            y, state = core.step(x[:, start], state, **part)
            outputs.append(y.unsqueeze(1))
        else:
            y, state = core(x[:, start : start + size], state, **part)
            outputs.append(y)
        start += size
    assert start == x.shape[1]
    return torch.cat(outputs, dim=1), state


def flatten(state: TensorDict) -> dict[str, Tensor]:
    """Leaves by dotted name."""
    flat: dict[str, Tensor] = {}
    for key, leaf in state.items():
        if isinstance(leaf, Tensor):
            flat[key] = leaf
        else:
            flat |= {f"{key}.{inner}": value for inner, value in flatten(leaf).items()}
    return flat


def initial_like(core: MemoryCore, state: TensorDict) -> TensorDict:
    """The initial state, with the clocks of `state` that no reset touches."""
    return core.reset_rows(state, torch.ones(state.batch_size[0], dtype=torch.bool))


def assert_close(actual: Tensor, expected: Tensor, what: str, tolerance: float = 1e-10) -> None:
    """Raise AssertionError, in one line that begins with `what`, unless the tensors agree."""
    assert actual.shape == expected.shape, f"{what}: {[*actual.shape]}, not {[*expected.shape]}"
    difference = (actual.double() - expected.double()).abs()
    allowed = 1e-2 * tolerance + tolerance * expected.double().abs()
    same = (difference <= allowed) | (actual == expected) | (actual.isnan() & expected.isnan())
    if not same.all():
        raise AssertionError(f"{what}: off by {difference[~same].max().item():.1e}")


def assert_same_state(
    actual: TensorDict, expected: TensorDict, what: str, tolerance: float = 1e-10
) -> None:
    """`assert_close` for every leaf, by name."""
    got, want = flatten(actual), flatten(expected)
    assert got.keys() == want.keys(), f"{what}: leaves {[*got]}, not {[*want]}"
    for name in want:
        assert_close(got[name], want[name], f"{what}, state {name}", tolerance)


def outcome(
    core: MemoryCore, x: Tensor, state: TensorDict, flags: Flags, sizes: Sequence[int]
) -> tuple[Tensor, TensorDict, Sequence[Tensor]]:
    """Outputs, final state and the gradients of a scalar of both by everything that goes in."""
    inputs = [leaf.requires_grad_() for leaf in leaves(state) if leaf.is_floating_point()]
    y, after = run_in_parts(core, x, state, flags, sizes)
    loss = y.tanh().square().sum()
    for leaf in leaves(after):
        if leaf.is_floating_point():
            loss = loss + leaf.sin().sum()
    sources = [x, *inputs, *core.parameters()]
    gradients = torch.autograd.grad(loss, sources, allow_unused=True, materialize_grads=True)
    return y, after, gradients


def spoil_row(leaf: Tensor) -> Tensor:
    """The leaf with NaN in row 1."""
    if not leaf.is_floating_point():
        return leaf
    spoiled = leaf.clone()
    spoiled[1] = torch.nan
    return spoiled
