"""Online elastic weight consolidation: parameters that old tasks need move slowly.

    L = L_ppo + strength / 2 sum_i F_i (theta_i - anchor_i)^2
    at a task's end:   F <- decay F + F_task,   anchor <- theta
    F_task = 1 / steps sum_b (d/dtheta sum_t log pi(a_bt | life so far))^2

b runs over lifetimes, t over their steps of the task that ended. A lifetime's score is the sum of
its steps' and these are uncorrelated under the policy that acted, so that F_task is the Fisher
information per step of the policy with its memory, unbiased. Sources: Kirkpatrick et al. 2017,
arXiv 1612.00796; Schwarz et al. 2018, arXiv 1805.06370 (online, one anchor).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .agent import Agent
from .ranks import mean_over_ranks
from .strategy import Learner, Strategy, copies, quadratic
from .task_clock import TaskClock, When, steps_of_ended_tasks
from .trajectory import Trajectory


class EWC(Strategy):
    """Consolidates `at` task ends (privileged) or every so many updates.

    The Fisher information is that of the slice in which the task ended, up to its end, over its
    first `fisher_lifetimes` lifetimes, under the weights that lived it: an update that falls early
    into a task leaves it few steps. The value head does not act and stays free. Raises ValueError,
    naming the key, for impossible numbers.
    """

    def __init__(
        self,
        learner: Learner,
        at: When,
        strength: float = 100.0,
        decay: float = 0.95,
        fisher_lifetimes: int = 16,
    ) -> None:
        if not strength >= 0.0:
            raise ValueError(f"strategy.strength: expected a number from 0 on, got {strength}")
        if not 0.0 <= decay <= 1.0:
            raise ValueError(f"strategy.decay: expected a number in [0, 1], got {decay}")
        if fisher_lifetimes < 1:
            raise ValueError(
                f"strategy.fisher_lifetimes: expected at least 1, got {fisher_lifetimes}"
            )
        self.agent, self.clock = learner.agent, TaskClock(at)
        self.strength, self.decay, self.fisher_lifetimes = strength, decay, fisher_lifetimes
        self.parameters = dict(learner.agent.named_parameters())
        self.anchor: dict[str, Tensor] = {}
        self.importance: dict[str, Tensor] = {}

    def before(self, trajectory: Trajectory) -> None:
        """Consolidate where it is time."""
        if not self.clock.strikes(trajectory):
            return
        found = fisher_information(self.agent, trajectory, self.fisher_lifetimes)
        mean_over_ranks(list(found.values()))
        old = self.importance
        self.importance = {
            name: value + self.decay * old[name] if old else value for name, value in found.items()
        }
        self.anchor = copies(self.parameters)

    def losses(self, progress: float) -> dict[str, Tensor]:
        """The penalty; none before the first task has ended."""
        del progress
        if not self.anchor:
            return {}
        distance = quadratic(self.parameters, self.anchor, self.importance)
        return {"ewc": 0.5 * self.strength * distance}

    def state_dict(self) -> dict[str, Any]:
        return {
            "anchor": self.anchor,
            "importance": self.importance,
            "clock": self.clock.state_dict(),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        for name in ("anchor", "importance"):
            held = {key: value.to(self.parameters[key]) for key, value in saved[name].items()}
            setattr(self, name, held)
        self.clock.load_state_dict(saved["clock"])


def fisher_information(
    agent: Agent, trajectory: Trajectory, num_lifetimes: int
) -> dict[str, Tensor]:
    """Diagonal Fisher information per step of the policy, by parameter name.

    One pass per lifetime, through all of its slice; parameters that the policy does not use get 0.
    """
    parameters = dict(agent.named_parameters())
    total = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    counted = steps_of_ended_tasks(trajectory)[:num_lifetimes]
    for row in range(len(counted)):
        of = slice(row, row + 1)
        steps = trajectory.steps[of]
        outputs, _, _ = agent.unroll(steps["observation"], trajectory.state[of], steps["reset"])
        log_prob = agent.actions.log_prob(outputs, steps["action"])
        score = torch.autograd.grad(
            torch.where(counted[of], log_prob, 0.0).sum(),
            list(parameters.values()),
            allow_unused=True,
        )
        for name, gradient in zip(parameters, score, strict=True):
            if gradient is not None:
                total[name] += gradient.square()
    return {name: value / counted.sum().clamp(min=1) for name, value in total.items()}
