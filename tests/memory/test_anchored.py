"""The anchored solver against autograd, token by token and row by row."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from sojourn.memory import (
    AnchoredGradient,
    Decay,
    DotProduct,
    Gates,
    Heads,
    HuberError,
    LinearNet,
    MomentumDecay,
    MomentumGates,
    PeriodicStep,
    PowerError,
    RunningMean,
    SquaredError,
    SwiGLUNet,
    TwoLayerNet,
)

from .anchored_loop import WIDTH, online_loop
from .solver_inputs import BATCH, HEADS, KINDS, make_flags, make_tokens

STEPS = 19
NARROW = Heads(width=8, num_heads=HEADS, key_width=WIDTH, value_width=WIDTH)
NETS = {"linear": LinearNet, "two layers": TwoLayerNet, "swiglu": SwiGLUNet}
MIXINGS = {
    "decay": Decay,
    "momentum": MomentumDecay,
    "running mean": RunningMean,
    "periodic": PeriodicStep,
}
OBJECTIVES = {
    "squared": SquaredError,
    "dot": DotProduct,
    "huber": partial(HuberError, threshold=0.4),
    "power 3": PowerError,
    "power 1.5": partial(PowerError, power=1.5),
}


def make_solver(net="two layers", mixing="decay", objective="squared", chunk_size=4, **changes):
    changes = {"output": "plain", "bias": "none", "dtype": torch.float64} | changes
    dtype, longest = changes.pop("dtype"), changes.pop("largest_error", 1.0)
    gain = changes.pop("largest_gain", 0.8)
    solver = AnchoredGradient(
        NARROW,
        OBJECTIVES[objective](NARROW),
        partial(NETS[net], **changes),
        MIXINGS[mixing],
        chunk_size,
        longest,
        gain,
    ).to(dtype)
    with torch.no_grad():
        for parameter in solver.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return solver


def gates_of(mixing: str, steps=STEPS, dtype=torch.float64) -> Gates | MomentumGates:
    def draw() -> Tensor:
        return torch.randn(BATCH, steps, HEADS, dtype=dtype)

    gates = functional.logsigmoid(draw() + 2), torch.rand_like(draw()) / 3
    if mixing == "momentum":
        gates = *gates, functional.logsigmoid(draw()), torch.rand_like(draw())
        return MomentumGates(*(gate.requires_grad_() for gate in gates))
    return Gates(*(gate.requires_grad_() for gate in gates))


def live_state(solver) -> dict[str, Tensor]:
    """Random leaves, rows at different places of their cells."""
    state = {}
    for name, leaf in solver.init_state(BATCH).items():
        if leaf.is_floating_point():
            leaf = (leaf + 0.2 * torch.randn_like(leaf)).detach().requires_grad_()
        state[name] = leaf
    state["phase"] = torch.arange(BATCH) % solver.chunk_size
    if "mean_count" in state:
        state["mean_count"] = torch.arange(BATCH) // 2 % solver.chunk_size
    return state


def assert_equals_the_loop(solver, tokens, gates, flags):
    state = live_state(solver)
    sources = [*tokens, *gates, *solver.parameters()]
    sources += [leaf for leaf in state.values() if leaf.is_floating_point()]
    results = []
    for run in (partial(online_loop, solver), solver):
        reads, final = run(tokens, gates, state, *flags)
        final = {name: final[name] for name in sorted(final)}
        total = reads.tanh().square().sum()
        total = total + sum(leaf.sin().sum() for leaf in final.values() if leaf.is_floating_point())
        gradients = torch.autograd.grad(total, sources, allow_unused=True, materialize_grads=True)
        results.append((reads, *final.values(), *gradients))
    for truth, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, truth, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mixing", MIXINGS)
def test_cells_equal_the_loop_at_any_flags(mixing, kind):
    solver = make_solver(mixing=mixing, output="residual_layer_norm", bias="fast")
    assert_equals_the_loop(
        solver,
        make_tokens(STEPS, key=WIDTH, value=WIDTH),
        gates_of(mixing),
        make_flags(kind, STEPS),
    )


@pytest.mark.parametrize("output", ["plain", "residual", "residual_layer_norm"])
@pytest.mark.parametrize("net", NETS)
def test_cells_equal_the_loop_for_any_net(net, output):
    solver = make_solver(net, "momentum", output=output, bias="fast")
    flags = make_flags("reset and mask", STEPS)
    assert_equals_the_loop(
        solver, make_tokens(STEPS, key=WIDTH, value=WIDTH), gates_of("momentum"), flags
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_cells_equal_the_loop_for_any_objective(objective):
    solver = make_solver(objective=objective)
    assert_equals_the_loop(
        solver,
        make_tokens(STEPS, key=WIDTH, value=WIDTH),
        gates_of("decay"),
        make_flags("reset", STEPS),
    )


@pytest.mark.parametrize("chunk_size", [1, 7, 100])
@pytest.mark.parametrize("mixing", MIXINGS)
def test_chunks_of_any_size_equal_the_loop_with_that_anchor(mixing, chunk_size):
    solver = make_solver(mixing=mixing, chunk_size=chunk_size)
    flags = make_flags("reset and mask", STEPS)
    assert_equals_the_loop(
        solver, make_tokens(STEPS, key=WIDTH, value=WIDTH), gates_of(mixing), flags
    )


@pytest.mark.parametrize("gate", [0.0, -1e-8, -5.0, -50.0, -1e30, "mixed"])
@pytest.mark.parametrize("mixing", MIXINGS)
def test_any_gate_is_finite_and_right_in_float32(mixing, gate):
    tokens = make_tokens(STEPS, torch.float32, WIDTH, WIDTH)
    choices = torch.tensor([0.0, -1e-8, -1.0, -50.0, -1e30] if gate == "mixed" else [gate])

    def draw() -> Tensor:
        return choices[torch.randint(len(choices), (BATCH, STEPS, HEADS))].requires_grad_()

    rate = torch.full((BATCH, STEPS, HEADS), 0.1).requires_grad_()
    gates = Gates(draw(), rate)
    if mixing == "momentum":
        gates = MomentumGates(*gates, draw(), torch.ones_like(rate).requires_grad_())
    solver = make_solver(mixing=mixing, chunk_size=8, dtype=torch.float32)
    flags = make_flags("reset", STEPS)
    reads, state = solver(tokens, gates, solver.init_state(BATCH), *flags)
    sources = [*tokens, *gates, *solver.parameters()]
    for gradient in torch.autograd.grad(reads.square().mean(), sources, allow_unused=True):
        assert gradient is None or gradient.isfinite().all()
    truth, final = online_loop(solver, tokens, gates, solver.init_state(BATCH), *flags)
    torch.testing.assert_close(reads, truth, rtol=1e-4, atol=1e-4)
    for name, leaf in final.items():
        torch.testing.assert_close(state[name], leaf, rtol=1e-4, atol=1e-4)
