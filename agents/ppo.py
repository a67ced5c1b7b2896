"""The clipped surrogate loss, by TorchRL, on the outcome of one pass through the memory."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import NonTensorData, TensorDict
from tensordict.nn import TensorDictModuleBase
from torch import Tensor, nn
from torch.distributions import Distribution
from torchrl.objectives import ClipPPOLoss

from .actions import Actions
from .schedules import Schedule, as_schedule


class _ReadPolicy(TensorDictModuleBase):  # type: ignore[misc]
    """Presents outputs computed once by the agent's unroll as TorchRL's actor."""

    in_keys = ("outputs", "actions")
    out_keys = ("action",)

    def get_dist(self, steps: TensorDict) -> Distribution:
        actions: Actions = steps["actions"]
        return actions.distribution(steps["outputs"])


class _ReadValue(TensorDictModuleBase):  # type: ignore[misc]
    """Presents values computed once by the agent's unroll as TorchRL's critic."""

    in_keys = ("state_value",)
    out_keys = ("state_value",)

    def forward(self, steps: TensorDict) -> TensorDict:
        return steps


class PPOLoss(nn.Module):
    """Clipped policy loss + `value_coefficient` x squared value error - `entropy` x entropy."""

    def __init__(
        self,
        clip: float = 0.2,
        value_coefficient: float = 0.5,
        entropy: float | Schedule = 0.01,
    ) -> None:
        super().__init__()
        if not 0.0 < clip < 1.0:
            raise ValueError(f"loss.clip: expected a number in (0, 1), got {clip}")
        self.value_coefficient, self.entropy = value_coefficient, as_schedule(entropy)
        self._loss = ClipPPOLoss(
            _ReadPolicy(),
            _ReadValue(),
            clip_epsilon=clip,
            entropy_coeff=1.0,
            critic_coeff=1.0,
            loss_critic_type="l2",
            log_explained_variance=False,
            functional=False,
        )
        self._loss.set_keys(sample_log_prob="log_prob")

    def forward(
        self, outputs: Tensor, values: Tensor, steps: TensorDict, progress: float, actions: Actions
    ) -> dict[str, Tensor]:
        """Losses of a minibatch `[b, T]`; `total` is the one to descend, the others are for the
        log. `actions` reads the policy's `outputs`.
        """
        inputs: dict[str, Any] = {
            "outputs": outputs,
            "actions": NonTensorData(actions),
            "action": steps["action"],
            "log_prob": steps["log_prob"],
            "state_value": values.unsqueeze(-1),
            "advantage": steps["advantage"].unsqueeze(-1),
            "value_target": steps["value_target"].unsqueeze(-1),
        }
        out = self._loss(TensorDict(inputs, batch_size=outputs.shape[:2]))
        total = (
            out["loss_objective"]
            + self.value_coefficient * out["loss_critic"]
            + self.entropy(progress) * out["loss_entropy"]
        )
        return {
            "total": total,
            "policy_loss": out["loss_objective"],
            "value_loss": out["loss_critic"],
            "entropy": out["entropy"],
            "approx_kl": out["kl_approx"],
            "clipfrac": out["clip_fraction"],
            "ratio_error": ratio_error(actions, outputs, steps),
        }


@torch.no_grad()
def ratio_error(actions: Actions, outputs: Tensor, steps: TensorDict) -> Tensor:
    """Largest |pi_new / pi_acted - 1| over the minibatch."""
    ratio: Tensor = (actions.log_prob(outputs, steps["action"]) - steps["log_prob"]).exp()
    return (ratio - 1.0).abs().max()
