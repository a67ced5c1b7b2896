"""Writes what is known of Gymnasium's small games into `envs/references`: ceilings, floors, n, s.e.

    python results/classic_control_files.py [--episodes 1000] [--output envs/references]

    ceiling   the play of `envs/classic_play.py`, which is also what the oracle plays, over
              `--episodes` episodes of one root seed, a fifth of them where a search takes long; of
              Blackjack its exact value
    floor     uniformly random actions of the environment's own action space, over `--episodes` of
              another

Games that streams cut after other numbers of steps are printed, to be copied into their YAML.
What is played is reached, so every ceiling is a lower bound of the optimum. Source: the modules
that the players come from.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from sojourn.envs import (
    Evidence,
    GymnasiumFamily,
    Reference,
    best_actions,
    reference_path,
    reference_text,
)
from sojourn.envs.blackjack_play import best_value, random_value
from sojourn.envs.interface import Array

CEILING_SEED, FLOOR_SEED = 1, 2
SHIPPED = {
    "CartPole-v1": ("controller", "a linear controller"),
    "MountainCar-v0": ("search", "search over four pushes"),
    "Pendulum-v1": ("dp", "value iteration, 120 x 121"),
    "Acrobot-v1": ("search", "beam search"),
}
TAKES_LONG = {"Acrobot-v1"}
CUT = {"CartPole-v1": 100, "Pendulum-v1": 100, "MountainCar-v0": 400, "Acrobot-v1": 400}


def best_returns(id: str, max_steps: int | None, num: int) -> Array:
    """Returns of `num` episodes of best play from one root seed."""
    task = GymnasiumFamily(id, max_episode_steps=max_steps).draw(np.random.default_rng(0))

    def choose(env: Any) -> Iterator[Any]:
        while True:
            for action in best_actions(task, env):
                yield _native(env.action_space, action)

    return _returns(task.make_env(), choose, CEILING_SEED, num)


def random_returns(id: str, max_steps: int | None, num: int) -> Array:
    """Returns of `num` episodes of uniformly random actions from one root seed."""
    env = gymnasium.make(id, max_episode_steps=max_steps, disable_env_checker=True)
    env.action_space.seed(FLOOR_SEED)
    return _returns(env, lambda env: iter(env.action_space.sample, None), FLOOR_SEED, num)


def measured(id: str, max_steps: int | None, num: int) -> Reference:
    """Floor and ceiling with their standard errors."""
    uniform = random_returns(id, max_steps, num)
    best = best_returns(id, max_steps, num // 5 if id in TAKES_LONG else num)
    evidence = Evidence(len(best), num, (CEILING_SEED,), (FLOOR_SEED,))
    levels = (float(uniform.mean()), float(best.mean()), SHIPPED[id][0])
    return Reference(*levels, _error(uniform), _error(best), evidence=evidence)


def _returns(env: Any, choose: Callable[[Any], Iterator[Any]], seed: int, num: int) -> Array:
    totals = []
    for number in range(num):
        env.reset(seed=seed if number == 0 else None)
        policy, total, ended = choose(env), 0.0, False
        while not ended:
            _, reward, terminated, truncated, _ = env.step(next(policy))
            total, ended = total + float(reward), terminated or truncated
        totals.append(total)
    return np.array(totals)


def _native(space: gymnasium.Space[Any], action: Any) -> Any:
    """A best action as the environment's own: an option, or reals scaled to the bounds."""
    return action if isinstance(space, spaces.Discrete) else np.float32(action) * space.high  # type: ignore[attr-defined]


def _error(values: Array) -> float:
    """Standard error of the mean."""
    return float(values.std(ddof=1) / len(values) ** 0.5)


def main() -> None:
    """Write one file per environment and print its numbers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--output", type=Path, default=Path("envs/references"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    found = {id: measured(id, None, options.episodes) for id in SHIPPED}
    found["Blackjack-v1"] = Reference(random_value(), best_value(), "dp", reward_range=2.0)
    for id, reference in found.items():
        how = SHIPPED.get(id, ("", "dynamic programme over the hands"))[1]
        title = f"{id}: {how}, played; made by results/classic_control_files.py"
        made_with = {"gymnasium": version("gymnasium")}
        text = reference_text(reference, {"id": id}, made_with, title)
        reference_path(options.output, id).write_text(text)
        print(text, flush=True)
    for id, max_steps in CUT.items():
        print(f"{id}, {max_steps} steps: {measured(id, max_steps, options.episodes)}", flush=True)


if __name__ == "__main__":
    main()
