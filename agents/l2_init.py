"""L2 towards the initial parameters: plasticity kept by staying near where learning was easy.

    L = L_ppo + strength sum_i (theta_i - theta0_i)^2

Task ends are not needed. Source: Kumar, Marklund and Van Roy 2023, arXiv 2308.11958 (Regenerative
Regularization).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from .strategy import Learner, Strategy, copies, quadratic


class L2Init(Strategy):
    """Holds what the parameters of the agent were when the trainer was made.

    Raises ValueError for a negative strength.
    """

    def __init__(self, learner: Learner, strength: float = 1e-3) -> None:
        if not strength >= 0.0:
            raise ValueError(f"strategy.strength: expected a number from 0 on, got {strength}")
        self.strength = strength
        self.parameters = dict(learner.agent.named_parameters())
        self.initial = copies(self.parameters)

    def losses(self, progress: float) -> dict[str, Tensor]:
        """The penalty."""
        del progress
        return {"l2_init": self.strength * quadratic(self.parameters, self.initial)}

    def state_dict(self) -> dict[str, Any]:
        return {"initial": self.initial}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        self.initial = {name: saved["initial"][name].to(p) for name, p in self.parameters.items()}
