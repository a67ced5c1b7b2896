"""MesaNet against the plain recurrence with one dense solve per token, and against regression."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from sojourn.memory import (
    Cholesky,
    ConjugateGradient,
    DotProduct,
    ExactScalar,
    Gates,
    Heads,
    Mesa,
    SquaredError,
    Tokens,
)
from sojourn.memory.mesa import FORGETTING, SMALLEST_RIDGE

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

METHODS = {
    "cholesky": Cholesky,
    "conjugate gradient": partial(ConjugateGradient, num_iterations=12),
}


def make_solver(method, chunk_size: int = 4, ridge: float = 0.5, dtype=torch.float64) -> Mesa:
    solver = Mesa(HEAD, SquaredError(HEAD), method, chunk_size, ridge).to(dtype)
    torch.nn.init.normal_(solver.initial_values, std=0.3)
    return solver


def make_state(dtype=torch.float64) -> dict[str, Tensor]:
    rows = torch.randn(BATCH, HEADS, KEY, KEY, dtype=dtype)
    values = torch.randn(BATCH, HEADS, VALUE, KEY, dtype=dtype)
    return {"value_moments": values, "key_moments": rows @ rows.mT}


def decayed(gates: Gates) -> Gates:
    """The gates with the forgetting that no gate can switch off."""
    return gates._replace(log_retention=gates.log_retention - FORGETTING)


def recurrence(solver, tokens, gates, state, reset=None, mask=None):
    """G_t, V_t and o_t = V_t (G_t + Lambda)^{-1} q_t, written as they are defined."""
    steps = gates.write_rate.shape[1]
    reads, finals = [], {"value_moments": [], "key_moments": []}
    for b in range(BATCH):
        for h in range(HEADS):
            values, keys = state["value_moments"][b, h], state["key_moments"][b, h]
            for t in range(steps):
                q, k, v = (view[b, t, h] for view in tokens)
                if reset is not None and reset[b, t]:
                    values, keys = solver.initial_values[h], torch.zeros_like(keys)
                if mask is None or mask[b, t]:
                    a, rate = decayed(gates).log_retention[b, t, h].exp(), gates.write_rate[b, t, h]
                    values = a * values + rate * torch.outer(v, k)
                    keys = a * keys + rate * torch.outer(k, k)
                system = keys + torch.diag(solver.ridges()[h])
                reads.append(values @ torch.linalg.solve(system, q))
            finals["value_moments"].append(values)
            finals["key_moments"].append(keys)
    outputs = torch.stack(reads).view(BATCH, HEADS, steps, -1).transpose(1, 2)
    final = {name: torch.stack(rows).view_as(state[name]) for name, rows in finals.items()}
    return outputs, final


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("steps", [1, 19])
def test_solver_equals_the_recurrence(method, kind, steps):
    tokens, gates = make_tokens(steps), make_gates(steps)
    state, flags = make_state(), make_flags(kind, steps)
    # Gradients of the factor: how a solve continues to asymmetric moments is arbitrary.
    factor = torch.linalg.cholesky(state["key_moments"]).requires_grad_()
    state = {
        "value_moments": state["value_moments"].requires_grad_(),
        "key_moments": factor @ factor.mT,
    }
    for chunk_size in (1, 4, 7, 100):
        solver = make_solver(METHODS[method], chunk_size)
        sources = [*tokens, *gates, state["value_moments"], factor, *solver.parameters()]
        results = []
        for run in (solver, partial(recurrence, solver)):
            reads, final = run(tokens, gates, state, *flags)
            loss = reads.tanh().square().sum() + sum(leaf.sin().sum() for leaf in final.values())
            gradients = torch.autograd.grad(
                loss, sources, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            results.append((reads, final["value_moments"], final["key_moments"], *gradients))
        for fast, slow in zip(*results, strict=True):
            torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-10)


def test_truncated_iterations_agree_between_tokens_and_chunks():
    steps = 13
    tokens, gates, state = make_tokens(steps), make_gates(steps), make_state()
    exact = make_solver(Cholesky)(tokens, gates, state, None, None)[0]
    solver = make_solver(partial(ConjugateGradient, num_iterations=3))
    whole, _ = solver(tokens, gates, state, None, None)
    reads = []
    for t in range(steps):
        token = Tokens(*(view[:, t : t + 1] for view in tokens))
        gate = Gates(*(one[:, t : t + 1] for one in gates))
        read, state = solver(token, gate, state, None, None)
        reads.append(read)
    torch.testing.assert_close(torch.cat(reads, dim=1), whole, rtol=1e-11, atol=1e-12)
    assert (whole - exact).abs().max() > 1e-4


def test_reads_are_ridge_regression_of_the_decayed_past():
    steps = 12
    tokens, gates = make_tokens(steps), make_gates(steps)
    solver = make_solver(Cholesky)
    torch.nn.init.zeros_(solver.initial_values)
    reads, _ = solver(tokens, gates, solver.init_state(BATCH), None, None)
    own = decayed(gates).log_retention
    after = own.flip(1).cumsum(1).flip(1) - own
    strength = (gates.write_rate * after.exp()).sqrt()
    for b in range(BATCH):
        for h in range(HEADS):
            # Ridge as least squares with K more rows, which pull the weights towards zero.
            inputs = torch.cat(
                [
                    strength[b, :, h, None] * tokens.key[b, :, h],
                    torch.diag(solver.ridges()[h].sqrt()),
                ]
            )
            targets = strength[b, :, h, None] * tokens.value[b, :, h]
            targets = torch.cat([targets, targets.new_zeros(KEY, VALUE)])
            weights = torch.linalg.lstsq(inputs, targets).solution
            torch.testing.assert_close(reads[b, -1, h], tokens.query[b, -1, h] @ weights)


def test_a_huge_ridge_is_gated_linear_attention():
    ridge = 1e8
    tokens, gates = make_tokens(15), make_gates(15)
    hebbian = ExactScalar(HEAD, DotProduct(HEAD)).double()
    solver = make_solver(Cholesky, ridge=1.0)
    solver.free_ridge.data.fill_(ridge)
    torch.nn.init.zeros_(solver.initial_values)
    reset, mask = make_flags("reset and mask", 15)
    reads, _ = solver(tokens, gates, solver.init_state(BATCH), reset, mask)
    truth, _ = hebbian(tokens, decayed(gates), hebbian.init_state(BATCH), reset, mask)
    torch.testing.assert_close(reads * ridge, truth, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gate", [0.0, -1e-8, -5.0, -50.0, -1e30, "mixed"])
def test_any_gate_is_finite_and_right_in_float32(method, gate):
    steps = 64
    tokens, gates = make_tokens(steps, torch.float32), extreme_gates(gate, steps)
    solver = make_solver(METHODS[method], 64, dtype=torch.float32)
    state, (reset, _) = make_state(torch.float32), make_flags("reset", steps)
    reads, _ = solver(tokens, gates, state, reset, None)
    sources = [*tokens, *gates, *solver.parameters()]
    for gradient in torch.autograd.grad(reads.square().mean(), sources):
        assert gradient.isfinite().all()
    truth, _ = recurrence(solver, tokens, gates, state, reset)
    torch.testing.assert_close(reads, truth, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("zeroed", ["queries", "keys", "values", "identical keys"])
def test_degenerate_tokens_are_finite_in_float32(method, zeroed):
    steps = 40
    query, key, value = (view.detach() for view in make_tokens(steps, torch.float32))
    query = query * (zeroed != "queries")
    key = key[:, :1].expand_as(key) if "identical" in zeroed else key * (zeroed != "keys")
    value = value * (zeroed != "values")
    tokens = Tokens(*(view.clone().requires_grad_() for view in (query, key, value)))
    gates = Gates(torch.zeros(BATCH, steps, HEADS), torch.ones(BATCH, steps, HEADS))
    solver = make_solver(METHODS[method], 16, dtype=torch.float32)
    solver.free_ridge.data.fill_(-50.0)
    reads, state = solver(tokens, gates, solver.init_state(BATCH), None, None)
    assert reads.isfinite().all() and all(leaf.isfinite().all() for leaf in state.values())
    sources = [*tokens, *solver.parameters()]
    for gradient in torch.autograd.grad(reads.square().sum(), sources):
        assert gradient.isfinite().all()


def test_a_long_life_of_equal_keys_stays_definite_in_float32():
    steps = 10_000
    tokens = Tokens(*(view.expand(-1, steps, -1, -1) for view in make_tokens(1, torch.float32)))
    gates = Gates(torch.zeros(BATCH, steps, HEADS), torch.ones(BATCH, steps, HEADS))
    solver = make_solver(Cholesky, chunk_size=1, dtype=torch.float32)
    with torch.no_grad():
        _, state = solver(tokens, gates, solver.init_state(BATCH), None, None)
    assert torch.linalg.eigvalsh(state["key_moments"].double()).min() > -SMALLEST_RIDGE / 4


def test_recall_beats_the_delta_rule():
    """Mean error over pairs stored once, with as many random unit keys as dimensions."""
    size, batch = 16, 8
    heads = Heads(width=8, num_heads=1, key_width=size, value_width=size)
    key = normalize(torch.randn(batch, size, 1, size, dtype=torch.float64), dim=-1)
    value = torch.randn(batch, size, 1, size, dtype=torch.float64)
    gates = Gates(*(torch.full((batch, size, 1), fill).double() for fill in (0.0, 1.0)))
    nothing = Gates(*(torch.zeros(batch, size, 1).double() for _ in range(2)))
    errors = {}
    for name, solver in {
        "delta": ExactScalar(heads, SquaredError(heads)).double(),
        "mesa": Mesa(heads, SquaredError(heads), ridge=0.27).double(),
    }.items():
        _, state = solver(Tokens(key, key, value), gates, solver.init_state(batch), None, None)
        reads, _ = solver(Tokens(key, key, value), nothing, state, None, None)
        errors[name] = ((reads - value).square().sum() / value.square().sum()).item()
    assert errors["mesa"] < 0.4 < errors["delta"]


def test_bad_choices_are_refused():
    with pytest.raises(ValueError, match="must be a squared error, got DotProduct"):
        Mesa(HEAD, DotProduct(HEAD))
    with pytest.raises(ValueError, match="ridge must be at least"):
        Mesa(HEAD, SquaredError(HEAD), ridge=0.1)
    with pytest.raises(ValueError, match="num_iterations must be at least 1"):
        ConjugateGradient(0)
