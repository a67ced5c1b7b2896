"""Hand-written gradients against finite differences, once and twice."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sojourn.memory.convolution import ShortConvolution
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
