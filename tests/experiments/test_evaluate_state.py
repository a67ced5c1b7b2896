"""What an evaluation says of cost and plasticity: counted by hand, read and not changed."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from sojourn.agents import Agent, Rollout, SharedLuck, plasticity
from sojourn.envs import BernoulliBandit, Crowd, Length, NeverRepeating, Stream
from sojourn.experiments.evaluations.frozen_lives import Budget, frozen_copy
from sojourn.experiments.evaluations.state import (
    WINDOW,
    Clock,
    cost_rows,
    flops_per_step,
    measured_in_training,
    measured_over_life,
)
from sojourn.experiments.tables import write_table
from sojourn.memory import FastWeightMemory, MemoryCore, Memoryless, Stack


def stream_of() -> Stream:
    return Stream(NeverRepeating([BernoulliBandit(3, 10)]), Length(1), seed=3)


def agent_of(core: MemoryCore) -> Agent:
    torch.manual_seed(0)
    return frozen_copy(Agent(stream_of().interface, Stack([core])))


def test_without_a_memory_the_operations_are_those_of_the_linear_maps() -> None:
    agent, counted = agent_of(Memoryless(8)), 0

    def count(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        nonlocal counted
        assert isinstance(module, nn.Linear)
        counted += 2 * module.in_features * output.numel()

    hooks = [m.register_forward_hook(count) for m in agent.modules() if isinstance(m, nn.Linear)]
    Rollout(agent, Crowd(stream_of(), 1)).live(1)
    for hook in hooks:
        hook.remove()
    assert flops_per_step(agent, stream_of()) == counted > 0


def test_a_larger_memory_takes_more_operations() -> None:
    small, large = (agent_of(FastWeightMemory(width)) for width in (8, 16))
    assert flops_per_step(small, stream_of()) < flops_per_step(large, stream_of())


def test_a_clock_measures_what_runs_under_it() -> None:
    with Clock() as clock:
        clock.steps = 10
        sum(range(20_000))
    assert clock.seconds > 0 and clock.cpu_seconds > 0
    rows = {
        row.measure: row for row in cost_rows({"c": clock}, agent_of(Memoryless(8)), stream_of())
    }
    assert rows["steps per second"].value.mean == pytest.approx(10 / clock.seconds)
    assert rows["bytes of memory state per lifetime"].value.mean == 0.0


def test_start_and_end_of_life_are_those_of_the_carried_life() -> None:
    agent, steps = agent_of(FastWeightMemory(8)), 3 * WINDOW + 17
    young, old, lives = measured_over_life(
        agent, stream_of(), Budget(2, 1000), SharedLuck(4), steps
    )
    whole = Rollout(agent, Crowd(stream_of(), 2), luck=SharedLuck(4))
    first = whole.collect(WINDOW)[0]
    whole.collect(steps - 2 * WINDOW)
    last = whole.collect(WINDOW)[0]
    assert lives == 2
    for found, trajectory in ((young, first), (old, last)):
        expected = plasticity(agent, trajectory)
        assert found["effective rank of features"] == pytest.approx(expected["feature_rank"])
        measures = agent.diagnose(
            trajectory.steps["observation"], trajectory.state, trajectory.steps["reset"]
        )
        norms = measures["0"]["weights_norm"]
        assert found["fast weights, norm"] == pytest.approx(float(norms.mean()))
    assert young["norm of the weights"] == old["norm of the weights"], "nothing was trained"


def test_lives_that_are_too_short_are_not_measured() -> None:
    found = measured_over_life(
        agent_of(Memoryless(8)), stream_of(), Budget(2, 9), SharedLuck(4), 2 * WINDOW - 1
    )
    assert found == ({}, {}, 2)


def test_training_told_its_gradient_before_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    assert measured_in_training(path, 10) == {}
    grad, ratio = [1.0, 2.0, 3.0], [0.1, np.nan, 0.3]
    columns = {"step": [5, 10, 15], "losses/grad_norm": grad, "plasticity/update_ratio": ratio}
    write_table(path, columns)
    found = measured_in_training(path, 10)
    assert found == {"norm of the gradient": 2.0, "update-to-weight ratio": 0.1}
