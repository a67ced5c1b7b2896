"""Channel-gated solvers at extreme gates and tokens, their accuracy, and what never grows."""

from __future__ import annotations

import pytest
import torch

from sojourn.memory import (
    ChannelDelta,
    Edits,
    ExactChannel,
    GeneralisedDelta,
    Heads,
    SelectiveDelta,
    SnapshotChannel,
    SymmetricErase,
)
from sojourn.memory.channel_decay import ChannelDecay

WIDTH = 6
SMALL = {"num_heads": 2, "key_width": 4, "value_width": 3, "rule__num_experts": 3}
GATES = {
    "open": lambda like: torch.zeros_like(like),
    "nearly open": lambda like: torch.full_like(like, -1e-8),
    "-5": lambda like: torch.full_like(like, -5.0),
    "-50": lambda like: torch.full_like(like, -50.0),
    "mixed": lambda like: -50 * torch.randint(0, 2, like.shape) * torch.rand_like(like),
    "closed": lambda like: torch.full_like(like, -1e30),
}
TOKENS = {
    "random": lambda edits: edits,
    "identical keys": lambda edits: edits._replace(
        write=torch.ones_like(edits.write) / 2, erase=torch.ones_like(edits.write) / 2
    ),
    "zeros": lambda edits: edits._replace(
        **{n: torch.zeros_like(one) for n, one in edits._asdict().items() if n != "log_retention"}
    ),
}


@pytest.mark.parametrize("solver_kind", [ExactChannel, SnapshotChannel])
@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("gate", GATES)
def test_extreme_gates_and_tokens_in_float32(tools, gate, tokens, solver_kind):
    steps = 70
    heads = Heads(width=8, num_heads=2, key_width=4, value_width=3)
    solver = solver_kind(ChannelDelta(heads), chunk_size=32, block_size=8)
    edits = TOKENS[tokens](tools.make_edits(steps, torch.float32))
    edits = edits._replace(log_retention=GATES[gate](edits.log_retention))
    edits = Edits(*(one.requires_grad_() for one in edits))
    state = {n: torch.randn_like(leaf) for n, leaf in solver.init_state(2).items()}
    reset, commit = torch.rand(2, steps) < 0.05, torch.rand(2, steps) < 0.2
    reads, after = solver(edits, state, reset, None, commit)
    loss = reads.square().mean() + after["weights"].square().mean()
    for gradient in torch.autograd.grad(loss, [*edits, solver.initial_weights], allow_unused=True):
        assert gradient is None or gradient.isfinite().all()
    doubles = Edits(*(one.double() for one in edits))
    state = {n: leaf.double() for n, leaf in state.items()}
    solver.double()
    for t in range(steps):
        one = Edits(*(view[:, t : t + 1] for view in doubles))
        start = solver.init_state(2)
        state = {
            n: torch.where(reset[:, t].view(-1, 1, 1, 1), start[n], leaf)
            for n, leaf in state.items()
        }
        read, state = solver(one, state, None, None, commit[:, t : t + 1])
        torch.testing.assert_close(reads[:, t].double(), read[:, 0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(after["weights"].double(), state["weights"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("strength", [0.5, 2.0, 5.0, 20.0])
def test_blocks_keep_float32_accuracy(strength):
    retention = -strength * torch.rand(2, 64, 6)
    rows, keys = torch.randn(2, 64, 1, 6), torch.randn(2, 64, 6)
    scores = []
    for dtype, block_size in ((torch.float32, 4), (torch.float64, 64)):
        decay = ChannelDecay(retention.to(dtype), None, block_size)
        near = decay.near_keys(keys.to(dtype))
        place = decay.after_write()
        scores.append(decay.scores(place, rows.to(dtype), keys.to(dtype), near))
    low, high = scores
    assert (low - high).abs().max() < 2e-6


def pure_erases(rule_kind, steps=200):
    """Norms of the weights under erases without values or decay, at most adverse keys and rates."""
    heads = Heads(width=8, num_heads=1, key_width=2, value_width=2)
    rule = rule_kind(heads).double()
    solver = ExactChannel(rule).double()
    angles = torch.tensor([0.6435, -0.6435 + torch.pi / 2], dtype=torch.float64)
    norms = []
    weights = torch.eye(2, dtype=torch.float64).view(1, 1, 2, 2)
    for t in range(steps):
        angle = angles[t % 2] * (-1) ** t
        key = torch.stack([angle.cos(), angle.sin()]).view(1, 1, 1, 2)
        rate = torch.eye(2, dtype=torch.float64)[t % 2]
        zero = torch.zeros_like(key)
        if rule_kind is SelectiveDelta:
            edits = Edits(zero, rate * key, key, zero, zero)
        elif rule_kind is SymmetricErase:
            edits = Edits(zero, rate.sqrt() * key, rate.sqrt() * key, zero, zero)
        else:
            both = (torch.cat([key, zero], 1), torch.cat([rate * key, zero], 1))
            zeros = torch.zeros(1, 2, 1, 2, dtype=torch.float64)
            edits = Edits(zeros, *both, zeros, zeros)
        _, state = solver(edits, {"weights": weights}, None, None, None)
        weights = state["weights"]
        norms.append(torch.linalg.matrix_norm(weights[0, 0], 2))
    return torch.stack(norms)


@pytest.mark.parametrize(
    "rule_kind",
    [
        SymmetricErase,
        pytest.param(
            SelectiveDelta,
            marks=pytest.mark.xfail(
                strict=True, raises=AssertionError, reason="I - k (b * k)^T is not a contraction"
            ),
        ),
        pytest.param(
            GeneralisedDelta,
            marks=pytest.mark.xfail(
                strict=True, raises=AssertionError, reason="I - c (a * c)^T is not a contraction"
            ),
        ),
    ],
)
def test_erasing_never_lengthens_the_weights(rule_kind):
    norms = pure_erases(rule_kind)
    assert (norms[1:] <= norms[:-1] + 1e-12).all()
