"""Players that know they face a Bernoulli bandit, lived like an agent: Thompson, UCB, Gittins ...

    S, F of every arm, of all pulls since the last reset, discounted or windowed;  a = argmax index

The indices are those of `sojourn.envs.players`. What they count is the state that goes in and comes
out, as an agent's memory is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

from sojourn.envs import Array, Interface, Player
from sojourn.memory import where_reset

from .agent import Decision
from .random_policy import RandomPolicy

GRID = 2**24  # different draws that a float32 uniform has


class BanditPlayer:
    """`player` in a stream of bandits; forgets where its rollout resets, which is to be its tasks.

    Its own draws follow from `uniform`, so that equal luck gives equal play.
    """

    def __init__(self, player: Player, interface: Interface) -> None:
        self.player = player
        self._random = RandomPolicy(interface)
        self.actions, self.device = self._random.actions, self._random.device
        self._num_arms = interface.num_actions

    def init_state(self, batch: int) -> TensorDict:
        """No pull seen: `successes` and `failures` `[B, A]`, `pulls` `[B]`; the last `arms` and
        `rewards` `[B, W]` of a window, -1 where there was none.
        """
        window = self.player.window or 0
        return TensorDict(
            {
                "successes": torch.zeros(batch, self._num_arms, dtype=torch.float64),
                "failures": torch.zeros(batch, self._num_arms, dtype=torch.float64),
                "pulls": torch.zeros(batch, dtype=torch.int64),
                "arms": torch.full((batch, window), -1, dtype=torch.int64),
                "rewards": torch.zeros(batch, window, dtype=torch.float64),
            },
            batch_size=[batch],
        )

    def act(
        self,
        observation: Mapping[str, Tensor],
        state: TensorDict,
        reset: Tensor | None = None,
        uniform: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Decision:
        """The arm of the largest index; raises ValueError without `uniform`."""
        guess = self._random.act(observation, state, reset, uniform, mask)
        assert uniform is not None
        if reset is not None:
            state = where_reset(reset, self.init_state(len(state)), state)
        counted = self._count(state, observation["previous_action"], observation["previous_reward"])
        index = self._index(counted, uniform.flatten(1) if uniform.ndim > 1 else uniform[:, None])
        possible = observation["action_mask"].numpy()
        arm = torch.from_numpy(np.where(possible, index, -np.inf).argmax(1))
        return replace(guess, action=arm, state=counted)

    def _count(self, state: TensorDict, arm: Tensor, reward: Tensor) -> TensorDict:
        """The state after the pull before this one; rows that pulled nothing stay as they are."""
        pulled = arm < self._num_arms
        one_hot = torch.nn.functional.one_hot(arm, self._num_arms + 1)[:, :-1].double()
        won = reward.double()[:, None]
        shrink = self.player.discount ** pulled.double()[:, None]
        successes = shrink * state["successes"] + won * one_hot
        failures = shrink * state["failures"] + (1.0 - won) * one_hot
        arms, rewards = state["arms"], state["rewards"]
        if self.player.window is not None:
            old = torch.nn.functional.one_hot(arms[:, 0] + 1, self._num_arms + 1)[:, 1:].double()
            old = old * pulled[:, None]
            successes = successes - rewards[:, :1] * old
            failures = failures - (1.0 - rewards[:, :1]) * old
            row = pulled[:, None]
            arms = torch.where(row, torch.cat([arms[:, 1:], arm[:, None]], 1), arms)
            rewards = torch.where(row, torch.cat([rewards[:, 1:], won], 1), rewards)
        return TensorDict(
            {
                "successes": successes,
                "failures": failures,
                "pulls": state["pulls"] + pulled,
                "arms": arms,
                "rewards": rewards,
            },
            batch_size=state.batch_size,
        )

    def _index(self, state: TensorDict, uniform: Tensor) -> Array:
        """Indices `[B, A]`, ties broken by luck."""
        successes, failures = (state[name].numpy() for name in ("successes", "failures"))
        most = self.player.window or np.iinfo(np.int64).max
        times = np.minimum(state["pulls"].numpy() + 1, most)
        rows = []
        for row, luck in enumerate((uniform[:, 0].double() * GRID).long().tolist()):
            rng = np.random.default_rng(luck)
            counts = (successes[row : row + 1], failures[row : row + 1])
            found = self.player.index(*counts, int(times[row]), rng)
            rows.append(found + 1e-9 * rng.random(found.shape))
        return np.concatenate(rows)
