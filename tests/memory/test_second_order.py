"""Gradients of gradients, and the transformations of torch.func that meta-learning needs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp, vmap

BATCH, STEPS, WIDTH = 2, 5, 6
Parameters = dict[str, Tensor]


class Life(nn.Module):
    """A memory from its learned initial state on, so that its parameters can be replaced."""

    def __init__(self, core) -> None:
        super().__init__()
        self.core = core

    def forward(self, x: Tensor) -> Tensor:
        state = self.core.init_state(x.shape[0])
        flags = torch.ones(x.shape[:2], dtype=torch.bool) if self.core.reads_commits else None
        return self.core(x, state, commit=flags)[0].tanh().square().sum()


def setting(single):
    life = Life(single.core())
    parameters = {name: value.detach() for name, value in life.named_parameters()}
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64)
    direction = {name: torch.randn_like(value) for name, value in parameters.items()}
    return life, parameters, x, direction


def gradient(life: Life, x: Tensor, at: Parameters) -> tuple[list[Tensor], list[Tensor]]:
    """The parameters as new leaves, and the gradient by them, differentiable again."""
    leaves = {name: value.detach().requires_grad_() for name, value in at.items()}
    loss = functional_call(life, leaves, (x,))
    sources = list(leaves.values())
    options = {"create_graph": True, "materialize_grads": True, "allow_unused": True}
    return sources, list(torch.autograd.grad(loss, sources, **options))


# torch.func.jvp imports torch's own decompositions, which are scripted.
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_second_derivatives_are_right_learn2learn_429_pytorch_116350(single):
    life, parameters, x, direction = setting(single)
    sources, first = gradient(life, x, parameters)
    slope = sum((one * direction[name]).sum() for name, one in zip(parameters, first, strict=True))
    options = {"materialize_grads": True, "allow_unused": True}
    along = torch.autograd.grad(slope, sources, **options)
    scale = max(float(one.abs().max()) for one in along)
    assert scale > 0

    step = 1e-6
    ahead, behind = (
        gradient(life, x, {name: parameters[name] + by * direction[name] for name in parameters})[1]
        for by in (step, -step)
    )
    for second, after, before in zip(along, ahead, behind, strict=True):
        expected = (after - before) / (2 * step)
        torch.testing.assert_close(second, expected, rtol=1e-5, atol=1e-6 * scale)

    forward_over_reverse = jvp(
        grad(lambda at: functional_call(life, at, (x,))), (parameters,), (direction,)
    )[1]
    for second, other in zip(along, forward_over_reverse.values(), strict=True):
        torch.testing.assert_close(other, second, rtol=1e-8, atol=1e-10 * scale)


def test_gradients_of_every_row_at_once(single):
    life, parameters, x, _ = setting(single)
    one = grad(lambda at, row: functional_call(life, at, (row.unsqueeze(0),)))
    together = vmap(one, (None, 0))(parameters, x)
    for row in range(BATCH):
        alone = one(parameters, x[row])
        for name in parameters:
            torch.testing.assert_close(together[name][row], alone[name], rtol=1e-8, atol=1e-10)
