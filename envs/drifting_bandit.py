"""Bandits whose arms never stand still: every task is the next point of a smooth path.

    p_a(k) = (1 + sin(2 pi (k / period + phase_a))) / 2,   phase_a ~ U(0, 1) per lifetime

At any k the arms are independent with the arcsine law, P(p <= x) = (2 / pi) asin sqrt x. Source:
slowly varying rewards, Besbes, Gur and Zeevi (2014), arXiv:1405.3316, with a law of its own.
"""

from __future__ import annotations

import numpy as np

from .bandit import BanditTask
from .bandit_families import bandit_interface, check_size
from .bandit_simulator import BanditSimulator
from .interface import Interface
from .schedule_mixed import DriftingFamily
from .simulator import Simulator
from .task import Reference


class DriftingBandit(DriftingFamily):
    """`num_arms` arms, pulled `num_pulls` times per episode; `period` episodes until all return.

    Pooled rates, exact: random 1/2, best arm 1 - integral of P(p <= x)^num_arms over x.
    """

    def __init__(self, num_arms: int = 5, num_pulls: int = 20, period: float = 50.0) -> None:
        check_size(num_arms, num_pulls)
        if not period > 0.0:
            raise ValueError(f"period: expected more than 0 episodes, got {period}")
        self.name = f"drifting-bandit-{num_arms}x{num_pulls}"
        self.num_arms = num_arms
        self.num_pulls = num_pulls
        self.period = period
        self.reference = Reference(0.5, _best_arm(num_arms), "analytic", reward_range=1.0)

    @property
    def interface(self) -> Interface:
        """One constant channel and an action per arm."""
        return bandit_interface(self.num_arms)

    def draw_at(self, rng: np.random.Generator, time: int) -> BanditTask:
        """The arms in episode `time` of a path."""
        angle = 2.0 * np.pi * (time / self.period + rng.random(self.num_arms))
        means = (1.0 + np.sin(angle)) / 2.0
        return BanditTask(self.name, self.num_pulls, means, means, self.num_pulls, self.reference)

    def simulator_type(self) -> type[Simulator] | None:
        """Bandits of any size play in one vectorised simulator."""
        return BanditSimulator


def _best_arm(num_arms: int) -> float:
    """Mean of the best of `num_arms` arcsine arms, with x = (1 - cos pi q) / 2 so that P = q.

    E = 1 - integral of q^n (pi / 2) sin(pi q) over q in (0, 1), by the midpoint rule.
    """
    q = (np.arange(20_000) + 0.5) / 20_000
    return float(1.0 - (q**num_arms * np.sin(np.pi * q)).mean() * np.pi / 2.0)
