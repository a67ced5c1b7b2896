"""The uniform random policy: the floor of every task, lived like an agent.

p(a) = 1 / n over the n options that the task has; reals are uniform over [-1, 1].
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from sojourn.envs import Interface

from .actions import actions_of
from .agent import Decision


class RandomPolicy:
    """Remembers nothing and learns nothing; needs `uniform`, for it has no most likely action."""

    def __init__(self, interface: Interface) -> None:
        self.actions = actions_of(interface)
        self.device = torch.device("cpu")
        self._num_reals = interface.num_reals

    def init_state(self, batch: int) -> TensorDict:
        """A state without leaves."""
        return TensorDict({}, batch_size=[batch])

    def act(
        self,
        observation: Mapping[str, Tensor],
        state: TensorDict,
        reset: Tensor | None = None,
        uniform: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Decision:
        """Actions from `uniform` `[B, *actions.luck_shape]`; raises ValueError without it."""
        del reset, mask
        if uniform is None:
            raise ValueError("uniform: a random policy acts by luck alone, got None")
        possible = observation["action_mask"]
        zeros = uniform.new_zeros(len(uniform), self.actions.num_outputs)
        outputs = self.actions.mask(zeros, possible)
        action = self.actions.sample(outputs, uniform)
        if self._num_reals:
            reals = 2.0 * uniform[:, -self._num_reals :] - 1.0
            reals = torch.where(possible[:, -self._num_reals :], reals, 0.0)
            action = torch.cat([action[:, : -self._num_reals], reals], -1)
        nothing = uniform.new_zeros(len(uniform))
        return Decision(action, nothing, nothing, state, nothing.unsqueeze(-1))
