"""Bugs reported against public implementations; the names give repository and report."""

from __future__ import annotations

import pytest
import torch

from sojourn.memory import state_bytes
from sojourn.memory.state import leaves, map_leaves

WIDTH = 16
PERIODS = {
    "members__middle__solver__chunk_size": 3,
    "members__slow__solver__chunk_size": 5,
    "solver__period": 5,
}


def memory(tools, name, **changes):
    """The default, but with short periods: a few tokens reach what happens at their borders."""
    core = tools.build(name, width=WIDTH, **PERIODS, **changes)
    tools.randomise(core)
    return core


def regress(core, steps, batch, length, autocast):
    """Train on random next-step regression; everything must stay finite at every step."""
    optimiser = torch.optim.Adam(core.parameters(), lr=1e-3)
    for _ in range(steps):
        x = torch.randn(batch, length, core.width)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            y, _ = core(x[:, :-1], core.init_state(batch))
        loss = (y.float() - x[:, 1:]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        assert loss.isfinite()
        assert all(p.grad.isfinite().all() for p in core.parameters() if p.grad is not None)
        optimiser.step()


@pytest.mark.parametrize("autocast", [False, True])
def test_training_stays_finite_flash_linear_attention_111(tools, name, autocast):
    regress(memory(tools, name), steps=10, batch=2, length=32, autocast=autocast)


@pytest.mark.slow
@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("seed", [42, 2024, 3407])
def test_long_training_stays_finite_flash_linear_attention_111(tools, seed, autocast):
    torch.manual_seed(seed)
    core = tools.build("gated_delta_net", width=64, num_heads=4, key_width=32, value_width=32)
    regress(core, steps=300, batch=2, length=512, autocast=autocast)


def test_gate_one_is_the_ungated_rule_flash_linear_attention_104(tools):
    gated = memory(tools, "gated_delta_net", readout__gate="none")
    plain = memory(tools, "delta_net")
    with torch.no_grad():
        gated.rule.retention.bias.fill_(-1e4)
    weights = gated.state_dict()
    del weights["rule.retention.bias"]
    first = gated.views.num_features
    rows = [
        *range(first),
        *range(first + gated.rule.retention.num_features, weights["projection.weight"].shape[0]),
    ]
    weights["projection.weight"] = weights["projection.weight"][rows]
    plain.load_state_dict(weights)
    for steps in (1, 7, 50, 64, 65, 129, 500):
        x = torch.randn(1, steps, WIDTH)
        y, state = gated(x, gated.init_state(1))
        y_plain, state_plain = plain(x, plain.init_state(1))
        torch.testing.assert_close(y, y_plain, rtol=0, atol=1e-5)
        tools.assert_same_state(state, state_plain, tolerance=1e-5)


@pytest.mark.parametrize("cut", [1, 63, 64, 65, 128, 255])
def test_wide_heads_continue_across_a_cut_flash_linear_attention_285_494(tools, cut):
    changes = {"num_heads": 2, "key_width": 64, "value_width": 64}
    core = tools.build("gated_delta_net", width=128, **changes)
    x = torch.randn(3, 256, 128)
    results = []
    for sizes in ([256], [cut, 256 - cut]):
        y, state = tools.run_in_parts(core, x, core.init_state(3), {}, sizes)
        gradients = torch.autograd.grad(y.square().mean(), list(core.parameters()))
        results.append((y, state["weights"], *gradients))
    for whole, parts in zip(*results, strict=True):
        torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-4)


def test_lengths_below_any_block_flash_linear_attention_88(tools, name):
    core = memory(tools, name)
    for steps in (1, 2, 3, 8, 15, 16, 17):
        x = torch.randn(1, steps, WIDTH)
        y, after = core(x, core.init_state(1))
        y_steps, after_steps = tools.run_in_parts(core, x, core.init_state(1), {}, [1] * steps)
        torch.testing.assert_close(y, y_steps, rtol=1e-4, atol=1e-4)
        tools.assert_same_state(after_steps, after, tolerance=1e-4)


def test_given_state_is_used_flash_linear_attention_351(tools, name):
    core = memory(tools, name)
    x = torch.randn(4, 8, WIDTH)
    with torch.no_grad():
        flags = tools.commits(core, 4, 8)
        _, live = core(torch.randn(4, 8, WIDTH), core.init_state(4), **flags)
    # Scaled, not random: the moments of second-order memories must stay positive definite.
    state = map_leaves(
        lambda leaf: (3.0 * leaf).requires_grad_() if leaf.is_floating_point() else leaf, live
    )
    y, _ = core(x, state, **flags)
    y_steps, _ = tools.run_in_parts(core, x, state, flags, [1] * 8)
    torch.testing.assert_close(y, y_steps, rtol=1e-4, atol=1e-4)
    # Scores only rank the pairs of a cache: no gradient passes through them.
    floating = [
        leaf
        for name, leaf in tools.flatten(state).items()
        if leaf.is_floating_point() and not name.endswith("scores")
    ]
    if floating:
        assert not torch.allclose(y, core(x, core.init_state(4))[0], atol=1e-3)
        for gradient in torch.autograd.grad(y.square().sum(), floating):
            assert gradient.abs().max() > 0


@pytest.mark.parametrize("num_heads", [1, 4, 16])
def test_heads_are_real_parameters_titans_pytorch_64(tools, name, num_heads):
    core, fresh = (memory(tools, name, num_heads=num_heads) for _ in range(2))
    x = torch.randn(2, 9, WIDTH)
    for one in (core, fresh):
        for parameter in one.parameters():
            sizes = zip(parameter.stride(), parameter.shape, strict=True)
            assert all(stride > 0 for stride, size in sizes if size > 1)
        optimiser = torch.optim.Adam(one.parameters(), lr=1e-2)
        before = [parameter.detach().clone() for parameter in one.parameters()]
        y, _ = one(x, one.init_state(2), **tools.commits(one, 2, 9))
        y.square().sum().backward()
        optimiser.step()
        used = [p.grad is not None for p in one.parameters()]
        assert all(used)
        for parameter, old in zip(one.parameters(), before, strict=True):
            assert parameter.numel() == 0 or not torch.equal(parameter, old)
        fresh.load_state_dict(core.state_dict(), strict=True)
    biases = [p for n, p in core.named_parameters() if n.startswith("rule") and num_heads > 1]
    assert all(len(bias.unique()) == bias.numel() >= num_heads for bias in biases)


def test_rows_have_their_own_memory_titans_pytorch_6_55(tools, name):
    core = memory(tools, name)
    x = torch.randn(2, 9, WIDTH)
    y, _ = core(x, core.init_state(2))
    for row in range(2):
        alone, _ = core(x[row : row + 1], core.init_state(1))
        torch.testing.assert_close(alone, y[row : row + 1], rtol=1e-5, atol=1e-5)
    never = torch.zeros(2, 9, dtype=torch.bool)
    reset = never.clone()
    reset[0, 5] = True
    y_reset, _ = core(x, core.init_state(2), reset)
    y_never, _ = core(x, core.init_state(2), never)
    assert torch.equal(y_reset[1], y_never[1])
    start = core.init_state(2)
    if core.anchored:
        start = tools.initial_like(core, core(x[:, :5], start)[1])
    restarted, _ = core(x[:, 5:], start)
    torch.testing.assert_close(y_reset[0, 5:], restarted[0], rtol=1e-5, atol=1e-5)


def test_a_thousand_segments_use_constant_memory_titans_pytorch_34(tools, name):
    core = memory(tools, name)
    state = core.init_state(1)
    for _ in range(50):
        y, state = core(torch.randn(1, 4, WIDTH), state)
        y.square().sum().backward()
        state = state.detach()
    stored = sum(leaf.untyped_storage().nbytes() for leaf in leaves(state))
    assert stored == state_bytes(state)
    assert core.grows or stored == core.state_bytes()
