"""Decision processes of few states as tables, and their values at every step of the horizon.

    V_t(s) = max_a Q_t(s, a),   Q_t(s, a) = sum_j p_j(s, a) (r_j(s, a) + V_{t+1}(s_j)),   V_H = 0

with V = 0 in final states; the random policy's values take the mean over a in place of the maximum.
Source: backward induction, Puterman (1994), Markov Decision Processes, chapter 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .interface import Array

ValueOf = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class FiniteModel:
    """S states, A actions, at most N successors of each pair; an episode lasts `horizon` steps.

    `successors` int64 `[S, A, N]` are reached with probability `chances` `[S, A, N]` and then give
    `rewards` `[S, A, N]`, to which normal noise of standard deviation `reward_noise` is added;
    `shown` int64 `[S]` is what the agent sees of a state. An episode begins in one of `starts`,
    uniformly, and ends early on entering a state that is `final` bool `[S]`. Raises ValueError for
    tables that do not fit together.
    """

    horizon: int
    successors: Array
    chances: Array
    rewards: Array
    shown: Array
    starts: Array
    final: Array
    reward_noise: float = 0.0

    def __post_init__(self) -> None:
        if self.horizon < 1:
            raise ValueError(f"horizon: expected at least 1, got {self.horizon}")
        expected = self.successors.shape
        for name in ("chances", "rewards"):
            if getattr(self, name).shape != expected:
                raise ValueError(f"{name}: expected {expected}, got {getattr(self, name).shape}")
        if np.abs(self.chances.sum(2) - 1.0).max() > 1e-9:
            raise ValueError("chances: expected to sum to 1 over the successors of every pair")

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.successors.shape[1])

    @property
    def num_shown(self) -> int:
        """How many different observations there are."""
        return int(self.shown.max()) + 1

    @property
    def is_deterministic(self) -> bool:
        """Whether equal actions from one start always give equal returns."""
        return self.successors.shape[2] == 1 and self.reward_noise == 0.0

    def with_horizon(self, horizon: int) -> FiniteModel:
        """The same process with episodes of another length."""
        return replace(self, horizon=horizon)

    def mean_rewards(self) -> Array:
        """r(s, a) `[S, A]`: what an action gives on average, whatever comes of it."""
        return np.asarray((self.chances * self.rewards).sum(2))

    def cumulative(self) -> Array:
        """Sums of `chances` up to each successor `[S, A, N]`; the last is exactly 1."""
        sums = self.chances.cumsum(2)
        sums[..., -1] = 1.0
        return np.asarray(sums)

    def action_values(self) -> Array:
        """Q under optimal play, `[horizon, S, A]`."""
        return backward_induction(self.mean_rewards(), self._expected, self.horizon, best)

    def random_values(self) -> Array:
        """Value of uniformly random play from the first step on, `[S]`."""
        values = backward_induction(self.mean_rewards(), self._expected, self.horizon, average)
        return average(values[0])

    def _expected(self, after: Array) -> Array:
        """Mean of `after` `[S]` over the successors of every pair, `[S, A]`; 0 in final states."""
        living = np.where(self.final, 0.0, after)[self.successors]
        return np.asarray(np.einsum("saj,saj->sa", self.chances, living))


def backward_induction(
    rewards: Array, expected: Callable[[Array], Array], horizon: int, value_of: ValueOf
) -> Array:
    """Q `[horizon, ..., S, A]` for mean rewards `[..., S, A]`.

    `expected` maps values `[..., S]` of the next step to their means over the successors of every
    pair, `value_of` action values to those of the states.
    """
    values = np.empty((horizon, *rewards.shape))
    values[-1] = rewards
    for step in range(horizon - 2, -1, -1):
        values[step] = rewards + expected(value_of(values[step + 1]))
    return values


def best(action_values: Array) -> Array:
    """The value of the best action."""
    return np.asarray(action_values.max(-1))


def average(action_values: Array) -> Array:
    """The value of a uniformly random action."""
    return np.asarray(action_values.mean(-1))


def deterministic(successors: Array) -> tuple[Array, Array]:
    """`successors` and `chances` of a model whose pairs each have one successor, from `[S, A]`."""
    return successors[..., None], np.ones((*successors.shape, 1))
