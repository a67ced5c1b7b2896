"""Memories with one retention per key channel against flash-linear-attention."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sojourn.memory import (
    ChannelDelta,
    ChannelHebbian,
    Edits,
    ExactChannel,
    FeedbackDelta,
    GeneralisedDelta,
)

CHUNK = 16


@pytest.fixture(params=["chunks", "tokens"])
def by_token(request) -> bool:
    return request.param == "tokens"


def run_channel(parity, x, by_token, rule, erase, value: Tensor, retention: Tensor):
    solver = ExactChannel(rule(parity.sizes), CHUNK).double()
    edits = Edits(x.scaled_query, erase, x.key, value, retention)
    reads, state = parity.run(solver, (edits,), {"weights": x.state.mT}, by_token)
    return reads, state["weights"].mT


def test_gla(parity, inputs, by_token):
    x = inputs
    module = parity.imported("fla.ops.gla.naive")
    ours = run_channel(parity, x, by_token, ChannelHebbian, None, x.value, x.channel_retention)
    theirs = module.naive_recurrent_gla(
        x.query,
        x.key,
        x.value,
        x.channel_retention,
        initial_state=x.state,
        output_final_state=True,
    )
    parity.assert_same(ours, theirs, x)


@pytest.mark.parametrize("function", ["naive_recurrent_kda", "naive_chunk_kda"])
def test_kda(parity, inputs, by_token, function):
    x = inputs
    module = parity.imported("fla.ops.kda.naive")
    erase, value = x.rate.unsqueeze(-1) * x.key, x.rate.unsqueeze(-1) * x.value
    ours = run_channel(parity, x, by_token, ChannelDelta, erase, value, x.channel_retention)
    theirs = getattr(module, function)(
        x.query,
        x.key,
        x.value,
        x.channel_retention,
        x.rate,
        initial_state=x.state,
        output_final_state=True,
    )
    parity.assert_same(ours, theirs, x)


@pytest.mark.parametrize("function", ["naive_recurrent_gdn2", "naive_chunk_gdn2"])
def test_gdn2(parity, inputs, by_token, function):
    x = inputs
    module = parity.imported("fla.ops.gdn2.naive")
    erase, value = x.channel_rate * x.key, x.value_rate * x.value
    ours = run_channel(parity, x, by_token, ChannelDelta, erase, value, x.channel_retention)
    theirs = getattr(module, function)(
        x.query,
        x.key,
        x.value,
        x.channel_retention,
        x.channel_rate,
        x.value_rate,
        initial_state=x.state,
        output_final_state=True,
    )
    parity.assert_same(ours, theirs, x)


@pytest.mark.parametrize("function", ["naive_recurrent_comba", "naive_chunk_comba"])
def test_comba(parity, inputs, by_token, function):
    """Its token form predicts after the decay; its chunk form, the paper and ours before it."""
    x = inputs
    module = parity.imported("fla.ops.comba.naive")
    predictor = 0.7 * x.key
    rate, retention = x.rate.unsqueeze(-1), x.log_retention.unsqueeze(-1).expand_as(x.key)
    erase = rate * predictor
    if function == "naive_recurrent_comba":
        erase = erase * retention.exp()
    ours = run_channel(parity, x, by_token, FeedbackDelta, erase, rate * x.value, retention)
    theirs = getattr(module, function)(
        q=x.query,
        k=x.key,
        v=x.value,
        p=predictor,
        beta=x.rate,
        g=x.log_retention,
        initial_state=x.state,
        output_final_state=True,
    )
    parity.assert_same(ours, theirs, x)


@pytest.mark.parametrize("function", ["dplr_recurrence", "dplr_chunkwise"])
def test_rwkv7(parity, inputs, function):
    """Two edits per token: what the key finds leaves along a second vector, then a write enters."""
    x = inputs
    module = parity.imported("fla.ops.generalized_delta_rule.dplr.naive")
    leaving, entering, nothing = x.channel_rate * x.key, x.channel_rate, torch.zeros_like(x.key)

    def in_turn(first: Tensor, second: Tensor) -> Tensor:
        return torch.stack([first, second], dim=2).flatten(1, 2)

    edits = Edits(
        query=in_turn(nothing, x.scaled_query),
        erase=in_turn(x.key, nothing),
        write=in_turn(leaving, entering),
        value=in_turn(torch.zeros_like(x.value), x.value),
        log_retention=in_turn(x.channel_retention, nothing),
    )
    solver = ExactChannel(GeneralisedDelta(parity.sizes), CHUNK).double()
    reads, state = parity.run(solver, (edits,), {"weights": x.state.mT}, by_token=False)
    views = (x.query, entering, x.value, x.key, -leaving, x.channel_retention)
    theirs, final = getattr(module, function)(
        *(view.transpose(1, 2).float() for view in views), initial_state=x.state.float()
    )
    parity.assert_same((reads, state["weights"].mT), (theirs.transpose(1, 2), final), x)
