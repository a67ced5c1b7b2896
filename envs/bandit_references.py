"""Players that know they face a Bernoulli bandit: what a learned memory is measured against.

All play the same problems with the same reward tables. With S successes and F failures of an arm,
N = S + F, pull t = 1, 2, ...:

    greedy     (S + 1) / (N + 2)                      posterior mean under p ~ U(0, 1)
    Thompson   a draw from Beta(S + 1, F + 1)         Thompson (1933)
    UCB        S / N + sqrt(c ln t / N)               Auer et al. (2002), there c = 2
    Gittins    index of Beta(S + 1, F + 1)            Gittins (1979); see `gittins_indices`
    discounted Thompson: S and F shrink by `discount` each pull     Raj and Kalyani (2017)
    sliding-window UCB: S, F and t of the last `window` pulls       Garivier and Moulines (2011)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .bandit_families import BernoulliBandit, MovingBandit
from .gittins import gittins_indices
from .interface import Array
from .seeding import generator

Index = Callable[[Array, Array, int, np.random.Generator], Array]


@dataclass(frozen=True)
class Player:
    """Pulls the arm of the largest `index(successes, failures, t, rng)`, all `[L, k]`.

    What it counts is discounted by a factor per pull, or limited to the last `window` pulls.
    """

    index: Index
    discount: float = 1.0
    window: int | None = None


@dataclass(frozen=True)
class Problems:
    """L bandits: `means` `[2, L, k]` before and after pull `change` `[L]`, `uniforms` `[L, n]`."""

    means: Array
    change: Array
    uniforms: Array

    def means_at(self, pull: int) -> Array:
        """Success probabilities `[L, k]` of all arms at a pull, from 0."""
        moved = (pull >= self.change).astype(np.int64)
        return np.asarray(self.means[moved, np.arange(len(moved))])


@dataclass(frozen=True)
class Play:
    """Reward and pseudo-regret (sum of p* - p(a)) of every problem, `[L]`."""

    reward: Array
    regret: Array


def draw_problems(family: BernoulliBandit | MovingBandit, num: int, seed: int) -> Problems:
    """`num` problems of a family and their reward tables."""
    rng = generator(seed)
    tasks = [family.draw(rng) for _ in range(num)]
    means = np.array([[task.before for task in tasks], [task.after for task in tasks]])
    change = np.array([task.change for task in tasks])
    return Problems(means, change, rng.random((num, family.num_pulls)))


def play(player: Player, problems: Problems, seed: int) -> Play:
    """Let a player play; `seed` is for its own choices and ties."""
    rng = generator(seed)
    (num, num_pulls), num_arms = problems.uniforms.shape, problems.means.shape[2]
    rows = np.arange(num)
    counts = np.zeros((2, num, num_arms))  # failures, successes
    history: list[tuple[Array, Array]] = []
    reward, regret = np.zeros(num), np.zeros(num)
    for pull in range(num_pulls):
        time = pull + 1 if player.window is None else min(pull + 1, player.window)
        index = player.index(counts[1], counts[0], time, rng)
        arm = (index + 1e-9 * rng.random(index.shape)).argmax(1)
        means = problems.means_at(pull)
        success = (problems.uniforms[:, pull] < means[rows, arm]).astype(np.int64)
        counts *= player.discount
        counts[success, rows, arm] += 1
        if player.window is not None:
            history.append((success, arm))
            if pull >= player.window:
                old_success, old_arm = history[pull - player.window]
                counts[old_success, rows, old_arm] -= 1
        reward += success
        regret += means.max(1) - means[rows, arm]
    return Play(reward, regret)


def play_best_arm(problems: Problems) -> Play:
    """The oracle: it knows the means and when they change."""
    num, num_pulls = problems.uniforms.shape
    best = np.array([problems.means_at(pull).max(1) for pull in range(num_pulls)])
    reward = (best > problems.uniforms.T).sum(0).astype(np.float64)
    return Play(reward, np.zeros(num))


def players(family: BernoulliBandit | MovingBandit) -> dict[str, Player]:
    """The references of a family by name, from weak to strong on the stationary bandit.

    Discount, window and c of the two for a moving arm: the best of a coarse grid at n = 200.
    """
    table = gittins_indices(family.num_pulls)
    known = {
        "random": Player(_uniform),
        "thompson": Player(_thompson),
        "greedy": Player(_posterior_mean),
        "ucb c=0.1": Player(upper_confidence(0.1)),
        "gittins": Player(lambda s, f, t, rng: table[s.astype(int) + 1, f.astype(int) + 1]),
    }
    if isinstance(family, MovingBandit):
        known["discounted thompson 0.99"] = Player(_thompson, discount=0.99)
        known["sliding-window ucb c=0.2 w=100"] = Player(upper_confidence(0.2), window=100)
    return known


def reference_plays(family: BernoulliBandit | MovingBandit, num: int, seed: int) -> dict[str, Play]:
    """Every reference of a family on the same `num` problems, and the oracle."""
    problems = draw_problems(family, num, seed)
    plays = {name: play(player, problems, seed + 1) for name, player in players(family).items()}
    plays["best arm"] = play_best_arm(problems)
    return plays


def upper_confidence(scale: float) -> Index:
    """mean + sqrt(scale ln t / N); arms that were not pulled come first."""

    def index(successes: Array, failures: Array, time: int, rng: np.random.Generator) -> Array:
        del rng
        pulls = successes + failures
        known = np.maximum(pulls, 1.0)
        bound = successes / known + np.sqrt(scale * np.log(time) / known)
        return np.where(pulls > 0, bound, np.inf)

    return index


def _uniform(successes: Array, failures: Array, time: int, rng: np.random.Generator) -> Array:
    del failures, time
    return rng.random(successes.shape)


def _posterior_mean(
    successes: Array, failures: Array, time: int, rng: np.random.Generator
) -> Array:
    del time, rng
    return np.asarray((successes + 1.0) / (successes + failures + 2.0))


def _thompson(successes: Array, failures: Array, time: int, rng: np.random.Generator) -> Array:
    del time
    return rng.beta(successes + 1.0, failures + 1.0)
