"""The state is data: saved, sliced, permuted, joined, counted; its initial value is learned."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch

from sojourn.memory import Stack, state_bytes, state_from_dict, state_to_dict, where_reset

BATCH, STEPS, WIDTH = 4, 7, 6


def setting(case):
    core = case.core()
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        reset = torch.zeros(BATCH, STEPS, dtype=torch.bool)
        reset[1, 3] = True
        _, state = core(x, core.init_state(BATCH), reset)
    return core, x, state


def test_leaves_are_batch_first(case, tools):
    core, _, state = setting(case)
    for one in (core.init_state(BATCH), state):
        assert list(one.batch_size) == [BATCH]
        assert all(leaf.shape[0] == BATCH for leaf in tools.flatten(one).values())


def test_counters_are_64_bit(case, tools):
    core, _, state = setting(case)
    for one in (core.init_state(BATCH), state, core.reset_rows(state, torch.ones(BATCH).bool())):
        for name, leaf in tools.flatten(one).items():
            if not leaf.is_floating_point():
                assert leaf.dtype in {torch.int64, torch.bool}, name


def test_state_survives_saving(case, tools):
    core, x, state = setting(case)
    file = io.BytesIO()
    torch.save(state_to_dict(state), file)
    file.seek(0)
    loaded = state_from_dict(torch.load(file, weights_only=True), BATCH)
    tools.assert_same_state(loaded, state, tolerance=0.0)
    assert torch.equal(core(x, loaded)[0], core(x, state)[0])


def test_saved_state_is_a_detached_copy(case, tools):
    core, _, _ = setting(case)
    saved = state_to_dict(core.init_state(BATCH))
    for leaf in tools.flatten(state_from_dict(saved, BATCH)).values():
        assert not leaf.requires_grad and leaf.is_contiguous()


def test_rows_can_be_sliced_permuted_and_joined(case, tools):
    core, x, state = setting(case)
    y, after = core(x, state)
    halves = [core(x[rows], state[rows]) for rows in (slice(0, 2), slice(2, 4))]
    torch.testing.assert_close(torch.cat([half for half, _ in halves]), y, rtol=1e-12, atol=1e-12)
    joined = torch.cat([half for _, half in halves])
    tools.assert_same_state(joined, after, tolerance=1e-12)
    order = torch.tensor([3, 1, 0, 2])
    rejoined = torch.cat([state[order[:1]], state[order[1:]]])
    y_permuted, after_permuted = core(x[order], rejoined)
    torch.testing.assert_close(y_permuted, y[order], rtol=1e-12, atol=1e-12)
    tools.assert_same_state(after_permuted, after[order], tolerance=1e-12)


def test_reset_rows_gives_the_initial_state(case, tools):
    core, x, state = setting(case)
    rows = torch.tensor([True, False, True, False])
    cleared = core.reset_rows(state, rows)
    y_cleared, _ = core(x, cleared)
    start = tools.initial_like(core, state) if core.anchored else core.init_state(BATCH)
    y_new, _ = core(x, start)
    y_kept, _ = core(x, state)
    torch.testing.assert_close(y_cleared[rows], y_new[rows], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(y_cleared[~rows], y_kept[~rows], rtol=1e-12, atol=1e-12)


def test_state_bytes_are_constant_unless_the_state_grows(case):
    core, x, _ = setting(case)
    state = core.init_state(BATCH)
    assert core.state_bytes() == state_bytes(state)
    sizes = []
    with torch.no_grad():
        for _ in range(3):
            _, state = core(x, state)
            sizes.append(state_bytes(state))
    if core.grows:
        assert sizes[0] < sizes[1] < sizes[2]
    else:
        assert sizes == [core.state_bytes()] * 3


@pytest.mark.parametrize("steps", [1, STEPS])
def test_learned_initial_state_receives_gradient_through_a_reset(case, tools, steps):
    core, x, state = setting(case)
    initial = {n: p for n, p in core.named_parameters() if "initial" in n.rsplit(".", 1)[-1]}
    reset = torch.zeros(BATCH, steps, dtype=torch.bool)
    reset[0, -1] = True
    for flags in ({}, {"reset": reset}):
        start = core.init_state(BATCH) if not flags else state
        y, _ = core(x[:, :steps], start, **flags)
        if not initial:
            continue
        gradients = torch.autograd.grad(y.square().sum(), list(initial.values()))
        assert all(gradient.abs().max() > 0 for gradient in gradients)
    if not initial:
        floating = [v for v in tools.flatten(core.init_state(1)).values() if v.is_floating_point()]
        assert not any(leaf.any() for leaf in floating)


def test_segments_are_trained_one_by_one(case):
    core, x, _ = setting(case)
    state = core.init_state(BATCH)
    for _ in range(4):
        y, state = core(x, state)
        y.square().sum().backward()
        state = state.detach()
    y, state = core(x, core.init_state(BATCH))
    y_next, _ = core(x, state)
    (y.square().sum() + y_next.square().sum()).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in core.parameters())


def test_detached_states_keep_no_graph(case, tools):
    core, x, _ = setting(case)
    _, state = core(x, core.init_state(BATCH))
    assert all(leaf.grad_fn is None for leaf in tools.flatten(state.detach()).values())


def test_where_reset_selects_rows_of_nested_states(tools):
    core = Stack([tools.build("lstm", width=WIDTH), tools.build("gated_delta_net", width=WIDTH)])
    tools.randomise(core)
    initial = core.init_state(3)
    _, state = core(torch.randn(3, STEPS, WIDTH), initial)
    rows = torch.tensor([False, True, False])
    mixed = where_reset(rows, initial, state)
    tools.assert_same_state(mixed[1:2], initial[1:2], tolerance=0.0)
    tools.assert_same_state(mixed[::2], state[::2], tolerance=0.0)


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda core: pickle.loads(pickle.dumps(core))]
)
def test_a_memory_can_be_copied_and_sent_to_another_process(case, duplicate):
    core, x, state = setting(case)
    assert torch.equal(duplicate(core)(x, state)[0], core(x, state)[0])


def test_everything_lives_where_the_parameters_do(case, tools):
    core = case.core()
    # The size of a growing cache depends on data, which the meta device has none of.
    device = torch.device("cpu" if core.grows else "meta")
    core.to(device)
    flags = [torch.ones(BATCH, STEPS, dtype=torch.bool, device=device) for _ in range(2)]
    x = torch.zeros(BATCH, STEPS, WIDTH, dtype=torch.float64, device=device)
    for steps in (1, STEPS):
        y, state = core(x[:, :steps], core.init_state(BATCH), *(flag[:, :steps] for flag in flags))
        assert y.device == device
        assert all(leaf.device == device for leaf in tools.flatten(state).values())
