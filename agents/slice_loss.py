"""The loss of a slice as a function of the agent's parameters alone, to be asked again later."""

from __future__ import annotations

import copy

from torch import Tensor

from sojourn.memory import eager

from .interference import ScalarLoss
from .meta_trainer import MetaTrainer
from .trajectory import Trajectory
from .windows import read_in_windows


def slice_loss(trainer: MetaTrainer, trajectory: Trajectory, progress: float) -> ScalarLoss:
    """The PPO loss of `trajectory` under the agent's parameters at the time of asking.

    Advantages and value targets are those of now: what is compared later is the same loss. Neither
    trainer nor agent is changed. Without auxiliary losses. Raises ValueError as `update` does for a
    trajectory of another `credit`.
    """
    trainer.returns.check_credit(trajectory.credit)
    agent, window = trainer.agent, trainer.extras.gradient_window
    steps = copy.deepcopy(trainer.returns).prepare(trajectory.steps, progress)
    observation = steps["observation"]

    def loss() -> Tensor:
        with eager(agent.memory):  # compiled code has no second derivative
            reading = read_in_windows(agent, observation, trajectory.state, steps["reset"], window)
        outputs = agent.policy(reading.features, observation["action_mask"])
        values = trainer.learner.values(reading.features, steps)
        total: Tensor = trainer.loss(outputs, values, steps, progress, agent.actions)["total"]
        return total

    return loss
