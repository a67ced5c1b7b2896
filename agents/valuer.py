"""Values of decisions by a critic that may know what the agent does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from sojourn.envs import Crowd

from .agent import Decision

Critic = Callable[[Tensor, Tensor], Tensor]
"""Features `[B, D]` and knowledge `[B, K]` to values `[B]`."""


class Valuer:
    """What a `critic` makes of decisions in the episodes that `crowd` now plays; without one the
    agent's own values stay and there is no `knowledge`.
    """

    def __init__(self, critic: Critic | None, crowd: Crowd, device: torch.device) -> None:
        self.critic = critic
        self.knowledge: Tensor | None = None
        if critic is not None:
            self.knowledge = torch.from_numpy(crowd.knowledge()).to(device)

    def valued(self, decision: Decision) -> Decision:
        """The decision with the critic's value; its action is what it was."""
        if self.critic is None or self.knowledge is None:
            return decision
        return replace(decision, value=self.critic(decision.features, self.knowledge))
