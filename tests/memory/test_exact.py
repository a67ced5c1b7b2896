"""The exact solver against the plain recurrence, token by token and row by row."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from sojourn.memory import (
    DotProduct,
    ExactScalar,
    Gates,
    SquaredError,
    Tokens,
)
from sojourn.memory.decay import ChunkDecay

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

OBJECTIVES = {
    "hebbian": DotProduct,
    "erase after decay": partial(SquaredError, taken_at="decayed"),
    "erase before decay": partial(SquaredError, taken_at="previous"),
}


def recurrence(
    tokens: Tokens,
    gates: Gates,
    weights: Tensor,
    initial: Tensor,
    objective: str,
    reset: Tensor | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """W_t = a_t W_{t-1} + b_t e_t k_t^T and o_t = W_t q_t, written as they are defined."""
    batch, steps, heads = gates.write_rate.shape
    finals, reads = [], []
    for b in range(batch):
        for h in range(heads):
            w = weights[b, h]
            for t in range(steps):
                q, k, v = (view[b, t, h] for view in tokens)
                if reset is not None and reset[b, t]:
                    w = initial[h]
                if mask is None or mask[b, t]:
                    a, rate = gates.log_retention[b, t, h].exp(), gates.write_rate[b, t, h]
                    error = {
                        "hebbian": v,
                        "erase after decay": v - a * (w @ k),
                        "erase before decay": v - w @ k,
                    }[objective]
                    w = a * w + rate * torch.outer(error, k)
                reads.append(w @ q)
            finals.append(w)
    reads_ = torch.stack(reads).view(batch, heads, steps, -1).transpose(1, 2)
    return reads_, torch.stack(finals).view_as(weights)


def make_solver(objective: str, chunk_size: int, dtype=torch.float64) -> ExactScalar:
    solver = ExactScalar(HEAD, OBJECTIVES[objective](HEAD), chunk_size).to(dtype)
    torch.nn.init.normal_(solver.initial_weights, std=0.3)
    return solver


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_chunks_equal_the_recurrence(objective, kind):
    steps = 19
    tokens, gates = make_tokens(steps), make_gates(steps)
    weights = torch.randn(BATCH, HEADS, VALUE, KEY, dtype=torch.float64, requires_grad=True)
    flags = make_flags(kind, steps)
    for chunk_size in (1, 4, 7, 16, 100):
        solver = make_solver(objective, chunk_size)
        initial = solver.initial_weights
        sources = [*tokens, *gates, weights, initial]
        results = []
        for reads, final in (
            recurrence(tokens, gates, weights, initial, objective, *flags),
            solver(tokens, gates, {"weights": weights}, *flags),
        ):
            final = final["weights"] if isinstance(final, dict) else final
            loss = reads.tanh().square().sum() + final.sin().sum()
            gradients = torch.autograd.grad(
                loss, sources, allow_unused=True, materialize_grads=True
            )
            results.append((reads, final, *gradients))
        for truth, fast in zip(*results, strict=True):
            torch.testing.assert_close(fast, truth, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", ["none", "mask"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_single_token_equals_the_recurrence(objective, kind):
    tokens, gates = make_tokens(1), make_gates(1)
    weights = torch.randn(BATCH, HEADS, VALUE, KEY, dtype=torch.float64, requires_grad=True)
    mask = None if kind == "none" else torch.tensor([[True], [False], [True]])
    solver = make_solver(objective, 4)
    truth = recurrence(
        tokens, gates, weights, solver.initial_weights, objective, reset=None, mask=mask
    )
    reads, state = solver(tokens, gates, {"weights": weights}, None, mask)
    for fast, slow in zip((reads, state["weights"]), truth, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-12, atol=1e-12)
        sources = [*tokens, *gates, weights]
        pairs = (
            torch.autograd.grad(
                one.sin().sum(),
                sources,
                retain_graph=True,
                allow_unused=True,
                materialize_grads=True,
            )
            for one in (fast, slow)
        )
        for got, want in zip(*pairs, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("gate", [0.0, -1e-8, -5.0, -50.0, -100.0, -1e30, "mixed"])
def test_any_gate_is_finite_and_right_in_float32(objective, gate):
    steps = 64
    tokens, gates = make_tokens(steps, torch.float32), extreme_gates(gate, steps)
    weights = torch.randn(BATCH, HEADS, VALUE, KEY, requires_grad=True)
    solver = make_solver(objective, 64, torch.float32)
    reset, _ = make_flags("reset", steps)
    reads, state = solver(tokens, gates, {"weights": weights}, reset, None)
    sources = [*tokens, *gates, weights, solver.initial_weights]
    for gradient in torch.autograd.grad(reads.square().mean(), sources):
        assert gradient.isfinite().all()
    truth, final = recurrence(
        tokens, gates, weights, solver.initial_weights, objective, reset=reset
    )
    torch.testing.assert_close(reads, truth, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(state["weights"], final, rtol=1e-4, atol=1e-4)


def test_decays_of_strong_gates_keep_float32_accuracy():
    retention = -20 * torch.rand(50, 64)
    low, high = (ChunkDecay(gates, None).after_write() for gates in (retention, retention.double()))
    assert (low.writes - high.writes).abs().max() < 2e-7
    assert (low.carried - high.carried).abs().max() < 2e-7


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_solver_that_is_told_that_nothing_is_forgotten_finds_the_same(objective, masked):
    steps = 10
    tokens, rate = make_tokens(steps), make_gates(steps).write_rate
    gates = Gates(torch.zeros_like(rate), rate)
    weights = torch.randn(BATCH, HEADS, VALUE, KEY, dtype=torch.float64, requires_grad=True)
    mask = make_flags("mask", steps)[1] if masked else None
    found = []
    for forgets in (True, False):
        solver = make_solver(objective, 4)
        solver.forgets = forgets
        reads, state = solver(tokens, gates, {"weights": weights}, None, mask)
        loss = reads.square().sum() + state["weights"].square().sum()
        found.append([reads, *torch.autograd.grad(loss, [*tokens, rate, weights])])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("objective", ["erase after decay", "erase before decay"])
def test_delta_rule_without_values_never_grows(objective):
    steps = 40
    query, key, value = make_tokens(steps)
    gates = Gates(torch.zeros(BATCH, steps, HEADS).double(), make_gates(steps).write_rate)
    state = {"weights": torch.randn(BATCH, HEADS, VALUE, KEY, dtype=torch.float64)}
    solver = make_solver(objective, 4)
    norm = state["weights"].norm(dim=(-2, -1))
    for t in range(steps):
        one = slice(t, t + 1)
        token = Tokens(query[:, one], key[:, one], torch.zeros_like(value[:, one]))
        _, state = solver(token, Gates(*(gate[:, one] for gate in gates)), state, None, None)
        shrunk = state["weights"].norm(dim=(-2, -1))
        assert (shrunk <= norm + 1e-12).all()
        norm = shrunk


def test_orthonormal_keys_make_the_delta_rule_hebbian():
    key = torch.eye(KEY, dtype=torch.float64).expand(BATCH, HEADS, -1, -1).transpose(1, 2)
    query, _, value = make_tokens(KEY)
    gates = Gates(*(torch.full((BATCH, KEY, HEADS), fill).double() for fill in (0.0, 1.0)))
    state = {"weights": torch.zeros(BATCH, HEADS, VALUE, KEY, dtype=torch.float64)}
    hebbian, delta = (
        make_solver(name, 4)(Tokens(query, key, value), gates, state, None, None)
        for name in ("hebbian", "erase after decay")
    )
    torch.testing.assert_close(delta[0], hebbian[0])
    torch.testing.assert_close(delta[1]["weights"], hebbian[1]["weights"])


@pytest.mark.parametrize("steps", [1, 6])
def test_a_closed_gate_forgets_everything_but_the_last_write(steps):
    tokens, gates = make_tokens(steps), make_gates(steps)
    gates = Gates(torch.full_like(gates.log_retention, -1e30), gates.write_rate)
    state = {"weights": torch.randn(BATCH, HEADS, VALUE, KEY, dtype=torch.float64)}
    _, after = make_solver("erase after decay", 4)(tokens, gates, state, None, None)
    last = gates.write_rate[:, -1, :, None, None] * (
        tokens.value[:, -1].unsqueeze(-1) @ tokens.key[:, -1].unsqueeze(-2)
    )
    torch.testing.assert_close(after["weights"], last)
