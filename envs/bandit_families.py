"""Two laws of Bernoulli bandits: arms that stay as they are, and a best arm that moves once.

The first is the problem of Duan et al., RL^2 (2016), section 3.1; the second follows the
non-stationary bandits of Garivier and Moulines (2011), with a law of its own, stated below.
"""

from __future__ import annotations

import numpy as np

from .bandit import BanditTask
from .bandit_simulator import BanditSimulator
from .interface import Channel, Interface
from .simulator import Simulator
from .task import Family, Reference

PULL = Channel("discrete", (), 1)


class BernoulliBandit(Family):
    """`num_arms` arms with p ~ U(0, 1), pulled `num_pulls` times.

    Pooled rates, exact: random 1/2, best arm k / (k + 1).
    """

    def __init__(self, num_arms: int = 5, num_pulls: int = 100) -> None:
        check_size(num_arms, num_pulls)
        self.name = f"bandit-{num_arms}x{num_pulls}"
        self.num_arms = num_arms
        self.num_pulls = num_pulls
        ceiling = num_arms / (num_arms + 1)
        self.reference = Reference(0.5, ceiling, "analytic", reward_range=1.0)

    @property
    def interface(self) -> Interface:
        """One constant channel and an action per arm."""
        return bandit_interface(self.num_arms)

    def draw(self, rng: np.random.Generator) -> BanditTask:
        """Arms for a task."""
        means = rng.random(self.num_arms)
        return BanditTask(self.name, self.num_pulls, means, means, self.num_pulls, self.reference)

    def simulator_type(self) -> type[Simulator] | None:
        """Bandits of any size play in one vectorised simulator."""
        return BanditSimulator


class MovingBandit(Family):
    """One arm pays `best`, the others U(0, `others`); once, the best one changes places.

    The change comes at a uniform pull of the middle half, n/4 <= t < 3n/4: the best arm and a
    uniformly drawn other exchange their means. Pooled rates, exact: random
    (best + (k - 1) others / 2) / k, best arm `best`.
    """

    def __init__(
        self, num_arms: int = 10, num_pulls: int = 200, best: float = 0.9, others: float = 0.5
    ) -> None:
        check_size(num_arms, num_pulls)
        if not 0.0 <= others < best <= 1.0:
            raise ValueError(f"arms: expected 0 <= others < best <= 1, got {others} and {best}")
        self.name = f"moving-bandit-{num_arms}x{num_pulls}"
        self.num_arms = num_arms
        self.num_pulls = num_pulls
        self.best = best
        self.others = others
        floor = (best + (num_arms - 1) * others / 2) / num_arms
        self.reference = Reference(floor, best, "analytic", reward_range=1.0)

    @property
    def interface(self) -> Interface:
        """One constant channel and an action per arm."""
        return bandit_interface(self.num_arms)

    def draw(self, rng: np.random.Generator) -> BanditTask:
        """Arms, the pull at which the best one moves, and where to."""
        before = self.others * rng.random(self.num_arms)
        old, new = rng.choice(self.num_arms, size=2, replace=False)
        before[old] = self.best
        after = before.copy()
        after[[old, new]] = before[[new, old]]
        change = int(rng.integers(self.num_pulls // 4, 3 * self.num_pulls // 4))
        return BanditTask(self.name, self.num_pulls, before, after, change, self.reference)

    def simulator_type(self) -> type[Simulator] | None:
        """Bandits of any size play in one vectorised simulator."""
        return BanditSimulator


def bandit_interface(num_arms: int) -> Interface:
    """One constant channel and an action per arm; described by what `BanditTask` hides."""
    return Interface({"discrete": PULL}, num_arms, descriptor_width=2 * num_arms + 1)


def check_size(num_arms: int, num_pulls: int) -> None:
    """Raise ValueError, naming the argument, for a bandit that is too small."""
    if num_arms < 2:
        raise ValueError(f"num_arms: expected at least 2, got {num_arms}")
    if num_pulls < 4:
        raise ValueError(f"num_pulls: expected at least 4, got {num_pulls}")
