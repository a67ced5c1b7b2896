"""Three clocks of discounting: by step, by episode and by task.

    gamma_t = gamma  gamma_episode^[an episode ends at t]  gamma_task^[a task ends at t]

so that a reward dt steps, de episode ends and dm task ends ahead weighs gamma^dt gamma_episode^de
gamma_task^dm. A task ends with an episode, so that both factors count there. `gamma_task = 0` makes
tasks independent (RL2, Duan et al. 2016, arXiv 1611.02779), 1 gives credit for the whole lifetime.
"""

from __future__ import annotations

import torch
from torch import Tensor


def boundary_discounts(
    step: float,
    episode: float,
    task: float,
    episode_end: Tensor,
    task_end: Tensor,
    cut: Tensor,
    like: Tensor,
) -> float | Tensor:
    """Discount of what follows each step: `[B, T]` of the type of `like`, or `step` alone.

    `step` comes back as it is where the other clocks stand still (both 1). Where credit is `cut`
    (bool `[B, T]`) nothing of the next episode follows, at most the value of the episode's own true
    final observation: there only the step counts.
    """
    if episode == 1.0 and task == 1.0:
        return step
    discount = torch.full_like(like, step)
    discount = torch.where(episode_end & ~cut, discount * episode, discount)
    return torch.where(task_end & ~cut, discount * task, discount)
