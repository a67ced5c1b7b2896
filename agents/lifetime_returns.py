"""From what happened to what it was worth: training reward, advantages and value targets of a
slice.

g_t = c r_t with c = 1 / (ceiling - floor) of the task in play, so that every task counts alike. The
optimum itself is never subtracted: with episodes of variable length that would reward stalling.
"""

from __future__ import annotations

from typing import Literal

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from .boundary_discounts import boundary_discounts
from .normalise import RunningScale
from .returns import Credit, check_choice, cut_points, lifetime_advantages
from .schedules import Schedule, as_schedule

TrainingReward = Literal["sampled", "expected"]
RewardScale = Literal["task", "none"]
AdvantageScale = Literal["batch", "task"]


class LifetimeReturns(nn.Module):
    """Generalised advantages over lifetimes with a normalised value function.

    `reward="expected"` trains on the simulator's expected reward where it knows it (same mean, less
    noise; the agent still observes the sampled one). `reward_scale="task"` divides rewards by the
    gap between the task's ceiling and floor. `advantage_scale="task"` normalises advantages within
    each task, so that rare tasks are heard. `episode_discount` and `task_discount` count for every
    episode and task end that lies between a step and a reward, beside the `discount` of the steps.
    """

    def __init__(
        self,
        discount: float | Schedule = 0.99,
        trace: float | Schedule = 0.95,
        credit: Credit = "lifetime",
        reward: TrainingReward = "sampled",
        reward_scale: RewardScale = "task",
        advantage_scale: AdvantageScale = "batch",
        episode_discount: float | Schedule = 1.0,
        task_discount: float | Schedule = 1.0,
    ) -> None:
        super().__init__()
        check_choice("credit", credit, Credit)
        check_choice("returns.reward", reward, TrainingReward)
        check_choice("returns.reward_scale", reward_scale, RewardScale)
        check_choice("returns.advantage_scale", advantage_scale, AdvantageScale)
        self.discount, self.trace = as_schedule(discount), as_schedule(trace)
        self.episode_discount = as_schedule(episode_discount)
        self.task_discount = as_schedule(task_discount)
        for name in ("discount", "trace", "episode_discount", "task_discount"):
            schedule: Schedule = getattr(self, name)
            if not 0.0 <= schedule(0.0) <= 1.0:
                raise ValueError(
                    f"returns.{name}: expected a number in [0, 1], got {schedule(0.0)}"
                )
        self.credit: Credit = credit
        self.reward, self.reward_scale = reward, reward_scale
        self.advantage_scale = advantage_scale
        self.scale = RunningScale()

    @torch.no_grad()
    def prepare(
        self, steps: TensorDict, progress: float, bonus: Tensor | None = None
    ) -> TensorDict:
        """`steps` `[B, T]` with `advantage`, and with `value` and `value_target` on the value
        head's new scale, which has seen these returns.

        A `bonus` `[B, T]` is added to the advantages before they are scaled; the value knows
        nothing of it.
        """
        cut, worthless = cut_points(
            self.credit,
            *(steps[n] for n in ("terminated", "truncated", "task_end", "lifetime_end")),
        )
        value = self.scale.denormalise(steps["value"])
        advantage, returns = lifetime_advantages(
            self.training_reward(steps),
            value,
            self.scale.denormalise(steps["next_value"]),
            cut,
            worthless,
            self._discounts(steps, cut, progress),
            self.trace(progress),
        )
        self.scale.update(returns)
        if bonus is not None:
            advantage = advantage + bonus
        prepared = steps.copy()
        prepared["advantage"] = self._scale_advantage(advantage, steps)
        prepared["value"] = self.scale.normalise(value)
        prepared["value_target"] = self.scale.normalise(returns)
        return prepared

    def _discounts(self, steps: TensorDict, cut: Tensor, progress: float) -> float | Tensor:
        return boundary_discounts(
            self.discount(progress),
            self.episode_discount(progress),
            self.task_discount(progress),
            steps["terminated"] | steps["truncated"],
            steps["task_end"],
            cut,
            steps["reward"],
        )

    def training_reward(self, steps: TensorDict) -> Tensor:
        """The reward `[B, T]` the meta-trainer maximises."""
        reward: Tensor = steps["reward"]
        if self.reward == "expected":
            known = torch.isfinite(steps["expected_reward"])
            reward = torch.where(known, steps["expected_reward"], reward)
        return reward * steps["reward_scale"] if self.reward_scale == "task" else reward

    def _scale_advantage(self, advantage: Tensor, steps: TensorDict) -> Tensor:
        if self.advantage_scale == "batch":
            return standardise(advantage)
        scaled = torch.zeros_like(advantage)
        for task in steps["task"].unique():
            of_task = steps["task"] == task
            scaled[of_task] = standardise(advantage[of_task])
        return scaled

    def explained_variance(self, prepared: TensorDict) -> float:
        """Share of the value targets' variance the acting values explained; NaN when they are
        constant.
        """
        target = prepared["value_target"]
        variance = target.var(correction=0)
        if variance == 0:
            return float("nan")
        return float(1.0 - (target - prepared["value"]).var(correction=0) / variance)


def standardise(values: Tensor) -> Tensor:
    """Zero mean and unit spread; a single value or equal values become zeros, never NaN."""
    if values.numel() == 0:
        return values
    centred = values - values.mean()
    return centred / (values.std(correction=0) + 1e-8)
