"""One retention for all channels of a memory takes a shorter way to the same numbers."""

from __future__ import annotations

import pytest
import torch

from sojourn.memory import (
    ChannelDelta,
    ChannelHebbian,
    ExactChannel,
    FeedbackDelta,
    Heads,
    SnapshotChannel,
)

STEPS = 21


@pytest.mark.parametrize("rule", [ChannelHebbian, ChannelDelta, FeedbackDelta])
@pytest.mark.parametrize("solver_kind", [ExactChannel, SnapshotChannel])
@pytest.mark.parametrize("gate", ["random", "mixed"])
def test_it_equals_equal_retentions(tools, solver_kind, rule, gate):
    solver = solver_kind(rule(Heads(8, 2, 4, 3)), chunk_size=8, block_size=2).double()
    torch.nn.init.normal_(solver.initial_weights, std=0.3)
    state = {name: torch.randn_like(leaf) for name, leaf in solver.init_state(2).items()}
    reset, mask, commit = (torch.rand(2, STEPS) < p for p in (0.15, 0.8, 0.3))
    edits = tools.make_edits(STEPS)
    retention = edits.log_retention[..., :1]
    if gate == "mixed":
        choices = torch.tensor([0.0, -1e-8, -50.0, -1e30], dtype=torch.float64)
        retention = choices[torch.randint(len(choices), retention.shape)]
    if rule is ChannelHebbian:
        edits = edits._replace(erase=None)
    retention = retention.clone().requires_grad_()
    outcomes = []
    for one in (retention, retention.expand(-1, -1, -1, 4)):
        reads, after = solver(edits._replace(log_retention=one), state, reset, mask, commit)
        loss = reads.square().sum() + sum(leaf.sin().sum() for leaf in after.values())
        gradients = torch.autograd.grad(loss, [retention, solver.initial_weights])
        outcomes.append((reads, *after.values(), *gradients))
    for short, long in zip(*outcomes, strict=True):
        torch.testing.assert_close(short, long, rtol=1e-9, atol=1e-10)
