"""Faults that users of other packages reported of rollouts, boundaries and first ratios.

Covered elsewhere: states of trajectories in one batch with TorchRL (pytorch/rl#1406) in
test_memory_module, ratios of every memory (huggingface/trl#454) in test_meta_trainer and
test_rollout, advantages at a time limit in test_returns.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from sojourn.agents import LifetimeReturns, Rollout
from sojourn.envs import Crowd, Length, task_stream

from .conftest import make_agent, make_core

ENDINGS = {"terminated": (True, False), "truncated": (False, True), "both": (True, True)}


class Ending(gymnasium.Env[Any, Any]):
    """Three steps that pay 1, 2 and 3 and then end in one of three ways."""

    observation_space = spaces.Box(0.0, 3.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, terminated: bool, truncated: bool) -> None:
        self.ending = terminated, truncated

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        flags = self.ending if self.count == 3 else (False, False)
        return np.array([self.count], np.float32), float(self.count), *flags, {}


@pytest.mark.parametrize("name", ENDINGS)
def test_resetting_the_memory_and_cutting_the_bootstrap_are_two_flags(name: str) -> None:
    """instadeepai/Mava#951, #1006: any ending resets, only a termination is worth nothing."""
    crowd = Crowd(task_stream([lambda: Ending(*ENDINGS[name])], 0, length=Length(50)), 2)
    agent = make_agent(crowd.interface)
    rollout = Rollout(agent, crowd, memory_reset="episode", credit="episode")
    trajectory, episodes = rollout.collect(7)
    assert trajectory.steps["reset"][0].nonzero().flatten().tolist() == [0, 3, 6]
    assert {e.status for e in episodes} == {name if name == "truncated" else "terminated"}
    returns = LifetimeReturns(0.9, 1.0, "episode", reward_scale="none")
    target = returns.prepare(trajectory.steps, 0.0)["value_target"]
    final = trajectory.steps["next_value"][:, 2] if name == "truncated" else torch.zeros(2)
    last = 3.0 + 0.9 * final
    expected = torch.stack([1.0 + 0.9 * (2.0 + 0.9 * last), 2.0 + 0.9 * last, last], 1)
    torch.testing.assert_close(returns.scale.denormalise(target)[:, :3], expected)
    if name == "truncated":
        assert (final != trajectory.steps["value"][:, 3]).all(), "not that of the next episode"


def test_a_shorter_trajectory_keeps_its_last_state(core_name: str) -> None:
    """pytorch/rl#3711: B = 1, T = 5, a start at t = 3; states at t = 2 and t = 4 are the steps'."""
    torch.manual_seed(0)
    core = make_core(core_name).double()
    x = torch.randn(1, 5, core.width, dtype=torch.float64)
    start = torch.tensor([[True, False, False, True, False]])
    at_once = {t: core(x[:, : t + 1], core.init_state(1), start[:, : t + 1])[1] for t in (2, 4)}
    state = core.init_state(1)
    for t in range(5):
        _, state = core.step(x[:, t], state, start[:, t])
        if t in at_once:
            leaves = dict(state.items(True, True))
            assert leaves.keys() == dict(at_once[t].items(True, True)).keys()
            for key, leaf in at_once[t].items(True, True):
                torch.testing.assert_close(leaf, leaves[key], rtol=1e-9, atol=1e-9)
            assert not leaves or any(bool(leaf.any()) for leaf in leaves.values())


@pytest.mark.parametrize("memory_reset", ["episode", "lifetime"])
def test_the_first_ratio_is_one_in_low_precision(memory_reset: Any) -> None:
    """huggingface/trl#454, sb3-contrib#75: resets in mid-slice; within .02 under bfloat16."""
    crowd = Crowd(task_stream([lambda: Ending(False, True)], 0), 4)
    rollout = Rollout(make_agent(crowd.interface), crowd, memory_reset=memory_reset)
    with torch.autocast("cpu", torch.bfloat16):
        trajectory, _ = rollout.collect(11)
        steps = trajectory.steps
        outputs, *_ = rollout.agent.unroll(steps["observation"], trajectory.state, steps["reset"])
    now = rollout.agent.actions.log_prob(outputs.float(), steps["action"])
    assert ((now - steps["log_prob"]).exp() - 1.0).abs().max() < 2e-2
