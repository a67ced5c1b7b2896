"""Falcon-2, by value and by key channels, against the plain recurrence; its special case."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from sojourn.memory import (
    AnchoredGradient,
    DotProduct,
    EnergyWeights,
    ExactChannel,
    ExactScalar,
    ExactWindow,
    Heads,
    NormalisedDelta,
    NormalisedStep,
    SquaredError,
    ValueChannelRule,
    ValueChannelSolver,
)

from .solver_inputs import (
    BATCH,
    DEGENERATE,
    HEAD,
    HEADS,
    KEY,
    KINDS,
    VALUE,
    degenerate_tokens,
    make_flags,
    make_tokens,
)

STEPS = 17


def value_loop(initial, objective, tokens, rate, ridge, weights, reset=None, mask=None):
    """W = Diag(1 - n r) W + (n * (v - W k)) k^T with n and r in R^V; `rate` `[B, T, H, V]`."""
    w, reads = weights, []
    for t in range(STEPS):
        if reset is not None:
            w = torch.where(reset[:, t, None, None, None], initial, w)
        query, key, value = (view[:, t] for view in tokens)
        step = rate[:, t] / (key.square().sum(-1, keepdim=True) + ridge[:, t] + 1e-6)
        said = torch.einsum("bhvk,bhk->bhv", w, key)
        error = value - said if isinstance(objective, SquaredError) else value
        new = (1 - step * ridge[:, t])[..., None] * w + (step * error)[..., None] * key[
            ..., None, :
        ]
        w = new if mask is None else torch.where(mask[:, t, None, None, None], new, w)
        reads.append(torch.einsum("bhvk,bhk->bhv", w, query))
    return torch.stack(reads, dim=1), w


def key_loop(initial, tokens, rate, ridge, weights, reset=None, mask=None):
    """W = W Diag(1 - n r) + (v - W k) (n * k)^T with n and r in R^K; `rate` `[B, T, H, K]`."""
    w, reads = weights, []
    for t in range(STEPS):
        if reset is not None:
            w = torch.where(reset[:, t, None, None, None], initial, w)
        query, key, value = (view[:, t] for view in tokens)
        step = rate[:, t] / (key.square().sum(-1, keepdim=True) + ridge[:, t] + 1e-6)
        error = value - torch.einsum("bhvk,bhk->bhv", w, key)
        new = (
            w * (1 - step * ridge[:, t])[..., None, :]
            + error[..., None] * (step * key)[..., None, :]
        )
        w = new if mask is None else torch.where(mask[:, t, None, None, None], new, w)
        reads.append(torch.einsum("bhvk,bhk->bhv", w, query))
    return torch.stack(reads, dim=1), w


def make_features(step, dtype=torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Features of a `RidgeStep`, and the rate and ridge `[B, T, channels]` that they stand for."""
    torch.nn.init.normal_(step.write_rate.bias)
    features = torch.randn(BATCH, STEPS, step.num_features, dtype=dtype, requires_grad=True)
    rate, ridge = features.split(step.sizes, dim=-1)
    return (
        features,
        torch.sigmoid(rate + step.write_rate.bias),
        softplus(ridge + step.ridge_bias),
    )


def assert_same(results, sources, tolerance=1e-10):
    """Two pairs of reads and final weights, and the gradients of a scalar of both."""
    found = []
    for reads, final in results:
        loss = reads.tanh().square().sum() + final.sin().sum()
        gradients = torch.autograd.grad(loss, sources, allow_unused=True, materialize_grads=True)
        found.append((reads, final, *gradients))
    for fast, slow in zip(*found, strict=True):
        torch.testing.assert_close(fast, slow, rtol=tolerance, atol=tolerance / 10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objective", [partial(SquaredError, taken_at="previous"), DotProduct])
def test_falcon2_by_value_channels_equals_the_recurrence(objective, kind):
    rule, flags = ValueChannelRule(HEAD).double(), make_flags(kind, STEPS)
    tokens = make_tokens(STEPS)
    features, rate, ridge = make_features(rule.rule.step)
    per_channel = (torch.unflatten(gate, -1, (HEADS, VALUE)) for gate in (rate, ridge))
    shape = (BATCH, HEADS, VALUE, KEY)
    weights = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    inner = partial(ExactScalar, chunk_size=4)
    solver = ValueChannelSolver(HEAD, objective(HEAD), inner).double()
    torch.nn.init.normal_(solver.solver.initial_weights)
    initial = solver.solver.initial_weights.view(shape[1:])
    state = {"weights": weights.view(BATCH, HEADS * VALUE, 1, KEY)}
    reads, after = solver(tokens, rule(features, tokens), state, *flags)
    truth = value_loop(initial, solver.objective, tokens, *per_channel, weights, *flags)
    sources = [*tokens, features, weights, *rule.parameters(), *solver.parameters()]
    assert_same([(reads, after["weights"].view(shape)), truth], sources)


@pytest.mark.parametrize("kind", KINDS)
def test_falcon2_by_key_channels_equals_the_recurrence(kind):
    rule, flags = NormalisedDelta(HEAD).double(), make_flags(kind, STEPS)
    tokens = make_tokens(STEPS)
    features, rate, ridge = make_features(rule.gates["step"])
    per_channel = (torch.unflatten(gate, -1, (HEADS, KEY)) for gate in (rate, ridge))
    weights = torch.randn(BATCH, HEADS, VALUE, KEY, dtype=torch.float64, requires_grad=True)
    solver = ExactChannel(rule, chunk_size=8, block_size=2).double()
    torch.nn.init.normal_(solver.initial_weights)
    edits = rule(features, tokens)
    reads, after = solver(edits, {"weights": weights}, *flags, None)
    truth = key_loop(solver.initial_weights, tokens, *per_channel, weights, *flags)
    sources = [*tokens, features, weights, *rule.parameters(), *solver.parameters()]
    assert_same([(reads, after["weights"]), truth], sources)


def test_falcon2_with_equal_channels_is_falcon1():
    tokens, one = make_tokens(STEPS), NormalisedStep(HEAD).double()
    features = torch.randn(BATCH, STEPS, one.num_features, dtype=torch.float64)
    gates = one(features, tokens)
    first = ExactScalar(HEAD, SquaredError(HEAD, "previous")).double()
    truth, final = first(tokens, gates, first.init_state(BATCH), None, None)

    by_value = ValueChannelSolver(HEAD, SquaredError(HEAD, "previous")).double()
    spread = type(gates)(*(gate.repeat_interleave(VALUE, dim=-1) for gate in gates))
    reads, after = by_value(tokens, spread, by_value.init_state(BATCH), None, None)
    torch.testing.assert_close(reads, truth, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(after["weights"].view_as(final["weights"]), final["weights"])

    rule = NormalisedDelta(HEAD).double()
    for name in ("ridge_bias", "write_rate.bias"):
        spread_bias = one.step.get_parameter(name).repeat_interleave(KEY)
        rule.gates["step"].get_parameter(name).data.copy_(spread_bias)
    by_key = ExactChannel(rule, chunk_size=8).double()
    edits = rule(features.repeat_interleave(KEY, dim=-1), tokens)
    reads, after = by_key(edits, by_key.init_state(BATCH), None, None, None)
    torch.testing.assert_close(reads, truth, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(after["weights"], final["weights"], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("extreme", [-60.0, 60.0, "mixed"])
@pytest.mark.parametrize("what", DEGENERATE)
def test_falcon2_is_finite_for_any_gate_in_float32(extreme, what):
    tokens = degenerate_tokens(what, STEPS)
    for rule in (ValueChannelRule(HEAD), NormalisedDelta(HEAD)):
        shape = (BATCH, STEPS, rule.num_features)
        signs = torch.randint(2, shape) * 120.0 - 60.0
        features = signs if extreme == "mixed" else torch.full(shape, extreme)
        features.requires_grad_()
        gated = rule(features, tokens)
        if isinstance(rule, NormalisedDelta):
            solver = ExactChannel(rule)
            reads, after = solver(gated, solver.init_state(BATCH), None, None, None)
        else:
            solver = ValueChannelSolver(HEAD, SquaredError(HEAD, "previous"))
            reads, after = solver(tokens, gated, solver.init_state(BATCH), None, None)
        assert reads.isfinite().all() and after["weights"].isfinite().all()
        sources = [*tokens, features, *rule.parameters(), *solver.parameters()]
        for gradient in torch.autograd.grad(
            reads.square().mean(), sources, allow_unused=True, materialize_grads=True
        ):
            assert gradient.isfinite().all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ValueChannelRule(Heads(8, 2, 4, 4, writes_per_token=2)),
            "value channels as heads make one write per token, got writes_per_token 2; use 1",
        ),
        (
            lambda: ValueChannelSolver(HEAD, SquaredError(HEAD), AnchoredGradient),
            "value channels need an exact solver, got AnchoredGradient; use ExactScalar",
        ),
        (
            lambda: ExactWindow(HEAD, SquaredError(HEAD), 0, weights=EnergyWeights),
            "window must be at least 1, got 0; use 1",
        ),
    ],
)
def test_bad_choices_are_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)
