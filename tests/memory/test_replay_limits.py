"""The cache of badly predicted pairs: what it holds and recalls, extremes, bad arguments."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from sojourn.memory import (
    AbsorbLosers,
    CachedDelta,
    DotProduct,
    Gates,
    Heads,
    Rehearse,
    SquaredError,
    Tokens,
)

BATCH, HEADS, KEY, VALUE, STEPS = 3, 2, 4, 3, 17
HEAD = Heads(width=8, num_heads=HEADS, key_width=KEY, value_width=VALUE)
STORAGES = {
    "rehearse": Rehearse,
    "rehearse, no fading": partial(Rehearse, score_half_life=math.inf),
    "absorb losers": AbsorbLosers,
}


def make_solver(storage="rehearse", dtype=torch.float64, **changes) -> CachedDelta:
    changes = {"cache_size": 3, "period": 4, "taken_at": "decayed"} | changes
    objective = SquaredError(HEAD, changes.pop("taken_at"))
    solver = CachedDelta(HEAD, objective, STORAGES[storage], **changes).to(dtype)
    with torch.no_grad():
        for parameter in solver.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return solver


def make_inputs(steps=STEPS, dtype=torch.float64):
    def normal(size: int) -> Tensor:
        return torch.randn(BATCH, steps, HEADS, size, dtype=dtype)

    views = normal(KEY) / 2, functional.normalize(normal(KEY), dim=-1), normal(VALUE)
    gates = functional.logsigmoid(normal(1) + 3).squeeze(-1), torch.sigmoid(normal(1)).squeeze(-1)
    return (
        Tokens(*(view.requires_grad_() for view in views)),
        Gates(*(gate.requires_grad_() for gate in gates)),
    )


@pytest.mark.parametrize("storage", STORAGES)
def test_cached_pairs_are_the_worst_predicted_of_the_segment(storage):
    """Without a border, a small cache is the head of one that keeps everything."""
    small, large = make_solver(storage, period=100), make_solver(storage, period=100, cache_size=20)
    large.load_state_dict(small.state_dict())
    tokens, gates = make_inputs()
    _, kept = small(tokens, gates, small.init_state(BATCH), None, None)
    _, everything = large(tokens, gates, large.init_state(BATCH), None, None)
    for name in ("cache_keys", "cache_values", "cache_scores"):
        torch.testing.assert_close(kept[name], everything[name][:, :, :3])
    assert (kept["cache_scores"] >= 0).all() and (kept["cache_scores"].diff(dim=-1) <= 0).all()
    assert (everything["cache_scores"][..., STEPS:] == -1).all()


def test_a_pair_that_the_weights_lost_is_recalled_from_the_cache():
    """Many small pairs on one key after a surprising one: only the cache still knows it."""
    for storage in ("rehearse", "absorb losers"):
        solver = CachedDelta(HEAD, SquaredError(HEAD), STORAGES[storage], 2, 100, 40.0).double()
        steps = 40
        key = torch.zeros(1, steps, HEADS, KEY, dtype=torch.float64)
        key[:, 0, :, 0] = key[:, 1:, :, 1] = 1.0
        value = 0.01 * torch.ones(1, steps, HEADS, VALUE, dtype=torch.float64)
        value[:, 0] = torch.tensor([1.0, -2.0, 3.0])
        rate = torch.full((1, steps, HEADS), 0.5, dtype=torch.float64)
        gates = Gates(torch.full_like(rate, -1.0), rate)
        query = key[:, :1].expand_as(key) / KEY**0.5
        reads, state = solver(Tokens(query, key, value), gates, solver.init_state(1), None, None)
        forgotten = torch.einsum("bhvk,bhk->bhv", state["weights"], query[:, -1])
        assert forgotten.abs().max() < 1e-6
        expected = (solver.strength * value[:, 0]).detach()
        torch.testing.assert_close(reads[:, -1], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("case", ["identical pairs", "zero key", "zero value", "zero query"])
@pytest.mark.parametrize("gate", [0.0, -1e-8, -5.0, -50.0, -1e30])
@pytest.mark.parametrize("storage", ["rehearse", "absorb losers"])
def test_degenerate_tokens_and_gates_stay_finite_in_float32(storage, gate, case):
    steps = 64
    (query, key, value), _ = make_inputs(steps, torch.float32)
    query, key, value = (view.detach().clone() for view in (query, key, value))
    if case == "identical pairs":
        key, value = (view[:, :1].expand_as(view).clone() for view in (key, value))
    else:
        {"zero query": query, "zero key": key, "zero value": value}[case].zero_()
    tokens = Tokens(*(view.requires_grad_() for view in (query, key, value)))
    rate = torch.full((BATCH, steps, HEADS), 0.9)
    gates = Gates(torch.full_like(rate, gate).requires_grad_(), rate.requires_grad_())
    solver = make_solver(storage, torch.float32, period=8)
    reset = torch.rand(BATCH, steps) < 0.1
    reads, state = solver(tokens, gates, solver.init_state(BATCH), reset, None)
    assert reads.isfinite().all() and all(leaf.isfinite().all() for leaf in state.values())
    sources = [*tokens, *gates, *solver.parameters()]
    for gradient in torch.autograd.grad(reads.square().mean(), sources, allow_unused=True):
        assert gradient is None or gradient.isfinite().all()


@pytest.mark.parametrize("storage", ["rehearse", "absorb losers"])
def test_rehearsal_keeps_weights_bounded(storage):
    """Two thousand surprising tokens at full rate: the weights stay on the scale of the values."""
    solver = make_solver(storage, torch.float32, period=8)
    state = solver.init_state(BATCH)
    with torch.no_grad():
        for _ in range(4):
            tokens, gates = make_inputs(500, torch.float32)
            gates = Gates(torch.zeros_like(gates[0]), torch.ones_like(gates[1]))
            reads, state = solver(tokens, gates, state, None, None)
    assert reads.isfinite().all() and state["weights"].abs().max() < 100
    assert (state["cache_scores"] >= 0).all()


def test_bad_arguments_are_refused_in_one_line():
    for make, message in (
        (
            lambda: CachedDelta(HEAD, DotProduct(HEAD), Rehearse),
            "CachedDelta ranks pairs by the error of a linear memory, got DotProduct",
        ),
        (
            lambda: CachedDelta(HEAD, SquaredError(HEAD), Rehearse, cache_size=0),
            "cache_size must be at least 1, got 0; use 1",
        ),
        (
            lambda: CachedDelta(HEAD, SquaredError(HEAD), Rehearse, period=0),
            "period must be at least 1, got 0; use 1",
        ),
        (
            lambda: Rehearse(HEAD, score_half_life=0.0),
            "score_half_life must be at least 0.001, got 0.0; use 0.001",
        ),
    ):
        with pytest.raises(ValueError) as error:
            make()
        assert message in str(error.value) and "\n" not in str(error.value)
