"""Training of a probe's model on fresh batches, and its scores on a fixed test set.

Adam; the learning rate rises over the first twentieth of the steps and falls to zero as a cosine;
gradients are clipped to length 1. Sources: Kingma & Ba 2014; Loshchilov & Hutter 2016.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from .model import ProbeModel
from .task import Task

NUM_POINTS = 25  # of the training curve
WARM_UP = 0.05
LONGEST_GRADIENT = 1.0
TEST_ROWS = 512
TEST_PART = 128  # rows tested at a time: caches of long sequences are large
TRAIN_PURPOSE, TEST_PURPOSE = 1, 2  # of a seed: test sequences are the same for all memories


@dataclass(frozen=True)
class Budget:
    """What a training may cost: updates, sequences in each, and the highest learning rate."""

    steps: int
    batch: int
    lr: float


class Diverged(Exception):
    """The training loss is not a number any more."""


def train(model: ProbeModel, task: Task, budget: Budget, seed: int) -> Iterator[tuple[int, float]]:
    """Train in place; yields (updates so far, score of the last training batch) now and then.

    Raises Diverged when the loss is not finite.
    """
    generator = make_generator(seed, TRAIN_PURPOSE)
    optimizer = torch.optim.Adam(model.parameters(), lr=budget.lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: rate(i, budget.steps))
    points = {round(budget.steps * (i + 1) / NUM_POINTS) for i in range(NUM_POINTS)}
    for step in range(1, budget.steps + 1):
        size = task.train_sizes[
            int(torch.randint(len(task.train_sizes), (1,), generator=generator))
        ]
        batch = task.sample(budget.batch, size, generator)
        outputs = model(batch.inputs)
        loss = task.loss(outputs, batch)
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), LONGEST_GRADIENT)
        optimizer.step()
        schedule.step()
        if step in points:
            if not torch.isfinite(loss):
                raise Diverged(f"the loss is not finite at step {step}; try a smaller lr")
            yield step, task.score(outputs.detach(), batch)


def rate(step: int, steps: int) -> float:
    """Share of the highest learning rate at an update counted from 0."""
    warm = max(1, round(WARM_UP * steps))
    return min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * step / steps)))


@torch.no_grad()
def score_by_size(model: ProbeModel, task: Task, seed: int) -> dict[int, float]:
    """Size -> score on `TEST_ROWS` sequences of that size, the same for every model."""
    scores = {}
    for size in task.test_sizes:
        generator = make_generator(seed, TEST_PURPOSE, size)
        batch = task.sample(TEST_ROWS, size, generator)
        parts = [model(inputs) for inputs in torch.split(batch.inputs, TEST_PART)]
        scores[size] = task.score(torch.cat(parts), batch)
    return scores


def make_generator(*key: int) -> torch.Generator:
    """A generator seeded by several whole numbers, different for different keys."""
    # Torch's generator keeps 32 bits; the count tells keys apart that differ in zeros.
    state = np.random.SeedSequence([len(key), *key]).generate_state(1, np.uint32)
    return torch.Generator().manual_seed(int(state[0]))
