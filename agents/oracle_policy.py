"""The oracle as an actor: best play by knowledge that no agent has, lived like an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from tensordict import TensorDict
from torch import Tensor

from sojourn.envs import Crowd, Oracle

from .agent import Decision
from .moment import Moment
from .random_policy import RandomPolicy


class OraclePolicy:
    """Plays in one crowd, whose true positions and tasks it knows; remembers and learns nothing.
    Call `close` when done.

    In an episode of which nobody knows the best play it acts at random, by `uniform`.
    """

    def __init__(self, crowd: Crowd) -> None:
        self._crowd, self._oracle = crowd, Oracle(crowd.stream, crowd.num_lifetimes)
        self._random = RandomPolicy(crowd.interface)
        self.actions, self.device = self._random.actions, self._random.device

    def init_state(self, batch: int) -> TensorDict:
        """A state without leaves."""
        return self._random.init_state(batch)

    def act(
        self,
        observation: Mapping[str, Tensor],
        state: TensorDict,
        reset: Tensor | None = None,
        uniform: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Decision:
        """The best action of every row; raises ValueError without `uniform`."""
        guess = self._random.act(observation, state, reset, uniform, mask)
        now = Moment.of(self._crowd)
        best = self._oracle.actions(now.lifetime, now.segment, now.episode, now.starts_episode)
        found = torch.from_numpy(best)
        known = found >= 0 if found.dim() == 1 else found[:, :1] >= 0
        return replace(guess, action=torch.where(known, found, guess.action))

    def close(self) -> None:
        """Close the environments that the oracle steps."""
        self._oracle.close()
