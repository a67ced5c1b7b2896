"""What an agent costs (M14), and whether it and its memory can still learn as life goes on (M13).

    dormant share, ranks, norms of the outer parameters: `sojourn.agents.plasticity`
    norm, rank, write strength, half-life of the fast weights: `sojourn.memory.diagnose`

Both are measured on the first and on the last steps of carried lives, as means over layers and
heads. Norm of the gradient and size of an update belong to training and are read off its table.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from sojourn.agents import Agent, Rollout, SharedLuck, Trajectory, plasticity
from sojourn.envs import Crowd, Stream

from ..tables import read_table
from .frozen_lives import SLICE_STEPS, Budget
from .measures import CARRIED, Row, single_number

WINDOW = 64  # steps of every life that are looked at, at its start and at its end
MOST_LIVES = 16
TRAINING = "training"
OUTER = {
    "dormant": "dormant units",
    "feature_rank": "effective rank of features",
    "weight_norm": "norm of the weights",
}
# Ending of a diagnostic's name -> measure.
FAST = {
    "_norm": "fast weights, norm",
    "_effective_rank": "fast weights, effective rank",
    "write_strength": "fast weights, write strength",
    "half_life_50": "fast weights, half-life",
}
TRAINED = {
    "losses/grad_norm": "norm of the gradient",
    "plasticity/update_ratio": "update-to-weight ratio",
}


@dataclass
class Clock:
    """Time spent living `steps` steps, by the wall and of all processors."""

    steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def __enter__(self) -> Clock:
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._start[0]
        self.cpu_seconds += time.process_time() - self._start[1]


@torch.no_grad()
def flops_per_step(agent: Agent, stream: Stream) -> int:
    """Floating-point operations of one decision of one life: matrix products and convolutions,
    a multiplication and an addition counting two. Elementwise work is not counted.
    """
    crowd = Crowd(stream, 1)
    rollout = Rollout(agent, crowd)
    with FlopCounterMode(display=False) as counter:
        rollout.live(1)
    crowd.close()
    return int(counter.get_total_flops())


def measured_over_life(
    agent: Agent, stream: Stream, budget: Budget, luck: SharedLuck, num_steps: int
) -> tuple[dict[str, float], dict[str, float], int]:
    """M13 by name on the first and on the last `WINDOW` of `num_steps` steps of carried lives, and
    the number of lives. Nothing for lives shorter than two windows.
    """
    lives = min(budget.num_lifetimes, MOST_LIVES)
    if num_steps < 2 * WINDOW:
        return {}, {}, lives
    crowd = Crowd(stream, lives)
    rollout = Rollout(agent, crowd, luck=luck)
    young = _measured(agent, rollout.collect(WINDOW)[0])
    for lived in range(WINDOW, num_steps - WINDOW, SLICE_STEPS):
        rollout.live(min(SLICE_STEPS, num_steps - WINDOW - lived))
    old = _measured(agent, rollout.collect(WINDOW)[0])
    crowd.close()
    return young, old, lives


def _measured(agent: Agent, trajectory: Trajectory) -> dict[str, float]:
    outer = plasticity(agent, trajectory)
    found = {label: outer[name] for name, label in OUTER.items()}
    steps = trajectory.steps
    measures = agent.diagnose(steps["observation"], trajectory.state, steps["reset"])
    for ending, label in FAST.items():
        values = [
            values.flatten()
            for of_layer in measures.values()
            for name, values in of_layer.items()
            if name.endswith(ending)
        ]
        if values:
            heads = torch.cat(values)
            found[label] = float(heads[heads.isfinite()].mean())
    return found


def measured_in_training(metrics: Path, step: int) -> dict[str, float]:
    """M13 of the training run up to a step: the last known norm of a gradient, and of an update."""
    columns: Mapping[str, np.ndarray] = read_table(metrics)
    found: dict[str, float] = {}
    for name, label in TRAINED.items():
        if name in columns:
            values = columns[name][columns["step"] <= step]
            known = values[np.isfinite(values)]
            found |= {label: float(known[-1])} if len(known) else {}
    return found


def cost_rows(clocks: Mapping[str, Clock], agent: Agent, stream: Stream) -> Iterator[Row]:
    """M14: time by condition, and what the agent costs whatever is done to its memory."""
    for name, clock in clocks.items():
        if clock.steps and clock.seconds > 0.0:
            speed, work = clock.steps / clock.seconds, 1e6 * clock.cpu_seconds / clock.steps
            yield single_number("M14", "steps per second", name, speed, 1)
            yield single_number("M14", "CPU microseconds per step", name, work, 1)
    parameters = sum(parameter.numel() for parameter in agent.parameters())
    for measure, value in (
        ("parameters", parameters),
        ("bytes of memory state per lifetime", agent.memory.state_bytes()),
        ("FLOPs per step", flops_per_step(agent, stream)),
    ):
        yield single_number("M14", measure, CARRIED, float(value), 1)


def state_rows(
    agent: Agent, stream: Stream, budget: Budget, luck: SharedLuck, num_steps: int
) -> Iterator[Row]:
    """M13 at the start and at the end of carried lives of `num_steps` steps."""
    young, old, lives = measured_over_life(agent, stream, budget, luck, num_steps)
    for measure in young:
        for when, found in (("start", young), ("end", old)):
            yield single_number("M13", f"{measure}, {when} of life", CARRIED, found[measure], lives)


def training_rows(metrics: Path, step: int) -> Iterator[Row]:
    """M13 as the run itself told it last."""
    for measure, value in measured_in_training(metrics, step).items():
        yield single_number("M13", measure, TRAINING, value, 1)
