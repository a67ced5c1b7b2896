"""The meta-level trainer: PPO through the memory on whole slices of life.

One sequence is one lifetime's slice; gradients flow through every write of the memory in it (back-
propagation through the chunk form), and the objective is the return of the rest of the lifetime on
per-task normalised reward: a surrogate of minus cross-task regret, exact for episodes of fixed
length without discount. Schulman et al. 2017 (PPO, arXiv 1707.06347); Duan et al. 2016 (RL2).
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from .agent import Agent
from .extras import Extras
from .lifetime_returns import LifetimeReturns
from .outer_step import outer_step, without_heads
from .ppo import PPOLoss
from .privileged_critic import PrivilegedCritic
from .ranks import from_all_ranks, metrics_over_ranks
from .rollout import Rollout
from .schedules import Schedule, as_schedule
from .slice_start import renew, state_numbers
from .strategy import Learner, Strategy
from .trainer import Iteration, Seen, unseen
from .trajectory import Trajectory
from .windows import read_in_windows

RATIO_ALARM = 1e-3  # acting and training must agree before the first step of the optimiser


class MetaTrainer:
    """Updates the outer parameters of `agent`; `update` is one outer iteration.

    `learning_rate` may be a schedule over progress; minibatches split lifetimes, never time.
    `extras` adds other signals, none by default. Where several ranks train together every one has a
    rollout of its own lifetimes; metrics and episodes are those of all of them.
    """

    keeps_slices = True

    def __init__(
        self,
        agent: Agent,
        returns: LifetimeReturns,
        loss: PPOLoss,
        learning_rate: float | Schedule = 1e-3,
        num_epochs: int = 3,
        num_minibatches: int = 2,
        max_grad_norm: float = 0.5,
        seed: int = 0,
        extras: Extras | None = None,
    ) -> None:
        for name, count in (("num_epochs", num_epochs), ("num_minibatches", num_minibatches)):
            if count < 1:
                raise ValueError(f"{name}: expected at least 1, got {count}")
        self.agent = agent
        self.returns, self.loss = returns.to(agent.device), loss.to(agent.device)
        self.learning_rate = as_schedule(learning_rate)
        self.num_epochs, self.num_minibatches = num_epochs, num_minibatches
        self.max_grad_norm = max_grad_norm
        self.extras = extras or Extras()
        made = {"auxiliary": self.extras.auxiliary, "critic": self.extras.critic}
        self.heads = nn.ModuleDict({n: make(agent) for n, make in made.items() if make is not None})
        learned = [*agent.parameters(), *self.heads.parameters()]
        self.optimizer = torch.optim.Adam(learned, self.learning_rate(0.0), eps=1e-5)
        self.learner = Learner(agent, self.returns, self.optimizer, self.critic)
        self.strategy = (self.extras.strategy or _finetuning)(self.learner)
        self.generator = torch.Generator().manual_seed(seed)
        self.updates = 0

    @property
    def critic(self) -> PrivilegedCritic | None:
        """What values slices in place of the agent, if anything does."""
        found = dict(self.heads.named_children()).get("critic")
        return found if isinstance(found, PrivilegedCritic) else None

    def check(self, rollout: Rollout) -> None:
        """Raise ValueError where an extra signal cannot be measured in these lives."""
        if self.extras.transfer is not None:
            self.extras.transfer.check(self.agent, rollout)

    def iterate(
        self, rollout: Rollout, num_steps: int, progress: float, seen: Seen = unseen
    ) -> Iteration:
        """Live a slice, show it, learn from it, and choose the memory the next one starts from."""
        trajectory, episodes = rollout.collect(num_steps, self.critic)
        seen(trajectory)
        self.strategy.before(trajectory)
        extras, bonus = self.extras, None
        told: dict[str, float] = {}
        if extras.transfer is not None:
            decay = self.returns.discount(progress) * self.returns.trace(progress)
            bonus, told = extras.transfer.measure(self.agent, rollout, trajectory, episodes, decay)
        metrics = self.update(trajectory, progress, bonus) | told
        measured = extras.staleness_every > 0 and self.updates % extras.staleness_every == 0
        distance = renew(extras.slice_start, self.agent, rollout, trajectory, measured)
        if extras.staleness_every > 0 or extras.slice_start == "replay":
            metrics["memory/staleness"] = distance
        lived = [episode for part in from_all_ranks(episodes) for episode in part]
        self.returns.add_episodes(lived)
        self.strategy.after(rollout, trajectory)
        self.updates += 1
        metrics["charts/reward_per_step"] = float(trajectory.steps["reward"].mean())
        return Iteration(metrics_over_ranks(metrics), lived)

    def update(
        self, trajectory: Trajectory, progress: float, bonus: Tensor | None = None
    ) -> dict[str, float]:
        """One outer iteration on a slice; `progress` in [0, 1] drives the schedules.

        A `bonus` `[B, T]` is added to the advantages before they are scaled.

        Returns metrics by name. Raises FloatingPointError, naming the parameter, on a non-finite
        gradient and ValueError for a trajectory whose values were taken for another `credit`.
        """
        self.returns.check_credit(trajectory.credit)
        learning_rate = self.learning_rate(progress)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        steps = self.returns.prepare(trajectory.steps, progress, bonus)
        num_lifetimes = steps.batch_size[0]
        num_minibatches = min(self.num_minibatches, num_lifetimes)
        sums: dict[str, Tensor] = {}
        ratio_error: float | None = None
        for _ in range(self.num_epochs):
            for rows in self._minibatches(num_lifetimes, num_minibatches):
                losses = self._minibatch(steps[rows], trajectory.state[rows], progress)
                if ratio_error is None:
                    ratio_error = self._check_ratio(losses["ratio_error"])
                for name, value in losses.items():
                    sums[name] = sums.get(name, torch.zeros_like(value)) + value
        count = self.num_epochs * num_minibatches
        metrics = {f"losses/{name}": float(value) / count for name, value in sums.items()}
        del metrics["losses/ratio_error"]
        return metrics | {
            "losses/first_ratio_error": ratio_error or 0.0,
            "losses/explained_variance": self.returns.explained_variance(steps),
            "charts/learning_rate": learning_rate,
            "memory/state_norm": _state_norm(trajectory.state),
        }

    def _minibatches(self, num_lifetimes: int, count: int) -> tuple[Tensor, ...]:
        """Rows in a new order; of several ranks every one orders its own rows alike."""
        order = torch.randperm(num_lifetimes, generator=self.generator).to(self.agent.device)
        return order.tensor_split(count)

    def _minibatch(
        self, steps: TensorDict, state: TensorDict, progress: float
    ) -> dict[str, Tensor]:
        agent, observation = self.agent, steps["observation"]
        window = self.extras.gradient_window
        reading = read_in_windows(agent, observation, state, steps["reset"], window)
        outputs = agent.policy(reading.features, observation["action_mask"])
        values = self.learner.values(reading.features, steps)
        losses: dict[str, Tensor] = self.loss(outputs, values, steps, progress, agent.actions)
        if "auxiliary" in self.heads:
            auxiliary = self.heads["auxiliary"](reading, steps)
            losses["total"] = losses["total"] + auxiliary.pop("total")
            losses |= {f"auxiliary_{name}": loss for name, loss in auxiliary.items()}
        for name, loss in self.strategy.losses(progress).items():
            losses["total"] = losses["total"] + loss
            losses[f"strategy_{name}"] = loss
        norm = outer_step(losses["total"], self.optimizer, self.max_grad_norm, agent)
        return {name: loss.detach() for name, loss in losses.items()} | {"grad_norm": norm}

    def _check_ratio(self, error: Tensor) -> float:
        """Before the first optimiser step the policy must be the one that acted: ratio 1."""
        value = float(error)
        if value > RATIO_ALARM:
            warnings.warn(
                f"the first PPO ratio is off by {value:.1e} (expected < {RATIO_ALARM:.0e}): "
                "acting and training disagree, a memory core's step and chunk forms may differ",
                stacklevel=2,
            )
        return value

    def state_dict(self) -> dict[str, Any]:
        """Optimiser, scales of values and rewards, heads, strategy and minibatch luck; the agent's
        weights are the agent's own.
        """
        saved = {
            "optimizer": self.optimizer.state_dict(),
            "returns": self.returns.state_dict(),
            "reward_scales": self.returns.reward_scales.state_dict(),
            "heads": self.heads.state_dict(),
            "strategy": self.strategy.state_dict(),
            "strategy_kind": type(self.strategy).__name__,
            "generator": self.generator.get_state(),
            "updates": self.updates,
        }
        if self.extras.transfer is not None:
            saved["transfer"] = self.extras.transfer.state_dict()
        return saved

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; what an earlier trainer did not have starts anew."""
        if _shapes(saved.get("heads", {})) == _shapes(self.heads.state_dict()):
            self.optimizer.load_state_dict(saved["optimizer"])
            self.heads.load_state_dict(saved.get("heads", {}))
        else:  # other heads: the agent's own moments are kept
            moments = without_heads(saved["optimizer"], self.optimizer, self.agent)
            self.optimizer.load_state_dict(moments)
        self.returns.load_state_dict(saved["returns"])
        self.returns.reward_scales.load_state_dict(saved.get("reward_scales", {}))
        self.generator.set_state(saved["generator"])
        self.updates = saved.get("updates", 0)
        if saved.get("strategy_kind") == type(self.strategy).__name__:
            self.strategy.load_state_dict(saved["strategy"])
        if self.extras.transfer is not None and "transfer" in saved:
            self.extras.transfer.load_state_dict(saved["transfer"])


def _finetuning(learner: Learner) -> Strategy:
    del learner
    return Strategy()


def _shapes(heads: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in heads.items()}


def _state_norm(state: TensorDict) -> float:
    """Mean Frobenius norm over lifetimes of everything real the memory holds."""
    return float(state_numbers(state).norm(dim=1).mean())
