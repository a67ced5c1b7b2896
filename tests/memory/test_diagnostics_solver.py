"""Measures of solvers against the slow definitions: systems formed, gradients by autograd."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from sojourn.memory import (
    AnchoredGradient,
    Cholesky,
    ConjugateGradient,
    FastWeightMemory,
    Mesa,
    TwoLayerNet,
    diagnose,
    observe,
)
from sojourn.memory.mesa import FORGETTING

BATCH, STEPS, WIDTH = 2, 7, 6
DOUBLE = torch.float64


def make_memory(tools, solver) -> FastWeightMemory:
    core = FastWeightMemory(WIDTH, 2, 4, 3, solver=solver).to(DOUBLE)
    tools.randomise(core)
    return core


def make_flags() -> dict[str, torch.Tensor]:
    mask = torch.rand(BATCH, STEPS) < 0.7
    mask[0, 2] = False
    reset = torch.zeros(BATCH, STEPS, dtype=torch.bool)
    reset[1, 4] = True
    return {"mask": mask, "reset": reset}


def first_residuals(core, x, flags):
    """Squared |A x - q| and |q| `[B, T, H]` of the first conjugate-gradient iterate."""
    seen = observe(core, x, core.init_state(BATCH), **flags)[0]["memory"]
    tokens, gates = seen.tokens, seen.gates
    found = []
    for b in range(BATCH):
        moments = torch.zeros(2, 4, 4, dtype=DOUBLE)
        for t in range(STEPS):
            if flags and flags["reset"][b, t]:
                moments = torch.zeros_like(moments)
            if not flags or flags["mask"][b, t]:
                retention = (gates.log_retention[b, t] - FORGETTING).exp()[:, None, None]
                key, rate = tokens.key[b, t], gates.write_rate[b, t][:, None, None]
                moments = retention * moments + rate * key[:, :, None] * key[:, None]
            matrix = moments + torch.diag_embed(core.solver.ridges())
            query = tokens.query[b, t]
            applied = (matrix @ query[..., None])[..., 0]
            step = query.square().sum(-1) / (query * applied).sum(-1)
            residual = step[:, None] * applied - query
            found.append([residual.square().sum(-1), query.square().sum(-1)])
    return [torch.stack(part) for part in zip(*found, strict=True)]


@torch.no_grad()
@pytest.mark.parametrize("flagged", [False, True])
def test_the_residuals_of_systems(tools, flagged):
    method = partial(ConjugateGradient, num_iterations=1)
    core = make_memory(tools, partial(Mesa, method=method, chunk_size=3))
    x, flags = torch.randn(BATCH, STEPS, WIDTH, dtype=DOUBLE), make_flags() if flagged else {}
    found = diagnose(core, x, core.init_state(BATCH), **flags)["memory"]
    residual, right = first_residuals(core, x, flags)
    expected = (residual.sum(0) / right.sum(0)).sqrt()
    torch.testing.assert_close(found["solve_residual"], expected)
    largest = (residual / right).amax(0).sqrt()
    torch.testing.assert_close(found["solve_residual_largest"], largest)
    assert (largest > 0.01).all()


def test_a_factorisation_leaves_no_residual(tools):
    core = make_memory(tools, partial(Mesa, method=Cholesky))
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=DOUBLE)
    found = diagnose(core, x, core.init_state(BATCH))["memory"]
    assert (found["solve_residual_largest"] < 1e-12).all()


def gradient_norms(core, x, flags):
    """|g_t| of the valid tokens by autograd, `[n, H]`, taken where the memory stands at t."""
    seen = observe(core, x, core.init_state(BATCH), **flags)[0]["memory"].tokens
    state, norms = core.init_state(BATCH), []
    for t in range(STEPS):
        one = {name: flag[:, t] for name, flag in flags.items()}
        if flags:
            state = core.reset_rows(state, one.pop("reset"))
        leaves = {n: state[f"anchor_{n}"].detach().requires_grad_() for n in core.solver.net.layers}
        hidden = torch.einsum("bhok,bhk->bho", leaves["hidden"], seen.key[:, t]).tanh()
        error = torch.einsum("bhvo,bho->bhv", leaves["last"], hidden) - seen.value[:, t]
        squares = [
            g.square().sum((-1, -2))
            for g in torch.autograd.grad(error.square().sum() / 2, list(leaves.values()))
        ]
        norm = sum(squares).sqrt()
        norms.append(norm[one["mask"]] if flags else norm)
        state = core.step(x[:, t], state, **one)[1]
    return torch.cat(norms)


@pytest.mark.parametrize("flagged", [False, True])
def test_the_inner_gradients(flagged):
    solver = partial(
        AnchoredGradient,
        net=partial(TwoLayerNet, activation="tanh"),
        chunk_size=1,
        largest_error=math.inf,
        largest_gain=math.inf,
    )
    core = FastWeightMemory(WIDTH, 2, 4, 3, solver=solver).to(DOUBLE)
    x, flags = torch.randn(BATCH, STEPS, WIDTH, dtype=DOUBLE), make_flags() if flagged else {}
    found = diagnose(core, x, core.init_state(BATCH), **flags)["memory"]
    assert found["inner_gradient_largest"].max() < 100  # no one token outweighs the others
    expected = gradient_norms(core, x, flags)
    torch.testing.assert_close(found["inner_gradient"], expected.mean(0))
    torch.testing.assert_close(found["inner_gradient_largest"], expected.amax(0))
    assert (found["gain_limited"] == 0).all()


def test_limited_gradients_are_counted(tools):
    solver = partial(AnchoredGradient, net=TwoLayerNet, chunk_size=4)
    core = make_memory(tools, partial(solver, largest_gain=math.inf))
    limited = make_memory(tools, partial(solver, largest_gain=1e-3))
    limited.load_state_dict(core.state_dict())
    x = torch.randn(BATCH, 4, WIDTH, dtype=DOUBLE)  # one cell: the same anchor
    free, short = (diagnose(one, x, one.init_state(BATCH))["memory"] for one in (core, limited))
    assert (short["gain_limited"] == 1).all() and (free["gain_limited"] == 0).all()
    assert (short["inner_gradient_largest"] < free["inner_gradient"]).all()


def test_older_pairs_of_a_window_are_not_counted_again(tools):
    solver = partial(AnchoredGradient, net=TwoLayerNet, chunk_size=4)
    alone, window = make_memory(tools, solver), make_memory(tools, partial(solver, window=3))
    window.load_state_dict(alone.state_dict(), strict=False)
    x = torch.randn(BATCH, 4, WIDTH, dtype=DOUBLE)
    found = [diagnose(one, x, one.init_state(BATCH))["memory"] for one in (alone, window)]
    torch.testing.assert_close(found[0]["inner_gradient"], found[1]["inner_gradient"])


def test_a_pass_of_masked_tokens_has_no_gradients(tools):
    core = make_memory(tools, AnchoredGradient)
    x = torch.randn(BATCH, STEPS, WIDTH, dtype=DOUBLE)
    nothing = torch.zeros(BATCH, STEPS, dtype=torch.bool)
    assert "inner_gradient" not in diagnose(core, x, core.init_state(BATCH), mask=nothing)["memory"]
