"""Recomputation changes nothing but time and memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sojourn.memory import MemoryCore, Stack

BATCH, STEPS, WIDTH = 3, 11, 6


def flags() -> dict[str, Tensor]:
    return {
        "reset": torch.rand(BATCH, STEPS) < 0.15,
        "mask": torch.rand(BATCH, STEPS) < 0.8,
        "commit": torch.rand(BATCH, STEPS) < 0.3,
    }


def outcome(core: MemoryCore, tools, every: int | None, x: Tensor, state, kinds: dict[str, Tensor]):
    """Outputs, final leaves and the gradients of a scalar of both with respect to everything."""
    core.recompute_every = every
    inputs = [leaf for leaf in tools.flatten(state).values() if leaf.is_floating_point()]
    y, after = core(x, state, **kinds)
    leaves = [leaf for leaf in tools.flatten(after).values() if leaf.is_floating_point()]
    loss = y.tanh().square().sum() + sum(leaf.sin().sum() for leaf in leaves)
    sources = [x, *(leaf.requires_grad_() for leaf in inputs), *core.parameters()]
    return (
        y,
        *leaves,
        *torch.autograd.grad(loss, sources, allow_unused=True, materialize_grads=True),
    )


@pytest.mark.parametrize("every", [1, 4])
def test_outputs_states_and_gradients_stay(name, tools, every):
    torch.manual_seed(0)
    core = tools.small(name).double()
    tools.randomise(core)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64, requires_grad=True)
    state = core(x.detach(), core.init_state(BATCH))[1].detach()
    for leaf in tools.flatten(state).values():
        leaf.requires_grad_(leaf.is_floating_point())
    kinds = flags()
    whole = outcome(core, tools, None, x, state, kinds)
    sliced = outcome(core, tools, every, x, state, kinds)
    for got, want in zip(sliced, whole, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-8, atol=1e-9)


def test_a_slice_keeps_the_order_of_its_own_leaves(name, tools):
    """An initial state may name its leaves in another order than the states after it."""
    torch.manual_seed(0)
    core = tools.small(name).double()
    tools.randomise(core)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=torch.float64, requires_grad=True)
    kinds, gradients = flags(), []
    for every in (None, 4):
        core.recompute_every = every
        y, _ = core(x, core.init_state(BATCH), **kinds)
        sources = [x, *core.parameters()]
        gradients.append(torch.autograd.grad(y.square().sum(), sources, allow_unused=True))
    for got, want in zip(*gradients, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-8, atol=1e-9)


def test_a_stack_takes_it_as_an_argument(tools):
    stack = Stack([tools.small("gated_delta_net"), tools.small("lstm")], recompute_every=4)
    assert stack.recompute_every == 4
    x = torch.randn(BATCH, STEPS, WIDTH, requires_grad=True)
    y, _ = stack(x, stack.init_state(BATCH))
    (gradient,) = torch.autograd.grad(y.square().sum(), x)
    stack.recompute_every = None
    y_whole, _ = stack(x, stack.init_state(BATCH))
    (whole,) = torch.autograd.grad(y_whole.square().sum(), x)
    torch.testing.assert_close(gradient, whole, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="recompute_every must be at least 1, got 0; use 1"):
        Stack([tools.small("gru")], recompute_every=0)


def saved_numbers(core: MemoryCore, x: Tensor) -> int:
    """Numbers that autograd keeps for the backward pass, parameters and inputs left out."""
    storages: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes() // 4
        return tensor

    state = core.init_state(x.shape[0])
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        y, _ = core(x, state)
    assert y.requires_grad
    known = {one.untyped_storage().data_ptr() for one in (x, *core.parameters())}
    return sum(size for pointer, size in storages.items() if pointer not in known)


@pytest.mark.parametrize(("size", "chunked", "recomputed"), [(64, 0.6, 0.1), (32, 1.0, 0.15)])
def test_the_backward_pass_needs_few_state_matrices(tools, size, chunked, recomputed):
    """Per token and head, in chunks of 32."""
    sizes = {"key_width": size, "value_width": size, "solver__chunk_size": 32}
    core = tools.build("gated_delta_net", width=2 * size, num_heads=2, **sizes)
    x = torch.randn(2, 256, 2 * size)
    matrices = x.shape[0] * x.shape[1] * 2 * size**2
    assert saved_numbers(core, x) < chunked * matrices
    core.recompute_every = 32
    assert saved_numbers(core, x) < recomputed * matrices
