"""Falcon-3 against the plain recurrence over lists of pairs, and its special case."""

from __future__ import annotations

import pytest
import torch

from sojourn.memory import (
    EnergyWeights,
    ExactWindow,
    RidgeGates,
    SquaredError,
    Tokens,
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

WINDOW, STEPS = 3, 17


def make_window(chunk_size=4, window=WINDOW, dtype=torch.float64) -> ExactWindow:
    objective = SquaredError(HEAD, "previous")
    solver = ExactWindow(HEAD, objective, window, chunk_size, EnergyWeights).to(dtype)
    torch.manual_seed(0)
    torch.nn.init.normal_(solver.initial_weights, std=0.3)
    return solver


def make_ridge_gates(dtype=torch.float64) -> RidgeGates:
    rate, ridge = torch.rand(2, BATCH, STEPS, HEADS, dtype=dtype)
    return RidgeGates(rate.requires_grad_(), ridge.requires_grad_())


def window_loop(solver, tokens, gates, weights, reset=None, mask=None):
    """W_t = (1 - n c r) W_{t-1} + n sum_j (v_j - W_{t-1} k_j) k_j^T over a list of pairs."""
    reads, finals = [], []
    for b in range(BATCH):
        for h in range(HEADS):
            w, pairs = weights[b, h], []
            for t in range(STEPS):
                if reset is not None and reset[b, t]:
                    w, pairs = solver.initial_weights[h], []
                if mask is None or mask[b, t]:
                    pairs = [*pairs, (tokens.key[b, t, h], tokens.value[b, t, h])][-solver.window :]
                    ridge = solver.window * gates.ridge[b, t, h]
                    energy = sum(k.square().sum() for k, _ in pairs)
                    step = gates.write_rate[b, t, h] / (energy + ridge + 1e-6)
                    errors = [torch.outer(v - w @ k, k) for k, v in pairs]
                    kept = 1 - step * ridge if energy > 0 else 1
                    w = kept * w + step * sum(errors)
                reads.append(w @ tokens.query[b, t, h])
            finals.append(w)
    outputs = torch.stack(reads).view(BATCH, HEADS, STEPS, -1).transpose(1, 2)
    return outputs, torch.stack(finals).view_as(weights)


@pytest.mark.parametrize("kind", KINDS)
def test_falcon3_equals_the_recurrence(kind):
    tokens, gates, flags = make_tokens(STEPS), make_ridge_gates(), make_flags(kind, STEPS)
    weights = torch.randn(BATCH, HEADS, VALUE, KEY, dtype=torch.float64, requires_grad=True)
    for chunk_size in (1, 4, 100):
        solver = make_window(chunk_size)
        sources = [*tokens, *gates, weights, *solver.parameters()]
        reads, after = solver(
            tokens, gates, solver.init_state(BATCH) | {"weights": weights}, *flags
        )
        results = []
        for outputs, final in (
            (reads, after["weights"]),
            window_loop(solver, tokens, gates, weights, *flags),
        ):
            loss = outputs.tanh().square().sum() + final.sin().sum()
            gradients = torch.autograd.grad(
                loss, sources, allow_unused=True, materialize_grads=True
            )
            results.append((outputs, final, *gradients))
        for fast, slow in zip(*results, strict=True):
            torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-11)


def test_falcon3_with_a_window_of_one_is_falcon1(tools):
    one = tools.build("falcon3", solver__window=1).double()
    first = tools.build("falcon1").double()
    tools.randomise(first)
    one.load_state_dict(
        {k.replace("rule.step.", "rule."): v for k, v in first.state_dict().items()}
    )
    x = torch.randn(BATCH, STEPS, 6, dtype=torch.float64)
    flags = make_flags("reset and mask", STEPS)
    y, after = one(x, one.init_state(BATCH), *flags)
    truth, final = first(x, first.init_state(BATCH), *flags)
    torch.testing.assert_close(y, truth, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(after["weights"], final["weights"], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("rate", [0.0, 1e-8, 1.0])
@pytest.mark.parametrize("ridge", [0.0, 1e-8, 1.0, 1e8])
@pytest.mark.parametrize("what", DEGENERATE)
def test_falcon3_is_finite_and_right_for_any_gate_in_float32(rate, ridge, what):
    tokens = degenerate_tokens(what, STEPS)
    shape = (BATCH, STEPS, HEADS)
    gates = RidgeGates(*(torch.full(shape, one).requires_grad_() for one in (rate, ridge)))
    solver = make_window(16, dtype=torch.float32)
    weights = torch.randn(BATCH, HEADS, VALUE, KEY, requires_grad=True)
    flags = make_flags("reset", STEPS)
    start = solver.init_state(BATCH) | {"weights": weights}
    reads, after = solver(tokens, gates, start, *flags)
    sources = [*tokens, *gates, weights, *solver.parameters()]
    for gradient in torch.autograd.grad(reads.square().mean(), sources):
        assert gradient.isfinite().all()
    truth, final = window_loop(solver, tokens, gates, weights, *flags)
    torch.testing.assert_close(reads, truth, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(after["weights"], final, rtol=1e-4, atol=1e-4)


def test_falcon3_without_values_never_grows():
    query, key, value = make_tokens(STEPS)
    key, gates, solver = 3 * key, make_ridge_gates(), make_window()
    weights = torch.randn(BATCH, HEADS, VALUE, KEY, dtype=torch.float64)
    state = solver.init_state(BATCH) | {"weights": weights}
    for t in range(STEPS):
        one = slice(t, t + 1)
        token = Tokens(query[:, one], key[:, one], torch.zeros_like(value[:, one]))
        _, after = solver(token, RidgeGates(*(g[:, one] for g in gates)), state, None, None)
        norms = [s["weights"].norm(dim=(-2, -1)) for s in (state, after)]
        assert (norms[1] <= norms[0] + 1e-12).all()
        state = after
