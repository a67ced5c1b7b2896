"""Laws of every memory: one call, single steps and any split are the same map, in float64."""

from __future__ import annotations

import pytest
import torch
from tensordict import TensorDict
from torch import Tensor

BATCH, STEPS, WIDTH = 4, 11, 6
FLAGS = ["none", "reset", "mask", "reset and mask"]


def make_flags(kind: str) -> dict[str, Tensor]:
    """Resets at the first, consecutive and last tokens; one row without any valid token.

    Both kinds together come with commits, some of them at resets and at masked tokens.
    """
    reset = torch.rand(BATCH, STEPS) < 0.15
    reset[0, 0] = reset[1, 4] = reset[1, 5] = reset[2, -1] = True
    mask = torch.rand(BATCH, STEPS) < 0.7
    mask[3] = False
    mask[1, 5] = False
    flags = {name: flag for name, flag in (("reset", reset), ("mask", mask)) if name in kind}
    if len(flags) == 2:
        flags["commit"] = torch.rand(BATCH, STEPS) < 0.3
    return flags


def live_state(core, batch: int = BATCH) -> TensorDict:
    """A state that has seen some tokens, cut from the graph that made it."""
    with torch.no_grad():
        x = torch.randn(batch, 7, WIDTH, dtype=torch.float64)
        return core(x, core.init_state(batch))[1]


def outcome(core, tools, x, state, flags, sizes):
    """Outputs, final state and the gradients of a scalar of both with respect to everything."""
    leaves = tools.flatten(state)
    inputs = [leaf.requires_grad_() for leaf in leaves.values() if leaf.is_floating_point()]
    y, after = tools.run_in_parts(core, x, state, flags, sizes)
    loss = y.tanh().square().sum()
    for leaf in tools.flatten(after).values():
        if leaf.is_floating_point():
            loss = loss + leaf.sin().sum()
    sources = [x, *inputs, *core.parameters()]
    gradients = torch.autograd.grad(loss, sources, allow_unused=True, materialize_grads=True)
    return y, after, gradients


@pytest.mark.parametrize("kind", FLAGS)
def test_steps_and_splits_equal_one_call(case, tools, kind):
    core = case.core()
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64, requires_grad=True)
    state, flags = live_state(core), make_flags(kind)
    y, after, gradients = outcome(core, tools, x, state, flags, [STEPS])
    for sizes in ([1] * STEPS, [2, 1, 5, 3], [6, 5]):
        y_parts, after_parts, gradients_parts = outcome(core, tools, x, state, flags, sizes)
        torch.testing.assert_close(y_parts, y, rtol=1e-10, atol=1e-12)
        tools.assert_same_state(after_parts, after)
        for part, whole in zip(gradients_parts, gradients, strict=True):
            torch.testing.assert_close(part, whole, rtol=1e-8, atol=1e-8)


def test_reset_equals_a_new_call_from_the_initial_state(case, tools):
    core = case.core()
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    for t in (0, 3, STEPS - 1):
        reset = torch.zeros(BATCH, STEPS, dtype=torch.bool)
        reset[:, t] = True
        y, after = core(x, live_state(core), reset)
        before = core(x[:, :t], live_state(core))[1]
        start = tools.initial_like(core, before) if core.anchored else core.init_state(BATCH)
        y_new, after_new = core(x[:, t:], start)
        torch.testing.assert_close(y[:, t:], y_new, rtol=1e-10, atol=1e-12)
        tools.assert_same_state(after, after_new)


def test_masked_tokens_change_nothing(case, tools):
    core = case.core()
    state = live_state(core)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    nothing = torch.zeros(BATCH, STEPS, dtype=torch.bool)
    for steps in (1, STEPS):
        y, after = core(x[:, :steps], state, mask=nothing[:, :steps], commit=~nothing[:, :steps])
        assert y.isfinite().all()
        tools.assert_same_state(after, state, tolerance=0.0)


def test_valid_tokens_do_not_see_masked_ones(case, tools):
    core = case.core()
    state = live_state(core)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    mask = torch.ones(BATCH, STEPS, dtype=torch.bool)
    mask[:, [0, 3, 4, STEPS - 1]] = False
    y, after = core(x, state, mask=mask)
    y_valid, after_valid = core(x[:, mask[0]], state)
    torch.testing.assert_close(y[:, mask[0]], y_valid, rtol=1e-10, atol=1e-12)
    tools.assert_same_state(after, after_valid)


@pytest.mark.parametrize("kind", ["none", "reset and mask"])
def test_rows_never_touch_each_other(case, tools, kind):
    core = case.core()
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    state, flags = live_state(core), make_flags(kind)
    y, _ = core(x, state, **flags)
    order = torch.tensor([2, 0, 3, 1])
    y_permuted, _ = core(x[order], state[order], **{k: flag[order] for k, flag in flags.items()})
    torch.testing.assert_close(y_permuted, y[order], rtol=1e-12, atol=1e-12)
    for row in range(BATCH):
        one = slice(row, row + 1)
        y_alone, _ = core(x[one], state[one], **{k: flag[one] for k, flag in flags.items()})
        torch.testing.assert_close(y_alone, y[one], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_future_never_touches_the_past(case, dtype):
    core = case.core(dtype)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=dtype)
    reset = torch.rand(BATCH, STEPS) < 0.2
    y, _ = core(x, core.init_state(BATCH), reset)
    for t in (0, 4, STEPS - 2):
        changed = x.clone()
        changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :]) * 100
        y_changed, _ = core(changed, core.init_state(BATCH), reset)
        assert torch.equal(y_changed[:, : t + 1], y[:, : t + 1])


def test_no_token_one_token_one_row(case, tools):
    core = case.core()
    state = live_state(core, batch=1)
    x = torch.randn(1, 1, WIDTH, dtype=torch.float64)
    y, after = core(x[:, :0], state)
    assert y.shape == (1, 0, WIDTH)
    tools.assert_same_state(after, state, tolerance=0.0)
    y, after = core(x, state)
    y_step, after_step = core.step(x[:, 0], state)
    assert torch.equal(y[:, 0], y_step)
    tools.assert_same_state(after, after_step, tolerance=0.0)


def test_commit_moves_only_snapshots(case):
    core = case.core()
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    commit = torch.rand(BATCH, STEPS) < 0.5
    y, _ = core(x, core.init_state(BATCH))
    y_commit, _ = core(x, core.init_state(BATCH), commit=commit)
    assert torch.equal(y, y_commit) != core.reads_commits


def test_nothing_is_changed_in_place(case, tools):
    core = case.core()
    state = live_state(core)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    x_before = x.clone()
    before = {name: leaf.clone() for name, leaf in tools.flatten(state).items()}
    for steps in (1, STEPS):
        core(x[:, :steps], state, torch.ones(BATCH, steps, dtype=torch.bool))
    assert torch.equal(x, x_before)
    for name, leaf in tools.flatten(state).items():
        assert torch.equal(leaf, before[name]), name
