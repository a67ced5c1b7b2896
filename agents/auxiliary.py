"""Self-supervised signals for the memory: what is seen next, and what it pays.

    p_t = head(y_t, a_t)
    latent       mean |p_t - sg(x_{t+1})|^2,  x the encoder's token
    observation  the next observation, channel by channel
    reward       (p_t - symlog r_t)^2

The inner objective of a memory need not be key-to-value reconstruction alone. A token is a target
without gradient (sg), so that the encoder cannot make it easy. Nothing is predicted across the end
of a lifetime or a reset of the memory: the next episode and the next task are. Sources: Schwarzer
et al. 2021 (SPR, arXiv 2007.05929); Jaderberg et al. 2017 (UNREAL, arXiv 1611.05397).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from tensordict import TensorDict
from torch import Tensor, nn
from torch.nn import functional

from .actions import Actions, SeveralParts
from .agent import Agent, Reading
from .auxiliary_targets import ObservationTarget
from .channel_encoders import symlog


class Auxiliary(nn.Module):
    """Heads on the features of `agent`, made only where their weight is above 0.

    Weights multiply the losses in the total that PPO descends. Raises ValueError where all are 0.
    """

    def __init__(
        self,
        agent: Agent,
        latent: float = 0.0,
        observation: float = 0.0,
        reward: float = 0.0,
    ) -> None:
        super().__init__()
        self.weights = {"latent": latent, "observation": observation, "reward": reward}
        if min(self.weights.values()) < 0.0 or not any(self.weights.values()):
            given = ", ".join(f"{name}={weight:g}" for name, weight in self.weights.items())
            raise ValueError(
                f"auxiliary: expected latent, observation or reward to weigh above 0, got {given}"
            )
        self.actions = agent.actions
        width = agent.memory.width
        self.target = ObservationTarget(agent.interface) if observation else None
        sizes = {
            "latent": width,
            "observation": 0 if self.target is None else self.target.num_outputs,
            "reward": 1,
        }
        inputs = width + action_width(agent.actions)
        self.heads = nn.ModuleDict(
            {
                name: nn.Sequential(
                    nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, sizes[name])
                )
                for name, weight in self.weights.items()
                if weight
            }
        )
        self.to(agent.encoder.mix.weight)

    def forward(self, reading: Reading, steps: TensorDict) -> dict[str, Tensor]:
        """Losses by name and their weighted sum `total` on a minibatch `[b, T]`."""
        taken = action_features(self.actions, steps["action"]).to(reading.features.dtype)
        inputs = torch.cat([reading.features, taken], -1)
        predicted = {name: head(inputs) for name, head in self.heads.items()}
        losses = {}
        follows = ~(steps["lifetime_end"][:, :-1] | steps["reset"][:, 1:])
        if "latent" in predicted:
            error = predicted["latent"][:, :-1] - reading.tokens[:, 1:].detach()
            losses["latent"] = mean_where(error.square().mean(-1), follows)
        if self.target is not None:
            observation: Mapping[str, Tensor] = steps["observation"]
            error = self.target.loss(predicted["observation"][:, :-1], observation)
            losses["observation"] = mean_where(error, follows)
        if "reward" in predicted:
            error = predicted["reward"].squeeze(-1) - symlog(steps["reward"])
            losses["reward"] = error.square().mean()
        total = sum(
            (self.weights[name] * loss for name, loss in losses.items()),
            start=reading.features.new_zeros(()),
        )
        return losses | {"total": total}


def mean_where(values: Tensor, chosen: Tensor) -> Tensor:
    """Mean of `values` where `chosen`; 0 where nothing is."""
    return torch.where(chosen, values, 0.0).sum() / chosen.sum().clamp(min=1)


def action_width(actions: Actions) -> int:
    """Length of `action_features`."""
    if isinstance(actions, SeveralParts):
        return sum(actions.choices) + actions.num_reals
    return actions.num_outputs


def action_features(actions: Actions, action: Tensor) -> Tensor:
    """Actions `[B, T]` or `[B, T, num_parts]` as numbers: choices one-hot, reals as they are."""
    if not isinstance(actions, SeveralParts):
        return functional.one_hot(action, actions.num_outputs).float()
    chosen = action[..., : len(actions.choices)].long().unbind(-1)
    parts = zip(chosen, actions.choices, strict=True)
    one_hot = [functional.one_hot(part, size).to(action.dtype) for part, size in parts]
    return torch.cat([*one_hot, action[..., len(actions.choices) :]], -1)
