"""Hand-written gradients against finite differences, once and twice."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sojourn.memory.carry import Carry
from sojourn.memory.chunk_scans import decayed_sums, delta_errors
from sojourn.memory.convolution import ShortConvolution
from sojourn.memory.inner_products import inner_products, own_products
from sojourn.memory.normalise import with_length
from sojourn.memory.triangular import unit_lower_inverse


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_inverse_of_unit_lower_triangular_systems(size):
    system = normal(2, 3, size, size)
    full = torch.eye(size, dtype=torch.float64) + system.tril(-1)
    torch.testing.assert_close(unit_lower_inverse(system), torch.linalg.inv(full))
    assert torch.autograd.gradcheck(unit_lower_inverse, system)
    assert torch.autograd.gradgradcheck(unit_lower_inverse, system)


@pytest.mark.parametrize("reset", [False, True])
def test_convolution(reset):
    convolution = ShortConvolution(channels=2, width=3).double()
    flags = torch.tensor([[False, True, False, False], [True, False, False, True]])

    def output(x: Tensor, window: Tensor, kernel: Tensor) -> Tensor:
        arguments = (x, window, flags if reset else None, None)
        return torch.func.functional_call(convolution, {"kernel": kernel}, arguments)[0]

    sources = (normal(2, 4, 2), normal(2, 2, 2), normal(3, 2))
    assert torch.autograd.gradcheck(output, sources)
    assert torch.autograd.gradgradcheck(output, sources)


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("started", [False, True])
def test_decayed_sums(width, moves, started):
    def run(kept: Tensor, moved: Tensor | None, *rest: Tensor) -> tuple[Tensor, ...]:
        return decayed_sums(Carry(kept, moved), *rest)

    shares = (normal(2, 3, 1, width), normal(2, 3, 1, 1) if moves else None)
    pairs = (normal(2, 3, 5, 2), normal(2, 3, 5, 4))
    sources = (*shares, normal(2, 2, 4), *pairs, normal(2, 3, 2, 4) if started else None)
    assert torch.autograd.gradcheck(run, sources)
    assert torch.autograd.gradgradcheck(run, sources)


def test_inner_products():
    pairs = (normal(2, 3, 2), normal(2, 4, 2))
    assert torch.equal(inner_products(*pairs), pairs[0] @ pairs[1].mT)
    assert torch.autograd.gradcheck(inner_products, pairs)
    assert torch.autograd.gradgradcheck(inner_products, pairs)
    assert torch.equal(own_products(pairs[0]), pairs[0] @ pairs[0].mT)
    assert torch.autograd.gradcheck(own_products, pairs[:1])
    assert torch.autograd.gradgradcheck(own_products, pairs[:1])


@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("started", [False, True])
def test_delta_errors(chunks, moves, started):
    def run(kept: Tensor, moved: Tensor | None, *rest: Tensor) -> tuple[Tensor, ...]:
        return delta_errors(Carry(kept, moved), *rest)

    shares = (normal(2, chunks, 1, 2), normal(2, chunks, 1, 1) if moves else None)
    pairs = (normal(2, chunks, 3, 2), normal(2, chunks, 3, 2))
    systems = (normal(2, chunks, 3, 2), normal(2, chunks, 3, 3))
    start = normal(2, chunks, 2, 2) if started else None
    sources = (*shares, normal(2, 2, 2), *pairs, *systems, start)
    assert torch.autograd.gradcheck(run, sources)
    assert torch.autograd.gradgradcheck(run, sources)


@pytest.mark.parametrize("length", [1.0, 0.3])
def test_vectors_of_a_given_length(length):
    def normalised(x: Tensor) -> Tensor:
        return with_length(x, length, 1e-2)

    x = normal(3, 4)
    assert torch.autograd.gradcheck(normalised, x)
    assert torch.autograd.gradgradcheck(normalised, x)
    zero = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(normalised(zero).sum(), zero)
    torch.testing.assert_close(gradient, torch.full_like(zero, 10 * length))
