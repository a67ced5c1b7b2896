"""Antithetic evolution strategies over a few outer parameters, on the regret of whole lifetimes.

    g = 1 / (2 n sigma) sum_i [F(phi + sigma e_i; xi_i) - F(phi - sigma e_i; xi_i)] e_i

with e_i ~ N(0, I) over n pairs. F is the mean regret of lifetimes from their first step on. Both
members of a pair live the same segments with the same uniforms xi_i (common random numbers), so
that only the parameters tell them apart. No gradient passes through the memory: nothing is
truncated, nothing need be differentiable, no critic is needed. F is shaped by rank or standardised,
and Adam descends the estimate. Source: Salimans et al. 2017, arXiv 1703.03864.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from sojourn.envs import Crowd, EpisodeRecord, check_choice, valid_reference

from .agent import Agent
from .chosen_parameters import ChosenParameters
from .life_regret import grouped_regret
from .luck import SharedLuck
from .rollout import Rollout
from .schedules import Schedule, as_schedule
from .trainer import Iteration, Seen

Shaping = Literal["rank", "standardised"]

FIRST_LIFETIME = 2**28  # far from the lifetimes that a rollout of the same stream lives


class Evolution:
    """Moves the parameters of `agent` that `parameters` name, and no others.

    An iteration lives `num_lifetimes` new lifetimes, split evenly over both members of `num_pairs`
    pairs; `spread` is sigma, in the parameters' own units. The lives of the rollout stand still. In
    the episodes that are handed on, both members of a pair have a lifetime number of their own.
    Raises ValueError for an uneven split, an unknown name and too many numbers.
    """

    keeps_slices = False

    def __init__(
        self,
        agent: Agent,
        parameters: Sequence[str],
        num_lifetimes: int,
        num_pairs: int = 8,
        spread: float = 0.2,
        learning_rate: float | Schedule = 0.1,
        shaping: Shaping = "rank",
        seed: int = 0,
    ) -> None:
        check_choice("shaping", shaping, Shaping)
        if num_pairs < 1 or num_lifetimes % (2 * num_pairs):
            raise ValueError(
                f"num_pairs: {num_lifetimes} lifetimes cannot be split evenly over both members of "
                f"{num_pairs} pairs; use num_lifetimes={2 * max(1, num_pairs)} or a multiple of it"
            )
        if not spread > 0.0:
            raise ValueError(f"spread: expected a number above 0, got {spread}")
        self.agent, self.chosen = agent, ChosenParameters(agent, list(parameters))
        self.num_pairs, self.spread = num_pairs, spread
        self.lives_per_member = num_lifetimes // (2 * num_pairs)
        self.learning_rate, self.shaping = as_schedule(learning_rate), shaping
        self.seed = seed
        self.optimizer = torch.optim.Adam(self.chosen.parameters, self.learning_rate(0.0))
        self.generator = torch.Generator().manual_seed(seed)
        self.next_lifetime = FIRST_LIFETIME

    def check(self, rollout: Rollout) -> None:
        """Raise ValueError where no task that the lives begin with has a floor and a ceiling."""
        tasks = [segment.task for segment in rollout.crowd.segments]
        if all(valid_reference(task.reference) is None for task in tasks):
            raise ValueError(
                f"evolution: {tasks[0].name} has no floor and ceiling, so that there is no regret "
                "to learn from; give it a reference (sojourn reference), or use trainer=ppo"
            )

    def iterate(self, rollout: Rollout, num_steps: int, progress: float, seen: Seen) -> Iteration:
        """One step of Adam on the estimate from `num_steps` steps of each new lifetime.

        Raises ValueError where a member of a pair met no episode whose regret is known.
        """
        del seen  # lives are summed up by their episodes, no slice is kept
        centre = self.chosen.read()
        noise = torch.randn(
            self.num_pairs, self.chosen.count, generator=self.generator, dtype=torch.float64
        )
        records: list[EpisodeRecord] = []
        member: list[int] = []
        try:
            for number in range(2 * self.num_pairs):
                sign = 1.0 if number < self.num_pairs else -1.0
                self.chosen.write(centre + sign * self.spread * noise[number % self.num_pairs])
                lived = self._live(rollout, number % self.num_pairs, num_steps)
                records += lived
                member += [number] * len(lived)
        finally:
            self.chosen.write(centre)
        self.next_lifetime += self.num_pairs * self.lives_per_member
        regret = torch.from_numpy(
            grouped_regret(records, np.array(member, np.int64), 2 * self.num_pairs)
        )
        _check_known(regret, num_steps)
        estimate = antithetic_estimate(noise, shape(regret, self.shaping), self.spread)
        metrics = self._descend(estimate, progress) | _told(regret, records)
        episodes = [
            replace(record, lifetime=2 * record.lifetime + int(number >= self.num_pairs))
            for record, number in zip(records, member, strict=True)
            if record.status != "running"
        ]
        return Iteration(metrics, episodes)

    def _live(self, rollout: Rollout, pair: int, num_steps: int) -> list[EpisodeRecord]:
        """The episodes of one member's lifetimes, each from its first step on."""
        first = self.next_lifetime + pair * self.lives_per_member
        crowd = Crowd(rollout.crowd.stream, self.lives_per_member, first_lifetime=first)
        lives = Rollout(self.agent, crowd, rollout.memory_reset)
        endings = lives.live(num_steps, SharedLuck(self.seed))
        records = [ending.record for ending in endings] + crowd.running_episodes()
        crowd.close()
        return records

    def _descend(self, estimate: Tensor, progress: float) -> dict[str, float]:
        learning_rate = self.learning_rate(progress)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        before = self.chosen.read()
        self.chosen.put_gradient(estimate)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return {
            "losses/estimate_norm": float(estimate.norm()),
            "losses/step_norm": float((self.chosen.read() - before).norm()),
            "charts/learning_rate": learning_rate,
        }

    def state_dict(self) -> dict[str, Any]:
        """Optimiser, luck and the next lifetime; the agent's weights are the agent's own."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "next_lifetime": self.next_lifetime,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.optimizer.load_state_dict(saved["optimizer"])
        self.generator.set_state(saved["generator"])
        self.next_lifetime = saved["next_lifetime"]


def antithetic_estimate(noise: Tensor, values: Tensor, spread: float) -> Tensor:
    """The gradient `[d]` of F at the centre of `noise` `[n, d]`.

    `values` `[2 n]` are F at centre + spread * noise, then at centre - spread * noise. Its mean is
    the gradient of F smoothed by a Gaussian of that spread: exact for a quadratic F.
    """
    plus, minus = values.to(noise).chunk(2)
    return ((plus - minus) / (2.0 * spread * len(noise))) @ noise


def shape(values: Tensor, shaping: Shaping) -> Tensor:
    """Values `[m]` on a scale that no outlier rules.

    `rank`: ranks evenly over [-1/2, 1/2], equal values share their mean rank. `standardised`: zero
    mean and unit spread. Equal values become zeros.
    """
    if shaping == "rank":
        below = (values.unsqueeze(0) < values.unsqueeze(1)).sum(1)
        above = (values.unsqueeze(0) > values.unsqueeze(1)).sum(1)
        return (below - above).to(values.dtype) / (2.0 * max(1, len(values) - 1))
    centred = values - values.mean()
    spread = centred.square().mean().sqrt()
    return centred / spread if spread > 0 else torch.zeros_like(centred)


def _check_known(regret: Tensor, num_steps: int) -> None:
    if not torch.isfinite(regret).all():
        raise ValueError(
            f"evolution: no regret is known of some lives of {num_steps} steps: no episode of a "
            "task with floor and ceiling ended in them; raise slice_steps to a whole lifetime"
        )


def _told(regret: Tensor, records: list[EpisodeRecord]) -> dict[str, float]:
    plus, minus = regret.chunk(2)
    total_steps = sum(record.num_steps for record in records)
    reward = sum(record.total_return for record in records)
    return {
        "losses/regret": float(regret.mean()),
        "losses/pair_difference": float((plus - minus).abs().mean()),
        "charts/reward_per_step": reward / max(1, total_steps),
    }
