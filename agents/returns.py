"""Advantages over lifetimes: credit crosses episode and task ends unless it is told not to.

A_t = delta_t + gamma_t lambda A_{t+1},  delta_t = r_t + gamma_t V_{t+1} - V_t (Schulman et al.
2016, GAE), computed by TorchRL's functional form.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torchrl.objectives.value.functional import generalized_advantage_estimate

Credit = Literal["episode", "task", "lifetime", "never"]
"""The boundary at which credit is cut."""


def cut_points(
    credit: Credit, terminated: Tensor, truncated: Tensor, task_end: Tensor, lifetime_end: Tensor
) -> tuple[Tensor, Tensor]:
    """Where credit stops: (`cut`, `worthless`), both bool `[B, T]`.

    `cut`: nothing flows back over this step's end. `worthless`: what follows counts as zero; a cut
    that is not worthless (a truncated episode) bootstraps from the value of its true final
    observation.
    """
    if credit == "episode":
        return terminated | truncated | lifetime_end, terminated
    if credit == "task":
        return task_end | lifetime_end, task_end | lifetime_end
    if credit == "lifetime":
        return lifetime_end, lifetime_end
    return torch.zeros_like(lifetime_end), torch.zeros_like(lifetime_end)


def lifetime_advantages(
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    cut: Tensor,
    worthless: Tensor,
    discount: float | Tensor,
    trace: float,
) -> tuple[Tensor, Tensor]:
    """Advantages and returns `[B, T]`.

    `discount` is a number, or one `[B, T]` for what follows each step. `next_value` `[B, T]` is the
    value of what follows each step: V_{t+1} inside a life, the value of the true final observation
    where a truncated episode cuts it.
    """
    if reward.shape[-1] == 0:
        return reward.clone(), reward.clone()
    # As tensors of the reward's type: TorchRL would round plain numbers to float32.
    lmbda = torch.tensor(trace, dtype=reward.dtype, device=reward.device)
    gamma = (
        discount.to(reward).unsqueeze(-1)
        if isinstance(discount, Tensor)
        else torch.tensor(discount, dtype=reward.dtype, device=reward.device)
    )
    advantage, target = generalized_advantage_estimate(
        gamma,
        lmbda,
        value.unsqueeze(-1),
        next_value.unsqueeze(-1),
        reward.unsqueeze(-1),
        cut.unsqueeze(-1),
        worthless.unsqueeze(-1),
        time_dim=-2,
    )
    return advantage.squeeze(-1), target.squeeze(-1)
