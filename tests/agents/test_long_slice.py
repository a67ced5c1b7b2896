"""A slice of 4096 steps of 32 lives is trained through whole, recomputed, with less than 1 GB."""

import pytest
import torch
from torch import Tensor

from sojourn.agents import (
    Agent,
    LifetimeReturns,
    MetaTrainer,
    PPOLoss,
    Rollout,
    Trajectory,
    slice_loss,
)
from sojourn.envs import Crowd
from sojourn.memory import FastWeightMemory, Stack

from .conftest import bandit_stream

LIVES, LIVED, COPIES = 32, 32, 128


@pytest.mark.slow
def test_autograd_saves_less_than_a_gigabyte() -> None:
    stream = bandit_stream()
    core = FastWeightMemory(128, num_heads=4, key_width=32, value_width=32)
    agent = Agent(stream.interface, Stack([core], 1, recompute_every=64))
    trainer = MetaTrainer(agent, LifetimeReturns(), PPOLoss())
    lived, _ = Rollout(agent, Crowd(stream, LIVES)).collect(LIVED)
    steps = torch.cat([lived.steps] * COPIES, 1)
    assert steps.batch_size == (LIVES, 4096)
    saved: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    loss = slice_loss(trainer, Trajectory(steps, lived.state, lived.credit), progress=0.0)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        value = loss()
    assert 1e7 < sum(saved.values()) < 1e9
    value.backward()
    gradients = [p.grad for p in agent.memory.parameters() if p.grad is not None]
    assert gradients and all(gradient.isfinite().all() for gradient in gradients)
