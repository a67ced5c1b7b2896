"""Permanent and transient value functions on a grid whose goals exchange their rewards.

    python results/permanent_transient.py [--seeds 30]

    Q = P + T;   T += a_T (r + gamma max Q' - Q)        within a task, T = 0 at its start
                 P += a_P (P_then + T - P)              at its end, over all pairs that were visited

with P_then the permanent value when the pair was visited. Plain Q-learning is the same with P = 0
and T kept; its reset twin forgets T too. All play epsilon-greedily and are scored by the discounted
return of an episode. Source: Anand and Precup 2023, arXiv:2312.11669.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sojourn.envs import ExchangingGoals, FiniteEnv
from sojourn.envs.interface import Array

DISCOUNT, EPSILON = 0.95, 0.1
NUM_PHASES, PHASE_EPISODES, FIRST = 6, 50, 10
NO_LIMIT = 100_000


@dataclass(frozen=True)
class Learner:
    """What happens at a task switch, and the step sizes."""

    at_switch: Literal["keep", "reset", "consolidate"]
    step_size: float
    permanent_step_size: float = 0.0


LEARNERS = {
    "PT": Learner("consolidate", 0.5, 0.01),
    "Q": Learner("keep", 0.5),
    "reset-Q": Learner("reset", 0.1),
}


def live(learner: Learner, envs: list[FiniteEnv], seed: int) -> Array:
    """Discounted return of every episode `[NUM_PHASES, PHASE_EPISODES]`."""
    rng = np.random.default_rng(seed)
    permanent = np.zeros((36, 4))
    transient = np.zeros((36, 4))
    returns = np.zeros((NUM_PHASES, PHASE_EPISODES))
    for phase in range(NUM_PHASES):
        visited: list[tuple[int, int, float]] = []
        for episode in range(PHASE_EPISODES):
            env = envs[phase % 2]
            env.reset(seed=int(rng.integers(2**31)))
            returns[phase, episode] = play(env, learner, permanent, transient, visited, rng)
        if learner.at_switch == "consolidate":
            for state, action, before in visited:
                error = before + transient[state, action] - permanent[state, action]
                permanent[state, action] += learner.permanent_step_size * error
        if learner.at_switch != "keep":
            transient[:] = 0.0
    return returns


def play(
    env: FiniteEnv,
    learner: Learner,
    permanent: Array,
    transient: Array,
    visited: list[tuple[int, int, float]],
    rng: np.random.Generator,
) -> float:
    """One episode: `transient` learns, `visited` grows; returns the discounted return."""
    state, total, scale, ended = env.state, 0.0, 1.0, False
    while not ended:
        values = permanent[state] + transient[state]
        if rng.random() < EPSILON:
            action = int(rng.integers(4))
        else:
            action = int(rng.choice(np.flatnonzero(values == values.max())))
        _, given, ended, _, _ = env.step(np.int64(action))
        reward = float(given)
        after = env.state
        target = reward if ended else reward + DISCOUNT * (permanent + transient)[after].max()
        visited.append((state, action, float(permanent[state, action])))
        transient[state, action] += learner.step_size * (target - values[action])
        total += scale * reward
        scale *= DISCOUNT
        state = after
    return total


def environments() -> list[FiniteEnv]:
    """The two tasks, without a limit on their episodes that is ever met."""
    families = [ExchangingGoals("corner"), ExchangingGoals("beside")]
    models = [family.draw(np.random.default_rng(0)).model for family in families]
    return [FiniteEnv(model.with_horizon(NO_LIMIT)) for model in models]


def main() -> None:
    """Print the table of `permanent_transient.md`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=30)
    num_seeds = parser.parse_args().seeds
    envs = environments()
    for name, learner in LEARNERS.items():
        lived = np.array([live(learner, envs, seed) for seed in range(num_seeds)])
        per_seed = lived.mean((1, 2))
        error = per_seed.std(ddof=1) / np.sqrt(num_seeds)
        phases = " ".join(f"{value:.3f}" for value in lived.mean((0, 2)))
        first = " ".join(f"{value:.3f}" for value in lived[:, :, :FIRST].mean((0, 2)))
        print(f"| {name} | {per_seed.mean():.3f} ± {error:.3f} | {phases} | {first} |")


if __name__ == "__main__":
    main()
