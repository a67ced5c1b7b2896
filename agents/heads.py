"""What the agent reads off its memory: a masked policy and a value."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

POLICY_GAIN = 0.01  # a nearly uniform first policy explores (Andrychowicz et al. 2021)


def mask_logits(logits: Tensor, action_mask: Tensor) -> Tensor:
    """Logits `[..., A]` with the actions a task lacks set so low that their probability is exactly
    zero.
    """
    return torch.where(action_mask, logits, torch.finfo(logits.dtype).min)


def masked_categorical(logits: Tensor) -> Categorical:
    """The policy as a distribution; entropy and KL count valid actions only (their p is zero)."""
    return Categorical(logits=logits, validate_args=False)


def sample_inverse_cdf(logits: Tensor, uniform: Tensor) -> Tensor:
    """Actions `[...]` from logits `[..., A]` and uniforms `[...]` in [0, 1): the first possible
    action j with cdf_j > u.

    Two agents that share their uniforms share their luck (common random numbers), which multinomial
    sampling cannot promise.
    """
    probability = torch.softmax(logits, dim=-1)
    cdf = probability.cumsum(dim=-1)
    # Parallel sums need not be monotone in the last digit, so an impossible action is ruled out by
    # its probability and not by its plateau of the cdf.
    possible = probability > 0
    reached = possible & (cdf > uniform.unsqueeze(-1) * cdf[..., -1:])
    last_possible = logits.shape[-1] - 1 - possible.flip(-1).int().argmax(dim=-1)
    return torch.where(reached.any(dim=-1), reached.int().argmax(dim=-1), last_possible)


class PolicyHead(nn.Module):
    """Features `[..., D]` and action mask `[..., A]` to masked logits `[..., A]`."""

    def __init__(self, width: int, num_actions: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, num_actions)
        nn.init.orthogonal_(self.project.weight, POLICY_GAIN)
        nn.init.zeros_(self.project.bias)

    def forward(self, features: Tensor, action_mask: Tensor) -> Tensor:
        return mask_logits(self.project(features), action_mask)


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
