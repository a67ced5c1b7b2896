"""The windowed exact solver against the plain recurrence over lists of pairs."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from sojourn.memory import (
    DotProduct,
    ExactScalar,
    ExactWindow,
    Gates,
    SquaredError,
    Tokens,
)

from .solver_inputs import (
    BATCH,
    HEAD,
    HEADS,
    KEY,
    KINDS,
    VALUE,
    extreme_gates,
    make_flags,
    make_gates,
    make_tokens,
)

WINDOW = 3
TAKEN_AT = ["previous", "decayed"]


def make_solver(taken_at="previous", chunk_size=4, window=WINDOW, dtype=torch.float64):
    objective = SquaredError(HEAD, taken_at)
    solver = ExactWindow(HEAD, objective, window, chunk_size).to(dtype)
    torch.manual_seed(0)
    torch.nn.init.normal_(solver.initial_weights, std=0.3)
    torch.nn.init.normal_(solver.pair_weights.scores)
    return solver


def recurrence(solver, tokens, gates, weights, reset=None, mask=None):
    """W_t = a_t W_{t-1} + b_t sum_j p_tj (v_j - W k_j) k_j^T from an empty window, as defined."""
    steps = gates.write_rate.shape[1]
    reads, finals = [], []
    for b in range(BATCH):
        for h in range(HEADS):
            w, pairs = weights[b, h], []
            for t in range(steps):
                if reset is not None and reset[b, t]:
                    w, pairs = solver.initial_weights[h], []
                if mask is None or mask[b, t]:
                    pairs = [*pairs, (tokens.key[b, t, h], tokens.value[b, t, h])][-solver.window :]
                    a, rate = gates.log_retention[b, t, h].exp(), gates.write_rate[b, t, h]
                    met = a * w if solver.objective.predicts_with == "decayed" else w
                    shares = solver.pair_weights.scores[h, -len(pairs) :].softmax(0)
                    w = a * w
                    for share, (k, v) in zip(shares, pairs, strict=True):
                        w = w + rate * share * torch.outer(v - met @ k, k)
                reads.append(w @ tokens.query[b, t, h])
            finals.append(w)
    outputs = torch.stack(reads).view(BATCH, HEADS, steps, -1).transpose(1, 2)
    return outputs, torch.stack(finals).view_as(weights)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("taken_at", TAKEN_AT)
def test_solver_equals_the_recurrence(taken_at, kind):
    steps = 17
    tokens, gates, flags = make_tokens(steps), make_gates(steps), make_flags(kind, steps)
    weights = torch.randn(BATCH, HEADS, VALUE, KEY, dtype=torch.float64, requires_grad=True)
    for chunk_size in (1, 4, 7, 100):
        solver = make_solver(taken_at, chunk_size)
        sources = [*tokens, *gates, weights, *solver.parameters()]
        start = solver.init_state(BATCH) | {"weights": weights}
        reads, after = solver(tokens, gates, start, *flags)
        results = []
        for outputs, final in (
            (reads, after["weights"]),
            recurrence(solver, tokens, gates, weights, *flags),
        ):
            loss = outputs.tanh().square().sum() + final.sin().sum()
            gradients = torch.autograd.grad(
                loss, sources, allow_unused=True, materialize_grads=True
            )
            results.append((outputs, final, *gradients))
        for fast, slow in zip(*results, strict=True):
            torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("kind", ["none", "reset and mask"])
@pytest.mark.parametrize("taken_at", TAKEN_AT)
def test_a_window_of_one_is_the_delta_rule(taken_at, kind):
    tokens, gates, flags = make_tokens(13), make_gates(13), make_flags(kind, 13)
    solver = make_solver(taken_at, window=1)
    delta = ExactScalar(HEAD, SquaredError(HEAD, taken_at)).double()
    delta.initial_weights.data.copy_(solver.initial_weights)
    reads, after = solver(tokens, gates, solver.init_state(BATCH), *flags)
    truth, final = delta(tokens, gates, delta.init_state(BATCH), *flags)
    torch.testing.assert_close(reads, truth, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(after["weights"], final["weights"], rtol=1e-11, atol=1e-12)
    assert after["pairs"].shape[1] == 0


@pytest.mark.parametrize("gate", [0.0, -1e-8, -5.0, -50.0, -1e30, "mixed"])
@pytest.mark.parametrize("keys", ["random", "identical", "zero"])
def test_any_gate_is_finite_and_right_in_float32(gate, keys):
    steps = 32
    query, key, value = make_tokens(steps, torch.float32)
    if keys == "identical":
        key = key.detach()[:, :1].repeat(1, steps, 1, 1).requires_grad_()
    elif keys == "zero":
        key = torch.zeros_like(key).requires_grad_()
    gates = extreme_gates(gate, steps)
    solver = make_solver(chunk_size=16, dtype=torch.float32)
    weights = torch.randn(BATCH, HEADS, VALUE, KEY, requires_grad=True)
    tokens, (reset, _) = Tokens(query, key, value), make_flags("reset", steps)
    start = solver.init_state(BATCH) | {"weights": weights}
    reads, after = solver(tokens, gates, start, reset, None)
    sources = [*tokens, *gates, weights, *solver.parameters()]
    for gradient in torch.autograd.grad(reads.square().mean(), sources):
        assert gradient.isfinite().all()
    truth, final = recurrence(solver, tokens, gates, weights, reset)
    torch.testing.assert_close(reads, truth, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(after["weights"], final, rtol=1e-4, atol=1e-4)


def test_without_values_the_weights_never_grow():
    steps = 30
    query, key, value = make_tokens(steps)
    gates = Gates(torch.zeros(BATCH, steps, HEADS).double(), make_gates(steps).write_rate)
    solver = make_solver()
    weights = torch.randn(BATCH, HEADS, VALUE, KEY, dtype=torch.float64)
    state = solver.init_state(BATCH) | {"weights": weights}
    norm = weights.norm(dim=(-2, -1))
    for t in range(steps):
        one = slice(t, t + 1)
        token = Tokens(query[:, one], key[:, one], torch.zeros_like(value[:, one]))
        _, state = solver(token, Gates(*(gate[:, one] for gate in gates)), state, None, None)
        shrunk = state["weights"].norm(dim=(-2, -1))
        assert (shrunk <= norm + 1e-12).all()
        norm = shrunk


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(ExactWindow, HEAD, DotProduct(HEAD)), "got DotProduct"),
        (partial(ExactWindow, HEAD, SquaredError(HEAD), 0), "window must be at"),
    ],
)
def test_bad_choices_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
