"""Writes what is known of classic control into `envs/references`: ceilings, floors, n and s.e.

    python results/classic_control_files.py [--episodes 100] [--output envs/references]

    CartPole     a linear controller that reaches the limit from every start
    MountainCar  value iteration, Acrobot breadth-first search (see classic_control_references.py)
    Pendulum     V_t(a, w) = min_u (a^2 + w^2 / 10 + u^2 / 1000 + V_t+1(next)), bilinear on a grid,
                 25 torques; its greedy policy is replayed in the environment
    floor        uniformly random actions of the environment's own action space

Ceilings are means over `--episodes` episodes of one root seed, floors over ten times as many of
another. What is replayed is reached, so every ceiling is a lower bound of the optimum. Source:
Bellman (1957); `gymnasium.envs.classic_control`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from classic_control_references import CarValues, swing_plan

from sojourn.envs import Evidence, Reference, reference_path, reference_text
from sojourn.envs.interface import Array

CEILING_SEED, FLOOR_SEED, FLOOR_FACTOR = 1, 2, 10
GRID, TORQUES, HORIZON = 121, 25, 200
GAINS = np.array([0.1, 0.5, 1.0, 1.0])
"""Of place, speed, angle and spin of the pole: pushed to the side on which the sum is positive."""

Policy = Callable[[Array], Any]


class PendulumValues:
    """Least cost from any angle, speed and step, by backward induction."""

    def __init__(self) -> None:
        self._angles = np.linspace(-np.pi, np.pi, GRID)
        self._speeds = np.linspace(-8.0, 8.0, GRID)
        self._torques = np.linspace(-2.0, 2.0, TORQUES)
        angle, speed = np.meshgrid(self._angles, self._speeds, indexing="ij")
        self._tables = np.zeros((HORIZON + 1, GRID, GRID), np.float32)
        for step in reversed(range(HORIZON)):
            best = np.full((GRID, GRID), np.inf)
            for torque in self._torques:
                best = np.minimum(best, self._cost(step, angle, speed, torque))
            self._tables[step] = best

    def best_torque(self, step: int, angle: float, speed: float) -> float:
        """The torque after which the least cost is left."""
        costs = self._cost(step, np.full(TORQUES, angle), np.full(TORQUES, speed), self._torques)
        return float(self._torques[costs.argmin()])

    def _cost(self, step: int, angle: Array, speed: Array, torque: Any) -> Array:
        """Of a torque now and the best ones later."""
        now = angle**2 + 0.1 * speed**2 + 0.001 * torque**2
        speed = np.clip(speed + (15.0 * np.sin(angle) + 3.0 * torque) * 0.05, -8.0, 8.0)
        angle = (angle + speed * 0.05 + np.pi) % (2 * np.pi) - np.pi
        x, y = ((angle + np.pi) / (2 * np.pi), (speed + 8.0) / 16.0)
        x, y = x * (GRID - 1), y * (GRID - 1)
        i, j = np.minimum(x.astype(int), GRID - 2), np.minimum(y.astype(int), GRID - 2)
        x, y, table = x - i, y - j, self._tables[step + 1]
        low = (1 - y) * table[i, j] + y * table[i, j + 1]
        high = (1 - y) * table[i + 1, j] + y * table[i + 1, j + 1]
        return np.asarray(now + (1 - x) * low + x * high)


def balance(env: Any) -> Callable[[], int]:
    """The linear controller of CartPole."""
    return lambda: int(GAINS @ np.array(env.unwrapped.state) > 0.0)


def drive(env: Any, values: CarValues) -> Callable[[], int]:
    """The best driver of MountainCar."""
    return lambda: values.best_action(*env.unwrapped.state)


def swing_up(env: Any, values: PendulumValues) -> Callable[[], Array]:
    """The best torques of Pendulum."""
    steps = iter(range(HORIZON))

    def torque() -> Array:
        angle, speed = env.unwrapped.state
        angle = (angle + np.pi) % (2 * np.pi) - np.pi
        return np.array([values.best_torque(next(steps), angle, speed)], np.float32)

    return torque


def returns(id: str, choose: Callable[[Any], Callable[[], Any]], seed: int, num: int) -> Array:
    """Returns of `num` episodes that follow one root seed; `choose(env)` gives a policy for one."""
    env = gymnasium.make(id, disable_env_checker=True)
    env.action_space.seed(seed)
    totals = []
    for number in range(num):
        env.reset(seed=seed if number == 0 else None)
        policy, total, ended = choose(env), 0.0, False
        while not ended:
            _, reward, terminated, truncated, _ = env.step(policy())
            total, ended = total + float(reward), terminated or truncated
        totals.append(total)
    return np.array(totals)


def error(values: Array) -> float:
    """Standard error of the mean."""
    return float(values.std(ddof=1) / len(values) ** 0.5)


def main() -> None:
    """Write one file per environment and print its numbers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--output", type=Path, default=Path("envs/references"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    car, pendulum = CarValues(), PendulumValues()
    players: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
        "CartPole-v1": ("controller", "a linear controller", balance),
        "MountainCar-v0": ("dp", "value iteration, 401 x 401", lambda env: drive(env, car)),
        "Pendulum-v1": ("dp", "backward induction, 121 x 121", lambda e: swing_up(e, pendulum)),
        "Acrobot-v1": (
            "search",
            "breadth-first search",
            lambda env: iter(swing_plan(np.array(env.unwrapped.state))).__next__,
        ),
    }
    for id, (kind, how, choose) in players.items():
        best = returns(id, choose, CEILING_SEED, options.episodes)
        uniform = returns(
            id, lambda env: env.action_space.sample, FLOOR_SEED, FLOOR_FACTOR * options.episodes
        )
        numbers = {"estimation_seeds": (CEILING_SEED,), "floor_seeds": (FLOOR_SEED,)}
        evidence = Evidence(num_ceiling=len(best), num_floor=len(uniform), **numbers)
        levels = (float(uniform.mean()), float(best.mean()), kind, error(uniform), error(best))
        reference = Reference(*levels, evidence=evidence)
        title = f"{id}: {how}, replayed; made by results/classic_control_files.py"
        made_with = {"gymnasium": version("gymnasium")}
        text = reference_text(reference, {"id": id}, made_with, title)
        reference_path(options.output, id).write_text(text)
        print(text, flush=True)


if __name__ == "__main__":
    main()
