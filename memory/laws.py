"""What every memory must obey, as functions that raise AssertionError: for tests and for users.

    law(core, steps)     core in float64, its parameters moved away from zero; steps >= 11

To cross the borders of its chunks a core needs more `steps` than its `chunk_size`.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable

import torch

from .core import MemoryCore
from .law_tools import (
    BATCH,
    assert_close,
    assert_same_state,
    flatten,
    initial_like,
    live_state,
    make_flags,
    make_tokens,
    outcome,
    spoil_row,
)
from .state import leaves, map_leaves, state_bytes, state_from_dict, state_to_dict

Law = Callable[[MemoryCore, int], None]
FLAGS = ("none", "reset", "mask", "reset and mask")


def steps_and_splits_equal_one_call(core: MemoryCore, steps: int) -> None:
    """Outputs, final state and all gradients, with every kind of flags."""
    third = steps // 3
    for kind in FLAGS:
        x, state = make_tokens(core, steps).requires_grad_(), live_state(core)
        flags = make_flags(kind, steps)
        y, after, gradients = outcome(core, x, state, flags, [steps])
        for sizes in (
            [1] * steps,
            [third, 1, steps - 2 * third - 1, third],
            [third, steps - third],
        ):
            what = f"flags: {kind}; calls of {', '.join(map(str, sizes[:4]))}"
            y_parts, after_parts, gradients_parts = outcome(core, x, state, flags, sizes)
            assert_close(y_parts, y, f"{what}, output")
            assert_same_state(after_parts, after, what)
            for part, whole in zip(gradients_parts, gradients, strict=True):
                assert_close(part, whole, f"{what}, a gradient", 1e-8)


def a_reset_equals_a_new_call(core: MemoryCore, steps: int) -> None:
    """From the learned initial state on; the clocks of anchored memories run on."""
    x = make_tokens(core, steps)
    for t in (0, 3, steps - 1):
        reset = torch.zeros(BATCH, steps, dtype=torch.bool)
        reset[:, t] = True
        state = live_state(core)
        y, after = core(x, state, reset)
        before = core(x[:, :t], state)[1]
        start = initial_like(core, before) if core.anchored else core.init_state(BATCH)
        y_new, after_new = core(x[:, t:], start)
        assert_close(y[:, t:], y_new, f"reset at token {t}, output")
        assert_same_state(after, after_new, f"reset at token {t}")


def masked_tokens_change_nothing(core: MemoryCore, steps: int) -> None:
    """Not a bit of the state; their own reads stay finite."""
    state, x = live_state(core), make_tokens(core, steps)
    nothing = torch.zeros(BATCH, steps, dtype=torch.bool)
    for count in (1, steps):
        y, after = core(x[:, :count], state, mask=nothing[:, :count], commit=~nothing[:, :count])
        assert y.isfinite().all(), "reads of masked tokens are not finite"
        assert_same_state(after, state, "all tokens masked", tolerance=0.0)


def valid_tokens_do_not_see_masked_ones(core: MemoryCore, steps: int) -> None:
    """Leaving masked tokens out is the same."""
    state, x = live_state(core), make_tokens(core, steps)
    mask = torch.ones(BATCH, steps, dtype=torch.bool)
    mask[:, [0, 3, 4, steps - 1]] = False
    y, after = core(x, state, mask=mask)
    y_valid, after_valid = core(x[:, mask[0]], state)
    assert_close(y[:, mask[0]], y_valid, "masked tokens left out, output")
    assert_same_state(after, after_valid, "masked tokens left out")


def rows_never_touch_each_other(core: MemoryCore, steps: int) -> None:
    """A permuted batch gives permuted outputs, and a row alone gives its own."""
    for kind in ("none", "reset and mask"):
        x, state, flags = make_tokens(core, steps), live_state(core), make_flags(kind, steps)
        y, _ = core(x, state, **flags)
        order = torch.tensor([2, 0, 3, 1])
        permuted, _ = core(x[order], state[order], **{n: flag[order] for n, flag in flags.items()})
        assert_close(permuted, y[order], f"flags: {kind}; rows permuted")
        for row in range(BATCH):
            one = slice(row, row + 1)
            alone, _ = core(x[one], state[one], **{n: flag[one] for n, flag in flags.items()})
            assert_close(alone, y[one], f"flags: {kind}; row {row} alone")


def the_future_never_touches_the_past(core: MemoryCore, steps: int) -> None:
    """Not a bit of an earlier output depends on later tokens."""
    x = make_tokens(core, steps)
    reset = torch.rand(BATCH, steps) < 0.2
    y, _ = core(x, core.init_state(BATCH), reset)
    for t in (0, 4, steps - 2):
        changed = x.clone()
        changed[:, t + 1 :] = 100 * torch.randn_like(changed[:, t + 1 :])
        y_changed, _ = core(changed, core.init_state(BATCH), reset)
        assert_close(y_changed[:, : t + 1], y[:, : t + 1], f"tokens after {t} changed", 0.0)


def no_token_one_token_one_row(core: MemoryCore, steps: int) -> None:
    """T = 0 changes nothing, T = 1 is a step, B = 1 is a batch."""
    state, x = live_state(core, batch=1), make_tokens(core, 1, batch=1)
    y, after = core(x[:, :0], state)
    assert_close(y, x[:, :0], "no token, output")
    assert_same_state(after, state, "no token", tolerance=0.0)
    y, after = core(x, state)
    y_step, after_step = core.step(x[:, 0], state)
    assert_close(y[:, 0], y_step, "one token, output", 0.0)
    assert_same_state(after, after_step, "one token", tolerance=0.0)


def commits_move_only_snapshots(core: MemoryCore, steps: int) -> None:
    """They show in the outputs exactly when `reads_commits` says so."""
    x = make_tokens(core, steps)
    commit = torch.rand(BATCH, steps) < 0.5
    y, _ = core(x, core.init_state(BATCH))
    y_commit, _ = core(x, core.init_state(BATCH), commit=commit)
    seen = not torch.equal(y, y_commit)
    assert seen == core.reads_commits, f"commits seen: {seen}, reads_commits: {core.reads_commits}"


def nothing_is_changed_in_place(core: MemoryCore, steps: int) -> None:
    """Neither the tokens nor the state that are passed in."""
    state, x = live_state(core), make_tokens(core, steps)
    x_before, before = x.clone(), map_leaves(torch.clone, state)
    for count in (1, steps):
        core(x[:, :count], state, torch.ones(BATCH, count, dtype=torch.bool))
    assert_close(x, x_before, "the tokens passed in", 0.0)
    assert_same_state(state, before, "the state passed in", tolerance=0.0)


def bad_numbers_stay_in_their_row(core: MemoryCore, steps: int) -> None:
    """NaN in a token or the state of row 1: no other row, nothing earlier, gone after a reset."""
    state, x = live_state(core), make_tokens(core, steps)
    reset = torch.zeros(BATCH, steps, dtype=torch.bool)
    reset[1, 6] = True
    y, after = core(x, state, reset)
    bad_x = x.clone()
    bad_x[1, 2, 0] = torch.nan
    for what, tokens, start, first in (
        ("a bad token", bad_x, state, 2),
        ("a bad state", x, map_leaves(spoil_row, state), 0),
    ):
        y_bad, after_bad = core(tokens, start, reset)
        clean = torch.ones(BATCH, steps, dtype=torch.bool)
        clean[1, first:6] = False
        assert_close(y_bad[clean], y[clean], f"{what}, outputs that must not see it")
        assert_same_state(after_bad, after, f"{what}, after the reset")
        loss = y_bad[clean].square().sum()
        for gradient in torch.autograd.grad(loss, [*core.parameters()], allow_unused=True):
            assert gradient is None or gradient.isfinite().all(), f"{what}: gradient not finite"


def gradients_are_finite_and_reach_everything(core: MemoryCore, steps: int) -> None:
    """Every parameter is used; also for tokens that are zero, tiny or huge."""
    for scale in (0.0, 1e-8, 1.0, 1e4):
        x = (scale * make_tokens(core, steps)).requires_grad_()
        commit = torch.ones(BATCH, steps, dtype=torch.bool)
        y, _ = core(x, core.init_state(BATCH), commit=commit)
        assert y.isfinite().all(), f"tokens times {scale}: output not finite"
        names, parameters = zip(*core.named_parameters(), strict=True)
        found = torch.autograd.grad(y.square().sum(), [x, *parameters], allow_unused=True)
        for name, gradient in zip(["tokens", *names], found, strict=True):
            assert gradient is not None, f"{name}: no gradient reaches it"
            assert gradient.isfinite().all(), f"tokens times {scale}: gradient of {name} not finite"


def the_state_keeps_its_size(core: MemoryCore, steps: int) -> None:
    """Every leaf begins with the batch; its bytes stay as they are unless `grows`."""
    state, sizes = core.init_state(BATCH), []
    with torch.no_grad():
        for _ in range(3):
            assert all(leaf.shape[0] == BATCH for leaf in leaves(state)), "leaves must be [B, ...]"
            _, state = core(make_tokens(core, steps), state)
            sizes.append(state_bytes(state))
    constant = sizes == [core.state_bytes()] * 3
    assert constant != core.grows, f"bytes per row after calls: {sizes}, grows: {core.grows}"


def the_state_keeps_its_precision(core: MemoryCore, steps: int) -> None:
    """Under autocast every leaf keeps its type, which is not a low one."""
    core = copy.deepcopy(core).float()
    state, x = live_state(core), make_tokens(core, steps)
    before = {name: leaf.dtype for name, leaf in flatten(state).items()}
    low = [name for name, dtype in before.items() if dtype in (torch.bfloat16, torch.float16)]
    assert not low, f"leaves in low precision: {low}"
    for count in (1, steps):
        with torch.autocast(x.device.type, torch.bfloat16):
            y, after = core(x[:, :count], state)
        types = {name: leaf.dtype for name, leaf in flatten(after).items()}
        assert types == before, f"under autocast the state becomes {types}"
        assert y.isfinite().all(), "under autocast the output is not finite"


def everything_survives_saving(core: MemoryCore, steps: int) -> None:
    """State and parameters, as plain tensors through `torch.save`, go on exactly as before."""
    state, x = live_state(core), make_tokens(core, steps)
    file = io.BytesIO()
    torch.save({"state": state_to_dict(state), "core": core.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    twin = copy.deepcopy(core)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    twin.load_state_dict(saved["core"], strict=True)
    y, after = twin(x, state_from_dict(saved["state"], BATCH))
    y_before, after_before = core(x, state)
    assert_close(y, y_before, "loaded, output", 0.0)
    assert_same_state(after, after_before, "loaded", tolerance=0.0)


LAWS: dict[str, Law] = {
    law.__name__.replace("_", " "): law
    for law in (
        steps_and_splits_equal_one_call,
        a_reset_equals_a_new_call,
        masked_tokens_change_nothing,
        valid_tokens_do_not_see_masked_ones,
        rows_never_touch_each_other,
        the_future_never_touches_the_past,
        no_token_one_token_one_row,
        commits_move_only_snapshots,
        nothing_is_changed_in_place,
        bad_numbers_stay_in_their_row,
        gradients_are_finite_and_reach_everything,
        the_state_keeps_its_size,
        the_state_keeps_its_precision,
        everything_survives_saving,
    )
}
"""Laws by what they say."""
