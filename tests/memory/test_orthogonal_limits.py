"""Windows, lengths, extreme gates and numbers of rates of memories with orthogonal steps."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from sojourn.memory import (
    AnchoredGradient,
    CellMomentum,
    CellStep,
    Decay,
    FastWeightMemory,
    Gates,
    LinearNet,
    MomentumDecay,
    MomentumGates,
    RunningMean,
    SquaredError,
    SwiGLUNet,
    Tokens,
)

from .cell_loop import NARROW, STEPS, WIDTH, gates_of, make_solver
from .solver_inputs import BATCH, DEGENERATE, HEADS, degenerate_tokens, make_flags, make_tokens


@pytest.mark.parametrize("mixing", [Decay, MomentumDecay, RunningMean])
def test_any_mixing_takes_windows(mixing):
    """Two tokens of a window of two, in one cell, against the sum of their shares by hand."""
    solver = AnchoredGradient(
        NARROW, SquaredError(NARROW), LinearNet, mixing, 4, float("inf"), float("inf"), window=2
    ).double()
    torch.nn.init.normal_(solver.window.scores)
    query, key, value = (view[:, :2] for view in make_tokens(STEPS, key=WIDTH, value=WIDTH))
    rate = torch.rand(BATCH, 2, HEADS, dtype=torch.float64)
    none = torch.zeros_like(rate)
    gates = Gates(none, rate)
    if mixing is MomentumDecay:
        gates = MomentumGates(none, rate, none - 1e30, none + 1)
    _, after = solver(Tokens(query, key, value), gates, solver.init_state(BATCH), None, None)
    start = solver.net.initial("last")
    error = torch.einsum("hvk,bthk->bthv", start, key) - value
    gradient = torch.einsum("bthv,bthk->bthvk", error, key)
    shares = solver.window.scores.softmax(-1)[:, :, None, None]
    rate = rate[..., None, None]
    first, second = gradient.unbind(1)
    windowed = shares[:, 0] * first + shares[:, 1] * second
    moved = -rate[:, 0] * first - rate[:, 1] * windowed
    if mixing is RunningMean:
        torch.testing.assert_close(after["step_last"], moved)
    else:
        torch.testing.assert_close(after["weights_last"], start + moved)


def test_rows_keep_their_initial_lengths():
    solver = make_solver("lact", window=1)
    _, after = solver(
        make_tokens(STEPS, key=WIDTH, value=WIDTH),
        gates_of("lact"),
        solver.init_state(BATCH),
        None,
        None,
    )
    for layer in solver.net.layers:
        lengths, weights = solver.net.initial(layer).norm(dim=-1), after[f"weights_{layer}"]
        torch.testing.assert_close(weights.norm(dim=-1), lengths.expand(BATCH, -1, -1))
        assert not torch.allclose(weights, solver.net.initial(layer))


@pytest.mark.parametrize("model", ["lact", "atlas"])
@pytest.mark.parametrize("gate", ["zero", "tiny", "one"])
@pytest.mark.parametrize("what", DEGENERATE)
def test_any_gate_is_finite_in_float32(model, gate, what):
    tokens = degenerate_tokens(what, STEPS, WIDTH, WIDTH)
    size = {"zero": 0.0, "tiny": 1e-20, "one": 1.0}[gate]
    gates = gates_of(model, torch.float32)
    parts = []
    for name, part in zip(gates._fields, gates, strict=True):
        extreme = {0.0: -1e30, 1e-20: -50.0, 1.0: 0.0}[size] if "log" in name else size
        parts.append(torch.full_like(part, extreme).requires_grad_())
    gates = type(gates)(*parts)
    solver = make_solver(model, dtype=torch.float32)
    reads, after = solver(tokens, gates, solver.init_state(BATCH), *make_flags("reset", STEPS))
    assert reads.isfinite().all() and all(leaf.isfinite().all() for leaf in after.values())
    sources = [*tokens, *gates, *solver.parameters()]
    total = reads.square().mean() + sum(after[f"weights_{n}"].sum() for n in solver.net.layers)
    for gradient in torch.autograd.grad(total, sources, allow_unused=True, materialize_grads=True):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("num_rates", [1, 2, 3])
def test_rates_must_be_one_or_as_many_as_layers(num_rates):
    make = partial(
        FastWeightMemory,
        WIDTH,
        rule=partial(CellStep, num_rates=num_rates),
        solver=partial(AnchoredGradient, net=SwiGLUNet, mixing=CellMomentum),
    )
    if num_rates == 2:
        with pytest.raises(ValueError, match="must be 1 or the net's 3 layers, got 2; use 3"):
            make()
        return
    core = make()
    assert core(torch.randn(BATCH, STEPS, WIDTH), core.init_state(BATCH))[0].isfinite().all()
