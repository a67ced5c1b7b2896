"""Memories with one retention per head against the references of flash-linear-attention."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sojourn.memory import (
    DotProduct,
    ExactMomentum,
    ExactScalar,
    Gates,
    Heads,
    Mesa,
    MomentumGates,
    SquaredError,
    Tokens,
)
from sojourn.memory.mesa import FORGETTING
from sojourn.memory.several_writes import SeveralWrites

CHUNK = 16


def run_scalar(parity, x, by_token, objective, retention: Tensor, rate: Tensor):
    solver = ExactScalar(parity.sizes, objective(parity.sizes), CHUNK).double()
    views = (Tokens(x.scaled_query, x.key, x.value), Gates(retention, rate))
    reads, state = parity.run(solver, views, {"weights": x.state.mT}, by_token)
    return reads, state["weights"].mT


def swapped(*views: Tensor) -> list[Tensor]:
    """`[B, T, H, ...]` to `[B, H, T, ...]`."""
    return [view.transpose(1, 2) for view in views]


@pytest.fixture(params=["chunks", "tokens"])
def by_token(request) -> bool:
    return request.param == "tokens"


def test_linear_attention(parity, inputs, by_token):
    x = inputs
    module = parity.imported("fla.ops.linear_attn.naive")
    ours = run_scalar(parity, x, by_token, DotProduct, 0 * x.rate, 1 + 0 * x.rate)
    theirs = module.naive_recurrent_linear_attn(
        x.query, x.key, x.value, initial_state=x.state.float(), output_final_state=True
    )
    parity.assert_same(ours, theirs, x)


def test_linear_attention_by_chunk(parity, inputs, by_token):
    x = inputs._replace(state=torch.zeros_like(inputs.state))
    module = parity.imported("fla.ops.linear_attn.naive")
    ours, _ = run_scalar(parity, x, by_token, DotProduct, 0 * x.rate, 1 + 0 * x.rate)
    theirs = module.naive_chunk_linear_attn(x.query, x.key, x.value)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("function", ["naive_recurrent_simple_gla", "naive_chunk_simple_gla"])
def test_hebbian_with_retention(parity, inputs, by_token, function):
    x = inputs
    module = parity.imported("fla.ops.simple_gla.naive")
    ours = run_scalar(parity, x, by_token, DotProduct, x.log_retention, 1 + 0 * x.rate)
    theirs = getattr(module, function)(
        x.query,
        x.key,
        x.value,
        x.log_retention,
        initial_state=x.state.float(),
        output_final_state=True,
    )
    parity.assert_same(ours, theirs, x)


def test_delta_rule(parity, inputs, by_token):
    x = inputs
    module = parity.imported("fla.ops.delta_rule.naive")
    ours = run_scalar(parity, x, by_token, SquaredError, 0 * x.rate, x.rate)
    views = swapped(x.query, x.key, x.value, x.rate)
    reads, state = module.delta_rule_recurrence(*views, initial_state=x.state)
    parity.assert_same(ours, (reads.transpose(1, 2), state), x)


def test_delta_rule_by_chunk(parity, inputs, by_token):
    x = inputs._replace(state=torch.zeros_like(inputs.state))
    module = parity.imported("fla.ops.delta_rule.naive")
    ours = run_scalar(parity, x, by_token, SquaredError, 0 * x.rate, x.rate)
    views = (view.float() for view in swapped(x.query, x.key, x.value, x.rate))
    reads, state = module.delta_rule_chunkwise(*views)
    parity.assert_same(ours, (reads.transpose(1, 2), state), x)


@pytest.mark.parametrize(
    "function", ["naive_recurrent_gated_delta_rule", "naive_chunk_gated_delta_rule"]
)
def test_gated_delta_rule(parity, inputs, by_token, function):
    x = inputs
    module = parity.imported("fla.ops.gated_delta_rule.naive")
    ours = run_scalar(parity, x, by_token, SquaredError, x.log_retention, x.rate)
    theirs = getattr(module, function)(
        q=x.query,
        k=x.key,
        v=x.value,
        beta=x.rate,
        g=x.log_retention,
        initial_state=x.state,
        output_final_state=True,
    )
    parity.assert_same(ours, theirs, x)


def test_gated_delta_product(parity, inputs, by_token):
    x = inputs
    module = parity.imported("fla.ops.gated_delta_product.naive")
    sizes = parity.sizes
    heads = Heads(1, sizes.num_heads, sizes.key_width, sizes.value_width, writes_per_token=2)
    solver = SeveralWrites(ExactScalar(heads, SquaredError(heads), CHUNK)).double()

    def in_pairs(view: Tensor) -> Tensor:
        return view.unflatten(1, (-1, 2)).flatten(2, 3)

    query, retention = x.scaled_query[:, ::2], x.log_retention[:, ::2]
    views = (
        Tokens(query, in_pairs(x.key), in_pairs(x.value)),
        Gates(retention, in_pairs(x.rate)),
    )
    reads, state = parity.run(solver, views, {"weights": x.state.mT}, by_token)
    theirs = module.naive_recurrent_gated_delta_product(
        query,
        x.key,
        x.value,
        retention,
        x.rate,
        scale=1.0,
        initial_state=x.state.float(),
        output_final_state=True,
        num_householder=2,
    )
    parity.assert_same((reads, state["weights"].mT), theirs, x)


def test_momentum_delta_rule(parity, inputs, by_token):
    """Its chunk reference subtracts nearly equal numbers: in float32 it is off by up to 1 here."""
    x = inputs
    module = parity.imported("fla.ops.momentum_delta_rule.naive")
    solver = ExactMomentum(parity.sizes, SquaredError(parity.sizes, "previous"), CHUNK).double()
    gates = MomentumGates(x.log_retention, x.rate, x.log_momentum, x.gain)
    start = {"weights": x.state.mT, "momentum": torch.zeros_like(x.state.mT)}
    views = (Tokens(x.scaled_query, x.key, x.value), gates)
    reads, state = parity.run(solver, views, start, by_token)
    theirs = module.recurrent_momentum_delta_rule_ref(
        q=x.query,
        k=x.key,
        v=x.value,
        p=x.key,
        log_alpha=x.log_retention,
        log_mu=x.log_momentum,
        beta=x.gain,
        eta=x.rate,
        initial_S=x.state,
        output_final_state=True,
    )
    ours = torch.stack([state["weights"].mT, -state["momentum"].mT])  # theirs has the other sign
    parity.assert_same((reads, ours), theirs, x)


def test_mesa(parity, inputs, by_token):
    x = inputs
    module = parity.imported("fla.ops.mesa_net.naive")
    heads = Heads(1, parity.sizes.num_heads, parity.sizes.key_width, parity.sizes.key_width)
    solver = Mesa(heads, SquaredError(heads), chunk_size=CHUNK, ridge=1.0).double()
    # The reference takes only values as wide as the keys.
    value = x.channel_rate
    views = (Tokens(x.query, x.key, value), Gates(x.log_retention, x.rate))
    reads, state = parity.run(solver, views, solver.init_state(x.query.shape[0]), by_token)
    reads_theirs, keys, values = module.naive_mesa_net_exact(
        x.query, x.key, value, x.log_retention - FORGETTING, solver.ridges(), x.rate
    )
    ours = torch.stack([state["key_moments"], state["value_moments"].mT])
    parity.assert_same((reads, ours), (reads_theirs, torch.stack([keys, values])), x)
