"""What the agent reads off its memory: a masked policy and a value."""

from __future__ import annotations

from torch import Tensor, nn

from .actions import Actions

POLICY_GAIN = 0.01  # a nearly uniform first policy explores (Andrychowicz et al. 2021)


class PolicyHead(nn.Module):
    """Features `[..., D]` and action mask to masked outputs, which `actions` reads as a policy."""

    def __init__(self, width: int, actions: Actions) -> None:
        super().__init__()
        self.actions = actions
        self.project = nn.Linear(width, actions.num_outputs)
        nn.init.orthogonal_(self.project.weight, POLICY_GAIN)
        nn.init.zeros_(self.project.bias)

    def forward(self, features: Tensor, action_mask: Tensor) -> Tensor:
        return self.actions.mask(self.project(features), action_mask)


class ValueHead(nn.Module):
    """Features `[..., D]` to the normalised value `[...]` of the rest of the lifetime."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, 1)
        nn.init.orthogonal_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def forward(self, features: Tensor) -> Tensor:
        value: Tensor = self.project(features).squeeze(-1)
        return value
