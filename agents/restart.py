"""The reset twin of finetuning: at every task end all that was learned is thrown away.

    theta <- theta0,   no moments in the optimiser, no scales, memories anew

What continuing costs or brings is the difference to this twin under one seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from .rollout import Rollout
from .strategy import Learner, Strategy
from .task_clock import TaskClock, When
from .trajectory import Trajectory


class Restart(Strategy):
    """Begins anew `at` task ends (privileged) or every so many updates, after the update on the
    slice in which the task ended: from the parameters that all that learns had at first.

    Steps that the slice already has of the next task are lived and learned from by the old weights.
    """

    def __init__(self, learner: Learner, at: When) -> None:
        self.learner, self.clock = learner, TaskClock(at)
        groups = learner.optimizer.param_groups
        self.parameters = [parameter for group in groups for parameter in group["params"]]
        self.initial = [parameter.detach().clone() for parameter in self.parameters]

    @torch.no_grad()
    def after(self, rollout: Rollout, trajectory: Trajectory) -> None:
        """Begin anew where it is time."""
        if not self.clock.strikes(trajectory):
            return
        for parameter, value in zip(self.parameters, self.initial, strict=True):
            parameter.copy_(value)
        self.learner.optimizer.state.clear()
        self.learner.returns.restart()
        rollout.pending_reset = np.ones_like(rollout.pending_reset)

    def state_dict(self) -> dict[str, Any]:
        return {"initial": self.initial, "clock": self.clock.state_dict()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        pairs = zip(saved["initial"], self.parameters, strict=True)
        self.initial = [value.to(parameter) for value, parameter in pairs]
        self.clock.load_state_dict(saved["clock"])
