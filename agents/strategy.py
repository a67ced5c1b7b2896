"""Continual-learning strategies: what keeps outer parameters trained on task after task in order.

    L = L_ppo + what the strategy adds,   and what it does before and after every update

They are the field's controls for agents that learn with their weights rather than with a memory:
`EWC`, `L2Init`, `Replay`, `Restart`. Without one, training is plain finetuning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from .agent import Agent
from .lifetime_returns import LifetimeReturns
from .privileged_critic import PrivilegedCritic
from .rollout import Rollout
from .trajectory import Trajectory


@dataclass(frozen=True)
class Learner:
    """What a trainer changes: an agent, its value scale, and the optimiser of all that learns.

    `critic` values a slice in place of the agent's own value head where there is one.
    """

    agent: Agent
    returns: LifetimeReturns
    optimizer: torch.optim.Optimizer
    critic: PrivilegedCritic | None = None

    def values(self, features: Tensor, steps: TensorDict) -> Tensor:
        """Values `[B, T]` of features `[B, T, D]`, on the value head's scale."""
        if self.critic is None:
            own: Tensor = self.agent.value(features)
            return own
        informed: Tensor = self.critic(features, steps["knowledge"])
        return informed


class Strategy:
    """Finetuning: does nothing. A strategy replaces what it needs.

    `of_one_process`: whether it keeps what other processes of a run cannot share.
    """

    of_one_process = False

    def before(self, trajectory: Trajectory) -> None:
        """Look at a slice just lived, under the weights that lived it."""

    def losses(self, progress: float) -> dict[str, Tensor]:
        """Scalars by name that are added to the loss of a minibatch."""
        del progress
        return {}

    def after(self, rollout: Rollout, trajectory: Trajectory) -> None:
        """The update on `trajectory`, which `rollout` has just lived, is done."""

    def state_dict(self) -> dict[str, Any]:
        """What a later process needs to go on bit for bit, in tensors and plain values."""
        return {}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""


def copies(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Detached copies by name."""
    return {name: parameter.detach().clone() for name, parameter in parameters.items()}


def quadratic(
    parameters: Mapping[str, Tensor],
    anchor: Mapping[str, Tensor],
    importance: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """sum_i w_i (theta_i - anchor_i)^2 over all numbers; w = 1 without `importance`."""
    total = torch.zeros((), device=next(iter(anchor.values())).device)
    for name, parameter in parameters.items():
        square = (parameter - anchor[name]).square()
        total = total + (square if importance is None else importance[name] * square).sum()
    return total
