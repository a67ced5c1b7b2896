"""Facts about Muon and about the polynomial features of keys."""

from __future__ import annotations

import pytest
import torch

from sojourn.memory import (
    AnchoredGradient,
    CellMomentum,
    CellStep,
    Heads,
    Orthogonalise,
    Polynomial,
    SquaredError,
)
from sojourn.memory.muon import COEFFICIENTS, newton_schulz

HEADS, WIDTH = 2, 3
HEAD = Heads(width=8, num_heads=HEADS, key_width=WIDTH, value_width=WIDTH)


@pytest.mark.parametrize("shape", [(16, 16), (4, 20), (20, 4)])
def test_newton_schulz_brings_singular_values_near_one(shape):
    step = torch.randn(50, *shape, dtype=torch.float64)
    step = step / step.norm(dim=(1, 2), keepdim=True)
    before, after = torch.linalg.svdvals(step), torch.linalg.svdvals(newton_schulz(step))
    assert after.max() < 1.15
    assert after[before > 0.005].min() > 0.97
    torch.testing.assert_close(newton_schulz(step.mT), newton_schulz(step).mT)


def test_newton_schulz_keeps_singular_vectors():
    step = torch.randn(6, 9, dtype=torch.float64)
    left, values, right = torch.linalg.svd(step / step.norm(), full_matrices=False)
    for a, b, c in COEFFICIENTS:
        values = a * values + b * values**3 + c * values**5
    expected = left @ torch.diag(values) @ right
    torch.testing.assert_close(newton_schulz(step / step.norm()), expected)


@pytest.mark.parametrize("decades", [0, 2, 5])
@pytest.mark.parametrize("rank", [1, 3, 16])
def test_newton_schulz_is_precise_in_float32(rank, decades):
    """Against the iteration as it is written, in float64, for spectra of many decades."""
    spectrum = torch.logspace(0, -decades, rank)
    step = torch.randn(50, 16, rank) * spectrum @ torch.randn(50, rank, 44)
    x = step = step / step.norm(dim=(1, 2), keepdim=True)
    x = x.double()
    for a, b, c in COEFFICIENTS:
        x = a * x + b * (x @ x.mT @ x) + c * (x @ x.mT @ x @ x.mT @ x)
    torch.testing.assert_close(newton_schulz(step).double(), x, rtol=0, atol=4e-5)


def test_half_precision_is_two_per_cent_off():
    step = torch.randn(64, 64)
    step = step / step.norm()
    exact = newton_schulz(step)
    error = (newton_schulz(step.bfloat16()).float() - exact).norm() / exact.norm()
    assert 0.005 < error < 0.05


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-10, 1e-6, 1e-3, 1.0, 1e4, 1e15])
def test_steps_of_any_length_have_bounded_derivatives(scale):
    """The bound is the largest slope of the polynomials, 492, over the smallest step."""
    muon = Orthogonalise(HEAD, smallest=0.1)
    step = (torch.randn(16, 16) * scale).requires_grad_()
    moved = muon(step)
    (gradient,) = torch.autograd.grad(moved[0, 0], step, create_graph=True)
    assert gradient.norm() <= 500 / 0.1
    (second,) = torch.autograd.grad(gradient.square().sum(), step)
    assert moved.isfinite().all() and second.isfinite().all()
    short = (step.norm() / 0.1).clamp(max=1)
    assert torch.linalg.matrix_norm(moved, 2) <= 1.15 * short + 1e-5


def test_half_lives_of_cells_are_those_asked_for():
    """Of orthonormal weights, and steps at right angles to all before."""
    mixing = CellMomentum(HEAD, 4, Orthogonalise, shortest=16, longest=64).double()
    directions = torch.eye(51, dtype=torch.float64)
    initial = 2 * directions[:3].expand(HEADS, -1, -1)
    weights = initial.unsqueeze(0)
    for number, half_life in enumerate((16, 64)):
        moved = weights
        for n in range(1, 1 + half_life // 4):
            step = 9.0 * directions[3 * n : 3 * n + 3]
            moved = mixing._commit(moved, step.expand_as(weights), initial)
        kept = (moved[0, number] * initial[number]).sum() / initial[number].square().sum()
        assert 0.45 < kept < 0.55


def test_polynomial_features_multiply_to_a_polynomial(tools):
    views = Polynomial(HEAD)
    features = torch.randn(2, 5, views.num_features)
    plain, _ = views.views(features, views.init_state(2), None, None)
    tokens, _ = views(features, views.init_state(2), None, None)
    size = views.token_heads.key_width
    assert size == WIDTH * (WIDTH + 3) // 2 and tokens.key.shape[-1] == size
    torch.testing.assert_close(tokens.key.norm(dim=-1), torch.ones(2, 5, HEADS))
    torch.testing.assert_close(tokens.query.norm(dim=-1) * size**0.5, torch.ones(2, 5, HEADS))
    s = (plain.query * plain.key).sum(-1) * WIDTH**0.5
    products = (tokens.query * tokens.key).sum(-1) * size**0.5
    torch.testing.assert_close(products, (s + s.square()) / 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Orthogonalise(HEAD, 0.0), "smallest step must be above 0, got 0.0; use 0.1"),
        (lambda: CellStep(HEAD, num_rates=0), "num_rates must be at least 1, got 0; use 1"),
        (
            lambda: CellMomentum(HEAD, 16, shortest=1.0),
            "shortest half-life must be at least 2.0, got 1.0; use 2.0",
        ),
        (
            lambda: AnchoredGradient(HEAD, SquaredError(HEAD), window=0),
            "window must be at least 1, got 0; use 1",
        ),
    ],
)
def test_bad_choices_are_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)
