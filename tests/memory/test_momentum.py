"""The exact solver with momentum against its two recurrences, token by token and row by row."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from sojourn.memory import (
    DotProduct,
    ExactMomentum,
    ExactScalar,
    FastWeightMemory,
    Gates,
    Heads,
    MomentumGates,
    MomentumStep,
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
    make_flags,
    make_tokens,
)

OBJECTIVES = {
    "hebbian": DotProduct,
    "predict after decay": partial(SquaredError, taken_at="decayed"),
    "predict before decay": partial(SquaredError, taken_at="previous"),
}


def recurrence(tokens, gates, state, initial, objective, reset=None, mask=None):
    """M_t = m M_{t-1} + b e k^T, W_t = a W_{t-1} + p M_t, o_t = W_t q_t, as they are defined."""
    batch, steps, heads = gates.write_rate.shape
    reads, weights, momenta = [], [], []
    for b in range(batch):
        for h in range(heads):
            w, m = state["weights"][b, h], state["momentum"][b, h]
            for t in range(steps):
                q, k, v = (view[b, t, h] for view in tokens)
                if reset is not None and reset[b, t]:
                    w, m = initial[h], torch.zeros_like(m)
                if mask is None or mask[b, t]:
                    log_a, rate, log_m, gain = (gate[b, t, h] for gate in gates)
                    error = {
                        "hebbian": v,
                        "predict after decay": v - log_a.exp() * (w @ k),
                        "predict before decay": v - w @ k,
                    }[objective]
                    m = log_m.exp() * m + rate * torch.outer(error, k)
                    w = log_a.exp() * w + gain * m
                reads.append(w @ q)
            weights.append(w)
            momenta.append(m)
    reads_ = torch.stack(reads).view(batch, heads, steps, -1).transpose(1, 2)
    return reads_, *(torch.stack(one).view(batch, heads, VALUE, KEY) for one in (weights, momenta))


def make_gates(steps: int, dtype=torch.float64) -> MomentumGates:
    shape = (BATCH, steps, HEADS)
    retention, momentum = (
        torch.nn.functional.logsigmoid(torch.randn(shape, dtype=dtype) + shift)
        for shift in (1.0, 0.0)
    )
    rate, gain = torch.rand(2, *shape, dtype=dtype)
    return MomentumGates(*(g.requires_grad_() for g in (retention, rate, momentum, gain)))


def make_state(dtype=torch.float64) -> dict[str, Tensor]:
    return {
        name: torch.randn(BATCH, HEADS, VALUE, KEY, dtype=dtype, requires_grad=True)
        for name in ("weights", "momentum")
    }


def make_solver(objective: str, chunk_size: int, dtype=torch.float64) -> ExactMomentum:
    solver = ExactMomentum(HEAD, OBJECTIVES[objective](HEAD), chunk_size).to(dtype)
    torch.nn.init.normal_(solver.initial_weights, std=0.3)
    return solver


def run(solver, tokens, gates, state, reset=None, mask=None):
    reads, after = solver(tokens, gates, state, reset, mask)
    return reads, after["weights"], after["momentum"]


def gradients_of(results, sources):
    reads, weights, momentum = results
    loss = reads.tanh().square().sum() + weights.sin().sum() + momentum.cos().sum()
    return torch.autograd.grad(loss, sources, allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_chunks_equal_the_recurrence(objective, kind):
    steps = 19
    tokens, gates, state = make_tokens(steps), make_gates(steps), make_state()
    flags = make_flags(kind, steps)
    truth = None
    for chunk_size in (1, 4, 7, 16, 100):
        torch.manual_seed(0)
        solver = make_solver(objective, chunk_size)
        sources = [*tokens, *gates, *state.values()]
        if truth is None:
            initial = solver.initial_weights
            slow = recurrence(tokens, gates, state, initial, objective, *flags)
            truth = [*slow, *gradients_of(slow, [*sources, initial])]
        fast = run(solver, tokens, gates, state, *flags)
        fast = [*fast, *gradients_of(fast, [*sources, solver.initial_weights])]
        for got, want in zip(fast, truth, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("kind", ["none", "mask"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_single_token_equals_the_recurrence(objective, kind):
    tokens, gates, state = make_tokens(1), make_gates(1), make_state()
    mask = None if kind == "none" else torch.tensor([[True], [False], [True]])
    solver = make_solver(objective, 4)
    slow = recurrence(tokens, gates, state, solver.initial_weights, objective, mask=mask)
    fast = run(solver, tokens, gates, state, mask=mask)
    sources = [*tokens, *gates, *state.values()]
    for got, want in zip(
        [*fast, *gradients_of(fast, sources)], [*slow, *gradients_of(slow, sources)], strict=True
    ):
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("gate", [0.0, -1e-8, -5.0, -50.0, -1e30, "mixed"])
def test_any_gate_is_finite_and_right_in_float32(objective, gate):
    steps = 48
    tokens, state = make_tokens(steps, torch.float32), make_state(torch.float32)
    logs = torch.zeros(2, BATCH, steps, HEADS)
    if gate == "mixed":
        choices = torch.tensor([0.0, -1e-8, -1.0, -50.0, -1e30])
        logs = choices[torch.randint(len(choices), logs.shape)]
    else:
        logs += gate
    rates = torch.full_like(logs, 0.5)
    gates = MomentumGates(
        *(g.clone().requires_grad_() for g in (logs[0], rates[0], logs[1], rates[1]))
    )
    solver = make_solver(objective, 48, torch.float32)
    reset, _ = make_flags("reset", steps)
    fast = run(solver, tokens, gates, state, reset)
    sources = [*tokens, *gates, *state.values(), solver.initial_weights]
    assert all(g.isfinite().all() for g in gradients_of(fast, sources))
    slow = recurrence(tokens, gates, state, solver.initial_weights, objective, reset)
    for got, want in zip(fast, slow, strict=True):
        torch.testing.assert_close(
            got, want, rtol=1e-3, atol=1e-3 * float(want.detach().abs().max())
        )


@pytest.mark.parametrize("kind", ["identical keys", "zero queries", "zero keys", "zero values"])
def test_degenerate_tokens_are_finite_in_float32(kind):
    query, key, value = (view.detach() for view in make_tokens(40, torch.float32))
    tokens = {
        "identical keys": Tokens(query, key[:, :1].expand_as(key), value),
        "zero queries": Tokens(torch.zeros_like(query), key, value),
        "zero keys": Tokens(query, torch.zeros_like(key), value),
        "zero values": Tokens(query, key, torch.zeros_like(value)),
    }[kind]
    tokens = Tokens(*(view.clone().requires_grad_() for view in tokens))
    gates = make_gates(40, torch.float32)
    solver = make_solver("predict before decay", 32, torch.float32)
    results = run(solver, tokens, gates, make_state(torch.float32))
    assert all(one.isfinite().all() for one in results)
    assert all(g.isfinite().all() for g in gradients_of(results, [*tokens, *gates]))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_without_momentum_it_is_the_plain_rule(objective):
    tokens, gates = make_tokens(11), make_gates(11)
    closed = gates._replace(
        log_momentum=torch.full_like(gates.log_momentum, -1e30),
        gain=torch.ones_like(gates.gain),
    )
    solver = make_solver(objective, 4)
    plain = ExactScalar(solver.heads, solver.objective, 4).double()
    state = make_state()
    reads, weights, _ = run(solver, tokens, closed, state)
    y, after = plain(tokens, Gates(gates.log_retention, gates.write_rate), state, None, None)
    torch.testing.assert_close(reads, y, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(weights, after["weights"], rtol=1e-11, atol=1e-12)


def test_momentum_carries_weights_past_their_target():
    """No contraction law: with momentum a rehearsed key overshoots before it settles."""
    steps = 60
    key = torch.eye(KEY, dtype=torch.float64)[0].expand(1, steps, 1, -1)
    value = torch.ones(1, steps, 1, VALUE, dtype=torch.float64)
    ones = torch.ones(1, steps, 1, dtype=torch.float64)
    gates = MomentumGates(0 * ones, 0.2 * ones, ones * torch.log(torch.tensor(0.8)), ones)
    heads = Heads(width=8, num_heads=1, key_width=KEY, value_width=VALUE)
    solver = ExactMomentum(heads, SquaredError(heads), 16).double()
    reads, _ = solver(Tokens(key, key, value), gates, solver.init_state(1), None, None)
    assert reads.max() > 1.2
    torch.testing.assert_close(reads[:, -1], value[:, -1], rtol=0, atol=1e-2)


def test_rule_and_solver_must_agree():
    with pytest.raises(ValueError, match="ExactMomentum takes MomentumGates, but rule Gradient"):
        FastWeightMemory(8, solver=ExactMomentum)
    with pytest.raises(ValueError, match="several writes per token need an exact solver of Gates"):
        FastWeightMemory(8, rule=MomentumStep, solver=ExactMomentum, writes_per_token=2)
