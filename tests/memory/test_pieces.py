"""Pieces against their definitions, and constructors that refuse what makes no sense."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from sojourn.memory import (
    ConstantRate,
    FastWeightMemory,
    Heads,
    Readout,
    RetentionGate,
    Stack,
    Views,
    WriteRate,
)
from sojourn.memory.convolution import ShortConvolution
from sojourn.memory.features import FEATURE_MAPS
from sojourn.memory.normalise import l2_normalise

HEADS = Heads(width=8, num_heads=4, key_width=4, value_width=3)


def test_defaults_are_gated_delta_net(tools):
    torch.manual_seed(0)
    configured = tools.build("gated_delta_net", width=64)
    torch.manual_seed(0)
    default = FastWeightMemory(64)
    x = torch.randn(2, 5, 64)
    y, _ = configured(x, configured.init_state(2))
    assert torch.equal(y, default(x, default.init_state(2))[0])


def test_configs_describe_their_memory(tools, name):
    lines = tools.config_path(name).read_text().splitlines()
    header = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    assert list(header) == ["title", "equation", "paper", "cost", "state", "recall", "file"]
    assert (tools.config_path(name).parents[2] / header["file"]).is_file()
    assert lines[7].startswith("_target_: sojourn.memory.")
    assert not any(line.startswith("width:") for line in lines)


def test_retention_starts_at_log_spaced_half_lives():
    gate = RetentionGate(HEADS, shortest=16, longest=128)
    torch.testing.assert_close(gate.half_lives(), torch.tensor([16.0, 32.0, 64.0, 128.0]))
    log_retention = gate(torch.zeros(1, 1, 4))[0, 0]
    torch.testing.assert_close((log_retention * gate.half_lives()).exp(), torch.full((4,), 0.5))
    one_head = Heads(width=8, num_heads=1, key_width=4, value_width=3)
    middle = RetentionGate(one_head, shortest=4, longest=16).half_lives()
    torch.testing.assert_close(middle, torch.tensor([8.0]))


def test_write_rate_starts_at_its_bias():
    assert torch.equal(WriteRate(HEADS)(torch.zeros(1, 1, 4)), torch.full((1, 1, 4), 0.5))
    doubled = WriteRate(HEADS, bias=-1.0, largest=2.0)(torch.zeros(1, 1, 4))
    torch.testing.assert_close(doubled, torch.full((1, 1, 4), 2 / (1 + math.e)))
    assert torch.equal(ConstantRate(HEADS, 0.5)(torch.zeros(1, 2, 0)), torch.full((1, 2, 4), 0.5))


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_normalising_a_zero_vector_is_safe(name):
    x = torch.zeros(3, 4, requires_grad=True)
    y = l2_normalise(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(y, torch.zeros(3, 4))
    assert gradient.abs().max() < 1e6
    views = Views(HEADS, conv_width=1, feature_map=name)
    features = torch.zeros(1, 1, views.num_features, requires_grad=True)
    tokens, _ = views(features, {}, None, None)
    loss = sum(view.sum() for view in tokens)
    (gradient,) = torch.autograd.grad(loss, features)
    assert gradient.isfinite().all() and gradient.abs().max() < 1e6


def test_keys_have_unit_length_and_queries_are_scaled():
    views = Views(HEADS, conv_width=1, feature_map="identity", key_norm="l2")
    tokens, _ = views(torch.randn(2, 5, views.num_features), {}, None, None)
    torch.testing.assert_close(tokens.key.norm(dim=-1), torch.ones(2, 5, 4))
    torch.testing.assert_close(tokens.query.norm(dim=-1), torch.full((2, 5, 4), 0.5))


@pytest.mark.parametrize("width", [2, 4])
def test_convolution_equals_its_definition(width):
    batch, steps, channels = 3, 9, 2
    convolution = ShortConvolution(channels, width).double()
    x = torch.randn(batch, steps, channels, dtype=torch.float64)
    reset, mask = torch.rand(batch, steps) < 0.2, torch.rand(batch, steps) < 0.7
    window = torch.randn(batch, width - 1, channels, dtype=torch.float64)
    y, after = convolution(x, window, reset, mask)
    for b in range(batch):
        seen = list(window[b])
        for t in range(steps):
            if reset[b, t]:
                seen = []
            inputs = [x[b, t], *reversed(seen)][:width]
            taps = reversed(convolution.kernel)
            expected = sum(tap * one for tap, one in zip(taps, inputs, strict=False))
            torch.testing.assert_close(y[b, t], expected)
            if mask[b, t]:
                seen.append(x[b, t])
        zeros = [torch.zeros(channels, dtype=torch.float64)] * width
        torch.testing.assert_close(after[b], torch.stack([*zeros, *seen][1 - width :]))


def test_readout_is_blind_to_the_scale_of_what_is_read():
    readout = Readout(HEADS, gate="none")
    reads = torch.randn(2, 3, 4, 3)
    features = torch.zeros(2, 3, 0)
    torch.testing.assert_close(
        readout(reads * 100, features), readout(reads, features), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FastWeightMemory(0), "width must be at least 1, got 0; use 1"),
        (lambda: FastWeightMemory(8, num_heads=0), "num_heads must be at least 1, got 0; use 1"),
        (
            lambda: FastWeightMemory(8, views=partial(Views, feature_map="sliu")),
            "feature_map must be one of identity, silu, relu, elu_plus_one, dpfp, dpfp2, "
            "dpfp3, taylor, hedgehog, got 'sliu'; did you mean 'silu'?",
        ),
        (lambda: Views(HEADS, key_norm="l1"), "key_norm must be one of none, l2, got 'l1'"),
        (lambda: Views(HEADS, conv_width=0), "conv_width must be at least 1, got 0; use 1"),
        (lambda: Readout(HEADS, gate="tanh"), "gate must be one of silu, sigmoid, none"),
        (
            lambda: RetentionGate(HEADS, shortest=64, longest=16),
            "longest half-life must be at least 64, got 16; use 64",
        ),
        (lambda: WriteRate(HEADS, largest=3.0), r"largest write rate must be in \(0, 2\], got 3.0"),
        (lambda: Stack([]), "cores of a stack must share one width"),
        (
            lambda: Stack([FastWeightMemory(8), FastWeightMemory(16)]),
            r"cores of a stack must share one width, got 2 of widths \[8, 16\]",
        ),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_bad_inputs_are_refused_in_one_line():
    core = FastWeightMemory(8)
    state = core.init_state(2)
    with pytest.raises(ValueError, match=r"x must have shape \[B, T, 8\], got \[2, 8\]"):
        core(torch.randn(2, 8), state)
    with pytest.raises(ValueError, match=r"reset must be a bool tensor of shape \[2, 3\]"):
        core(torch.randn(2, 3, 8), state, torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"mask must be a bool tensor of shape \[2, 1\]"):
        core.step(torch.randn(2, 8), state, mask=torch.ones(3, dtype=torch.bool))
