"""From what happened to what it was worth: training reward, advantages and value targets of a
slice.

g_t = c r_t with c = 1 / (ceiling - floor) of the task in play, or 1 / (s.d. of its returns so far)
where it has no reference, so that every task counts alike. The optimum itself is never subtracted:
with episodes of variable length that would reward stalling.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import torch
from tensordict import TensorDict
from torch import Tensor, nn
from torchrl.objectives.value.functional import vtrace_advantage_estimate

from sojourn.envs import EpisodeRecord, check_choice

from .boundary_discounts import boundary_discounts
from .normalise import RunningScale
from .ranks import mean_over_ranks
from .returns import Credit, cut_points, lifetime_advantages
from .reward_scales import RewardScales
from .schedules import Schedule, as_schedule

TrainingReward = Literal["sampled", "expected"]
RewardScale = Literal["task", "none"]
AdvantageScale = Literal["batch", "task"]


class LifetimeReturns(nn.Module):
    """Generalised advantages over lifetimes with a normalised value function.

    `reward="expected"` trains on the simulator's expected reward where it knows it (same mean, less
    noise; the agent still observes the sampled one). `reward_scale="task"` divides rewards by the
    gap between the task's ceiling and floor, or as `reward_scales` say where there is none.
    `advantage_scale="task"` normalises advantages within each task, so that rare tasks are heard.
    `episode_discount` and `task_discount` count for every episode and task end that lies between a
    step and a reward, beside the `discount` of the steps.
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
        self.reward_scales = RewardScales()

    def check_credit(self, credit: Credit) -> None:
        """Raise ValueError where a rollout took its values for another `credit`."""
        if credit != self.credit:
            raise ValueError(
                f"credit: the rollout cuts at {credit!r}, the returns at {self.credit!r}; "
                "give both the same"
            )

    def add_episodes(self, episodes: Iterable[EpisodeRecord]) -> None:
        """Take in the episodes that ended in a slice, of all ranks, once it was learned from.

        The value scale begins anew where the reward of a task has come to another scale.
        """
        if self.reward_scale == "task" and self.reward_scales.add(episodes):
            self.scale.restart()

    def restart(self) -> None:
        """Forget all values and returns."""
        self.scale.restart()
        self.reward_scales.restart()

    @torch.no_grad()
    def prepare(
        self, steps: TensorDict, progress: float, bonus: Tensor | None = None
    ) -> TensorDict:
        """`steps` `[B, T]` with `advantage`, and with `value` and `value_target` on the value
        head's new scale, which has seen these returns.

        A `bonus` `[B, T]` is added to the advantages before they are scaled; the value knows
        nothing of it.
        """
        cut, worthless = self._cut_points(steps)
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

    @torch.no_grad()
    def off_policy(
        self, steps: TensorDict, values: Tensor, log_prob: Tensor, progress: float
    ) -> tuple[Tensor, Tensor]:
        """V-trace advantages and value targets `[B, T]` of steps that another policy lived.

        `values` (on the value head's scale) and `log_prob` are those of now. `next_value` of
        `steps`, in units of reward, is used where nothing lived follows: after the last step and at
        a truncated episode where credit is cut. Advantages are standardised, targets on the value
        head's scale. Source: Espeholt et al. 2018, arXiv 1802.01561.
        """
        cut, worthless = self._cut_points(steps)
        value = self.scale.denormalise(values)
        following = torch.cat([value[:, 1:], steps["next_value"][:, -1:]], 1)
        discount = self._discounts(steps, cut, progress)
        if not isinstance(discount, Tensor):  # TorchRL would round a plain number to float32
            discount = torch.full_like(value, discount)
        advantage, target = vtrace_advantage_estimate(
            *(
                column.unsqueeze(-1)
                for column in (
                    discount,
                    log_prob,
                    steps["log_prob"],
                    value,
                    torch.where(cut, steps["next_value"], following),
                    self.training_reward(steps),
                    cut,
                    worthless,
                )
            ),
        )
        return standardise(advantage.squeeze(-1)), self.scale.normalise(target.squeeze(-1))

    def _cut_points(self, steps: TensorDict) -> tuple[Tensor, Tensor]:
        flags = (steps[n] for n in ("terminated", "truncated", "task_end", "lifetime_end"))
        return cut_points(self.credit, *flags)

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
        if self.reward_scale == "none":
            return reward
        return reward * self.reward_scales.of(steps)

    def _scale_advantage(self, advantage: Tensor, steps: TensorDict) -> Tensor:
        if self.advantage_scale == "batch":
            return standardise_over_ranks(advantage)
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


def standardise_over_ranks(values: Tensor) -> Tensor:
    """As `standardise`, with the moments of the values of all ranks."""
    if values.numel() == 0:
        return values
    mean = values.mean()
    centre = mean.clone()
    mean_over_ranks([centre])
    variance = values.var(correction=0) + (mean - centre).square()
    mean_over_ranks([variance])
    return (values - centre) / (variance.sqrt() + 1e-8)
