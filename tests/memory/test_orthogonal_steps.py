"""LaCT and ATLAS against loops of autograd, one row, head and token at a time."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from sojourn.memory import AnchoredGradient, MomentumDecay, SquaredError, TwoLayerNet

from .cell_loop import (
    CELL,
    NARROW,
    STEPS,
    WIDTH,
    WINDOW,
    both,
    gates_of,
    make_solver,
)
from .solver_inputs import BATCH, KINDS, make_flags, make_tokens


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", ["lact", "atlas"])
def test_solver_equals_the_loop(model, kind):
    solver = make_solver(model, window=1 if model == "lact" else WINDOW)
    results = both(
        solver,
        model,
        make_tokens(STEPS, key=WIDTH, value=WIDTH),
        gates_of(model),
        make_flags(kind, STEPS),
    )
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("chunk_size", [1, 7, 100])
@pytest.mark.parametrize("model", ["lact", "atlas"])
def test_cells_of_any_size_equal_the_loop(model, chunk_size):
    solver = make_solver(model, "plain", chunk_size, 1 if model == "lact" else WINDOW)
    flags = make_flags("reset and mask", STEPS)
    results = both(
        solver, model, make_tokens(STEPS, key=WIDTH, value=WIDTH), gates_of(model), flags
    )
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", ["none", "reset and mask"])
def test_atlas_without_muon_and_window_is_titans(kind):
    atlas = make_solver("atlas", "plain", window=1)
    titans = AnchoredGradient(
        NARROW, SquaredError(NARROW), partial(TwoLayerNet, expansion=1), MomentumDecay, CELL
    ).double()
    titans.gain_limit.largest = titans.longest_error = float("inf")
    titans.load_state_dict(atlas.state_dict())
    tokens, flags = make_tokens(STEPS, key=WIDTH, value=WIDTH), make_flags(kind, STEPS)
    gates = gates_of("atlas")
    reads, after = atlas(tokens, gates, atlas.init_state(BATCH), *flags)
    truth, final = titans(tokens, gates, titans.init_state(BATCH), *flags)
    torch.testing.assert_close(reads, truth, rtol=1e-11, atol=1e-12)
    assert after.keys() == final.keys()
    for name, leaf in final.items():
        torch.testing.assert_close(after[name], leaf, rtol=1e-11, atol=1e-12)
