"""Attention and recurrent memories against the slow, obvious versions."""

from __future__ import annotations

import pytest
import torch

from sojourn.memory import GRU, LSTM
from sojourn.memory.rotary import rotate

BATCH, STEPS = 3, 17


def slow_attention(core, x, reset, mask, window):
    """Append to python lists and take a softmax over what is left in them."""
    features = torch.split(core.projection(x), core.feature_sizes, dim=-1)
    state = dict(core.init_state(BATCH).items())
    tokens, _ = core.views(features[0], state, reset, mask)
    reads = torch.zeros_like(tokens.value)
    for b in range(BATCH):
        keys, values, position = [], [], 0
        for t in range(STEPS):
            if reset[b, t]:
                keys, values, position = [], [], 0
            at = torch.tensor([[position]])
            query, key = (rotate(view[b : b + 1, t : t + 1], at)[0, 0] for view in tokens[:2])
            if mask[b, t]:
                keys, values = [*keys, key][-window:], [*values, tokens.value[b, t]][-window:]
                position += 1
            if keys:
                scores = torch.einsum("hk,nhk->hn", query, torch.stack(keys)).softmax(-1)
                reads[b, t] = torch.einsum("hn,nhv->hv", scores, torch.stack(values))
    return core.readout(reads, features[1])


@pytest.mark.parametrize(("name", "window"), [("softmax_attention", STEPS), ("sliding_window", 5)])
def test_attention_equals_a_softmax_over_lists(tools, name, window):
    core = tools.build(name, width=8, key_width=4, value_width=4, cache__window=window).double()
    x = torch.randn(BATCH, STEPS, 8, dtype=torch.float64)
    reset, mask = torch.rand(BATCH, STEPS) < 0.1, torch.rand(BATCH, STEPS) < 0.7
    with torch.no_grad():
        y, _ = core(x, core.init_state(BATCH), reset, mask)
        slow = slow_attention(core, x, reset, mask, window)
    torch.testing.assert_close(y, slow, rtol=1e-10, atol=1e-12)


def test_rotated_products_depend_on_distance_only():
    q, k = torch.randn(2, 1, 1, 1, 6, dtype=torch.float64)

    def product(t: int, j: int) -> torch.Tensor:
        at = [torch.tensor([[position]]) for position in (t, j)]
        return (rotate(q, at[0]) * rotate(k, at[1])).sum()

    torch.testing.assert_close(product(5, 2), product(1005, 1002))
    torch.testing.assert_close(product(3, 3), (q * k).sum())
    assert not torch.isclose(product(5, 2), product(5, 3))


@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_recurrent_cells_equal_those_of_torch(tools, kind):
    width, hidden = 5, 4
    core = kind(width, hidden).double()
    tools.randomise(core)
    twin = getattr(torch.nn, kind.__name__)(width, hidden, batch_first=True).double()
    with torch.no_grad():
        twin.weight_ih_l0.copy_(core.inputs.weight)
        twin.bias_ih_l0.copy_(core.inputs.bias)
        twin.bias_hh_l0.zero_()
        # torch orders the LSTM's gates as input, forget, cell, output.
        order = [0, 1, 2] if kind is GRU else [0, 1, 3, 2]
        for parameter, ours in (
            (twin.weight_ih_l0, core.inputs.weight),
            (twin.bias_ih_l0, core.inputs.bias),
            (twin.weight_hh_l0, core.recurrent),
        ):
            blocks = torch.split(ours, hidden)
            parameter.copy_(torch.cat([blocks[index] for index in order]))
        if kind is GRU:
            twin.bias_hh_l0[2 * hidden :] = core.candidate_bias
    x = torch.randn(BATCH, STEPS, width, dtype=torch.float64)
    start = [vector.expand(1, BATCH, -1).contiguous() for vector in core.initial]
    truth, _ = twin(x, start[0] if kind is GRU else tuple(start))
    y, _ = core(x, core.init_state(BATCH))
    torch.testing.assert_close(y, core.output(truth), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_recurrent_weights_start_orthogonal(kind):
    core = kind(8)
    for gate in torch.split(core.recurrent, 8):
        torch.testing.assert_close(gate @ gate.T, torch.eye(8), rtol=1e-5, atol=1e-5)


def test_forget_gate_starts_open():
    bias = LSTM(8).inputs.bias
    assert torch.equal(bias[8:16], torch.ones(8))
