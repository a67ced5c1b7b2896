"""A critic that knows what the agent does not: the hidden numbers of the task in play.

    V(y_t, k_t) = w . silu(W [y_t, k_t])      y_t: features the memory gives, k_t: `Crowd.knowledge`

A baseline may depend on anything but the action, so that the policy gradient stays unbiased; the
actor never sees k. The critic belongs to the trainer and lies in its checkpoint, not in the agent.
Source: asymmetric actor-critic, Pinto et al. 2017, arXiv 1710.06542.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sojourn.envs import knowledge_width

from .agent import Agent


class PrivilegedCritic(nn.Module):
    """Takes the place of the value head of `agent` in training, which is not trained then."""

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        width = agent.memory.width
        self.hidden = nn.Linear(width + knowledge_width(agent.interface), width)
        self.out = nn.Linear(width, 1)
        nn.init.orthogonal_(self.out.weight)
        nn.init.zeros_(self.out.bias)
        self.to(agent.device)

    def forward(self, features: Tensor, knowledge: Tensor) -> Tensor:
        """Features `[..., D]` and knowledge `[..., K]` to normalised values `[...]`."""
        seen = torch.cat([features, knowledge.to(features)], -1)
        value: Tensor = self.out(nn.functional.silu(self.hidden(seen))).squeeze(-1)
        return value
