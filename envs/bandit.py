"""Bernoulli bandits, stationary or with a best arm that moves once, unseen.

    reward_t ~ Bernoulli(p_t(a_t)),  p_t = `before` while t < `change`, then `after`;  n pulls

An episode is the n pulls and ends `terminated`: nothing follows the last pull. The observation is
one constant. Source: Duan et al., RL^2 (2016), section 3.1; the moving arm is the non-stationary
bandit of Garivier and Moulines (2011), with our own fixed law.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces

from .interface import Array
from .task import Env, InstanceRule, Reference, Task, Unit


class BanditTask(Task):
    """Arms with fixed means `before` `[k]`, which become `after` `[k]` at pull `change`.

    Scored by reward rate; every episode draws its rewards anew from its own seed.
    """

    unit: Unit = "rate"
    instance: InstanceRule = "resampled"

    def __init__(
        self,
        name: str,
        num_pulls: int,
        before: Array,
        after: Array,
        change: int,
        reference: Reference,
    ) -> None:
        self.name = name
        self.num_pulls = num_pulls
        self.before = before
        self.after = after
        self.change = change
        self.reference = reference

    @property
    def env_key(self) -> Hashable:
        """Bandits of one size share an environment."""
        return ("bandit", len(self.before), self.num_pulls)

    def make_env(self) -> Env:
        """A bandit without arms' means: `configure` sets them."""
        return BanditEnv(len(self.before), self.num_pulls)

    def configure(self, env: Env) -> None:
        """Set the means of the arms."""
        bandit = env.unwrapped
        if not isinstance(bandit, BanditEnv):
            raise ValueError(f"{self.name}: expected a BanditEnv, got {env}")
        bandit.before, bandit.after, bandit.change = self.before, self.after, self.change

    def descriptor(self) -> Sequence[float]:
        """The means before and after, and the share of the pulls at which they change."""
        return (*self.before, *self.after, self.change / self.num_pulls)

    def optimal_return(self, env: Env | None = None) -> float:
        """Expected reward of the n pulls of the best arm, exact."""
        del env
        return self._sum(float(self.before.max()), float(self.after.max()))

    def floor_return(self, env: Env | None = None) -> float:
        """Expected reward of n uniformly random pulls, exact."""
        del env
        return self._sum(float(self.before.mean()), float(self.after.mean()))

    def _sum(self, before: float, after: float) -> float:
        return self.change * before + (self.num_pulls - self.change) * after


class BanditEnv(gymnasium.Env[np.int64, np.int64]):
    """One bandit as a step environment; rewards of an episode follow from `reset(seed=...)`.

    Pull t succeeds where u_t < p_t(a_t), with u_t drawn in advance: what other arms would have
    given is defined too.
    """

    def __init__(self, num_arms: int, num_pulls: int) -> None:
        self.observation_space = spaces.Discrete(1)
        self.action_space = spaces.Discrete(num_arms)
        self.num_pulls = num_pulls
        self.before = self.after = np.full(num_arms, 0.5)
        self.change = num_pulls
        self._pull = 0
        self._uniforms = np.zeros(num_pulls)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Draw the rewards of an episode."""
        super().reset(seed=seed, options=options)
        self._pull = 0
        self._uniforms = self.np_random.random(self.num_pulls)
        return np.int64(0), {}

    def step(self, action: np.int64) -> tuple[np.int64, SupportsFloat, bool, bool, dict[str, Any]]:
        """Pull an arm; the expected reward is in the info."""
        means = self.before if self._pull < self.change else self.after
        mean = float(means[action])
        reward = float(self._uniforms[self._pull] < mean)
        self._pull += 1
        return np.int64(0), reward, self._pull == self.num_pulls, False, {"expected_reward": mean}
