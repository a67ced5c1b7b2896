"""Players that know they face a random decision process: what a learned memory is measured against.

With n visits and reward sum R of a pair (s, a) and c_j moves from it to s_j:

    posterior    p ~ Dirichlet(1 + c),   r ~ N((1 + R) / (1 + n), 1 / (1 + n))
    greedy       plans with posterior means
    PSRL         plans with one draw from the posterior per episode     Osband et al. (2013)
    optimistic   UCRL2-like: plans with mean r + sqrt(reward_scale / max(1, n)) and the best p
                 within L1 distance sqrt(move_scale / max(1, n)) of the frequencies; Jaksch et
                 al. (2010), section 3.1, with the confidence widths as free constants

All plan by backward induction over the steps of an episode, at its start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .finite_model import backward_induction, best
from .interface import Array
from .seeding import generator
from .tabular_mdp import (
    REWARD_MEAN,
    REWARD_NOISE,
    TabularMDP,
    draw_processes,
    process_values,
    random_return,
)


@dataclass(frozen=True)
class Counts:
    """What L players saw: moves `[L, S, A, S]` and reward sums `[L, S, A]`."""

    moves: Array
    rewards: Array

    @property
    def visits(self) -> Array:
        """Of every pair, `[L, S, A]`."""
        return np.asarray(self.moves.sum(-1))


Planner = Callable[[Counts, int, np.random.Generator], Array]
"""(counts, horizon, rng) -> Q `[horizon, L, S, A]` that an episode is played by, greedily."""


def tabular_totals(family: TabularMDP, num_episodes: int, num: int, seed: int) -> dict[str, Array]:
    """Total reward of every reference over `num_episodes` episodes of `num` processes, `[num]`.

    `oracle` and `random` are exact expectations.
    """
    rng = generator(seed)
    chances, rewards = draw_processes(rng, num, family.num_states, family.num_actions)
    values = process_values(chances, rewards, family.horizon)
    totals = {
        "random": num_episodes * random_return(chances, rewards, family.horizon),
        "oracle": num_episodes * best(values[0][:, 0]),
    }
    for number, (name, planner) in enumerate(PLANNERS.items()):
        player = generator(seed, 1 + number)
        totals[name] = play_process(planner, chances, rewards, family.horizon, num_episodes, player)
    return totals


def play_process(
    planner: Planner,
    chances: Array,
    rewards: Array,
    horizon: int,
    num_episodes: int,
    rng: np.random.Generator,
) -> Array:
    """Total reward `[L]` of a planner that learns from what it sees."""
    rows = np.arange(len(rewards))
    cumulative = chances.cumsum(-1)
    counts = Counts(np.zeros(chances.shape), np.zeros(rewards.shape))
    total = np.zeros(len(rows))
    for _ in range(num_episodes):
        values = planner(counts, horizon, rng)
        state = np.zeros(len(rows), np.int64)
        for step in range(horizon):
            ties = 1e-9 * rng.random(values[step][rows, state].shape)
            pair = (rows, state, (values[step][rows, state] + ties).argmax(-1))
            reward = rng.normal(rewards[pair], REWARD_NOISE)
            state = (rng.random(len(rows))[:, None] >= cumulative[pair][:, :-1]).sum(-1)
            counts.moves[(*pair, state)] += 1
            counts.rewards[pair] += reward
            total += reward
    return total


def plan_greedily(counts: Counts, horizon: int, rng: np.random.Generator) -> Array:
    """Posterior means."""
    del rng
    moves = counts.moves + 1.0
    return process_values(moves / moves.sum(-1, keepdims=True), _mean_reward(counts), horizon)


def plan_by_posterior_sample(counts: Counts, horizon: int, rng: np.random.Generator) -> Array:
    """PSRL: one process drawn from the posterior."""
    chances = rng.standard_gamma(counts.moves + 1.0)
    chances /= chances.sum(-1, keepdims=True)
    rewards = rng.normal(_mean_reward(counts), 1.0 / np.sqrt(1.0 + counts.visits))
    return process_values(chances, rewards, horizon)


def plan_optimistically(reward_scale: float, move_scale: float) -> Planner:
    """UCRL2-like, with the two scales of its confidence widths."""

    def planner(counts: Counts, horizon: int, rng: np.random.Generator) -> Array:
        del rng
        visits = np.maximum(counts.visits, 1.0)
        moves = np.where(counts.visits[..., None] > 0, counts.moves, 1.0)
        frequencies = moves / moves.sum(-1, keepdims=True)
        radius = np.sqrt(move_scale / visits)
        rewards = _mean_reward(counts) + np.sqrt(reward_scale / visits)
        return backward_induction(
            rewards, lambda after: _most_hopeful(frequencies, radius, after), horizon, best
        )

    return planner


PLANNERS: dict[str, Planner] = {
    "greedy": plan_greedily,
    "psrl": plan_by_posterior_sample,
    "optimistic": plan_optimistically(reward_scale=0.3, move_scale=1.0),
}


def _mean_reward(counts: Counts) -> Array:
    return (REWARD_MEAN + counts.rewards) / (1.0 + counts.visits)


def _most_hopeful(frequencies: Array, radius: Array, after: Array) -> Array:
    """max p . after over the distributions within L1 distance `radius` of the frequencies.

    Half the radius moves to the best successor, from the worst ones first.
    """
    order = after.argsort(-1)
    values = np.take_along_axis(after, order, -1)[:, None, None]
    chances = np.take_along_axis(frequencies, order[:, None, None], -1)
    moved = np.minimum(radius / 2, 1.0 - chances[..., -1])[..., None]
    sums = chances.cumsum(-1)
    sums[..., -1:] += moved
    kept = np.diff(np.maximum(sums - moved, 0.0), axis=-1, prepend=0.0)
    return np.asarray((kept * values).sum(-1))
