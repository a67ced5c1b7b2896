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
from .lifetime_returns import LifetimeReturns
from .ppo import PPOLoss
from .schedules import Schedule, as_schedule
from .trajectory import Trajectory

RATIO_ALARM = 1e-3  # acting and training must agree before the first step of the optimiser


class MetaTrainer:
    """Updates the outer parameters of `agent`; `update` is one outer iteration.

    `learning_rate` may be a schedule over progress; minibatches split lifetimes, never time.
    """

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
    ) -> None:
        for name, count in (("num_epochs", num_epochs), ("num_minibatches", num_minibatches)):
            if count < 1:
                raise ValueError(f"meta-trainer: `{name}` must be at least 1, got {count}")
        self.agent = agent
        self.returns, self.loss = returns.to(agent.device), loss.to(agent.device)
        self.learning_rate = as_schedule(learning_rate)
        self.num_epochs, self.num_minibatches = num_epochs, num_minibatches
        self.max_grad_norm = max_grad_norm
        self.optimizer = torch.optim.Adam(agent.parameters(), self.learning_rate(0.0), eps=1e-5)
        self.generator = torch.Generator().manual_seed(seed)

    def update(self, trajectory: Trajectory, progress: float) -> dict[str, float]:
        """One outer iteration on a slice; `progress` in [0, 1] drives the schedules.

        Returns metrics by name. Raises FloatingPointError, naming the parameter, on a non-finite
        gradient and ValueError for a trajectory whose values were taken for another `credit`.
        """
        if trajectory.credit != self.returns.credit:
            raise ValueError(
                f"credit: the rollout cuts at {trajectory.credit!r}, the returns at "
                f"{self.returns.credit!r}; give both the same"
            )
        learning_rate = self.learning_rate(progress)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        steps = self.returns.prepare(trajectory.steps, progress)
        num_lifetimes = steps.batch_size[0]
        num_minibatches = min(self.num_minibatches, num_lifetimes)
        sums: dict[str, Tensor] = {}
        ratio_error: float | None = None
        for _ in range(self.num_epochs):
            order = torch.randperm(num_lifetimes, generator=self.generator).to(self.agent.device)
            for rows in order.tensor_split(num_minibatches):
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

    def _minibatch(
        self, steps: TensorDict, state: TensorDict, progress: float
    ) -> dict[str, Tensor]:
        logits, values, _ = self.agent.unroll(steps["observation"], state, steps["reset"])
        losses: dict[str, Tensor] = self.loss(logits, values, steps, progress)
        self.optimizer.zero_grad(set_to_none=True)
        losses["total"].backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.agent.parameters(), self.max_grad_norm)
        if not torch.isfinite(norm):
            raise FloatingPointError(self._where_not_finite())
        self.optimizer.step()
        return {name: loss.detach() for name, loss in losses.items()} | {"grad_norm": norm}

    def _where_not_finite(self) -> str:
        names = (
            name
            for name, parameter in self.agent.named_parameters()
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all()
        )
        return (
            f"non-finite gradient in {next(names, 'the gradient norm')}; the update was not applied"
        )

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
        """Optimiser, value scale and minibatch luck; the agent's weights are the agent's own."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "returns": self.returns.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(saved["optimizer"])
        self.returns.load_state_dict(saved["returns"])
        self.generator.set_state(saved["generator"])


def _state_norm(state: TensorDict) -> float:
    """Mean Frobenius norm over lifetimes of everything real the memory holds."""
    leaves = [leaf.flatten(1) for leaf in state.values(True, True) if leaf.is_floating_point()]
    if not leaves:
        return 0.0
    return float(torch.cat(leaves, dim=1).norm(dim=1).mean())
