"""How well MountainCar and Acrobot can be played from their own starts, and how badly.

    python results/classic_control_references.py [--starts 100]

    MountainCar: V(x, v) = min_a (1 + V(next)), 0 at the goal, bilinear on a grid; its greedy policy
                 is replayed in the environment
    Acrobot:     breadth-first search, one state per cell, at most BEAM of them per step, those of
                 most energy; the plan is replayed in the environment
    floor:       uniformly random actions

What is replayed is reached, so the ceilings are lower bounds of the optimum. Sources: Bellman
(1957); `gymnasium.envs.classic_control`.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np

from sojourn.envs.interface import Array

MAX_STEPS = 400
GRID = 401
BEAM, DEPTH = 3000, 150
CELL = np.array([0.1, 0.1, 0.25, 0.25])


def drive(place: Array, speed: Array, action: int) -> tuple[Array, Array, Array]:
    """Place and speed of the car after a step, and whether it is at the goal."""
    speed = np.clip(speed + (action - 1) * 0.001 - 0.0025 * np.cos(3 * place), -0.07, 0.07)
    place = np.clip(place + speed, -1.2, 0.6)
    speed = np.where((place == -1.2) & (speed < 0), 0.0, speed)
    return place, speed, place >= 0.5


class CarValues:
    """Steps to the goal from any place and speed, by value iteration."""

    def __init__(self) -> None:
        place, speed = np.meshgrid(
            np.linspace(-1.2, 0.6, GRID), np.linspace(-0.07, 0.07, GRID), indexing="ij"
        )
        reached = [drive(place, speed, action) for action in range(3)]
        cells = [self._cells(after[0], after[1]) for after in reached]
        self._table = np.full((GRID, GRID), float(MAX_STEPS))
        change = 1.0
        while change > 1e-6:
            steps = [
                1.0 + np.where(after[2], 0.0, self._interpolated(*cell))
                for after, cell in zip(reached, cells, strict=True)
            ]
            table = np.minimum(np.minimum.reduce(steps), MAX_STEPS)
            change = float(np.abs(table - self._table).max())
            self._table = table

    def best_action(self, place: float, speed: float) -> int:
        """The action after which the fewest steps are left."""
        left = []
        for action in range(3):
            after = drive(np.array([place]), np.array([speed]), action)
            value = self._interpolated(*self._cells(after[0], after[1]))[0]
            left.append(0.0 if after[2][0] else float(value))
        return int(np.argmin(left))

    def _cells(self, place: Array, speed: Array) -> tuple[Array, Array, Array, Array]:
        x, y = (place + 1.2) / 1.8 * (GRID - 1), (speed + 0.07) / 0.14 * (GRID - 1)
        i, j = np.minimum(x.astype(int), GRID - 2), np.minimum(y.astype(int), GRID - 2)
        return i, j, x - i, y - j

    def _interpolated(self, i: Array, j: Array, x: Array, y: Array) -> Array:
        table = self._table
        low = (1 - y) * table[i, j] + y * table[i, j + 1]
        high = (1 - y) * table[i + 1, j] + y * table[i + 1, j + 1]
        return np.asarray((1 - x) * low + x * high)


def swing(state: Array, torque: Array) -> Array:
    """Acrobot states `[n, 4]` after a step of 0.2 s, by one Runge-Kutta step of order 4."""
    k1 = swing_rates(state, torque)
    k2 = swing_rates(state + 0.1 * k1, torque)
    k3 = swing_rates(state + 0.1 * k2, torque)
    k4 = swing_rates(state + 0.2 * k3, torque)
    after = state + 0.2 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    after[:, :2] = (after[:, :2] + np.pi) % (2 * np.pi) - np.pi
    return np.asarray(after.clip(*(np.array([[-1], [1]]) * [np.pi, np.pi, 4 * np.pi, 9 * np.pi])))


def swing_rates(state: Array, torque: Array) -> Array:
    """Time derivatives of angles and speeds: links of mass and length 1, inertia 1, g = 9.8."""
    first, second, first_speed, second_speed = state.T
    d1 = 3.5 + np.cos(second)
    d2 = 1.25 + 0.5 * np.cos(second)
    phi2 = 4.9 * np.cos(first + second - np.pi / 2)
    phi1 = (
        -0.5 * second_speed**2 * np.sin(second)
        - second_speed * first_speed * np.sin(second)
        + 14.7 * np.cos(first - np.pi / 2)
        + phi2
    )
    bend = torque + d2 / d1 * phi1 - 0.5 * first_speed**2 * np.sin(second) - phi2
    second_rate = bend / (1.25 - d2**2 / d1)
    first_rate = -(d2 * second_rate + phi1) / d1
    return np.stack([first_speed, second_speed, first_rate, second_rate], 1)


def energy(state: Array) -> Array:
    """Kinetic and potential energy `[n]`: what has to be pumped up."""
    first, second, first_speed, second_speed = state.T
    d1, d2 = 3.5 + np.cos(second), 1.25 + 0.5 * np.cos(second)
    kinetic = 0.5 * (d1 * first_speed**2 + 1.25 * second_speed**2) + d2 * first_speed * second_speed
    return np.asarray(kinetic - 14.7 * np.cos(first) - 4.9 * np.cos(first + second))


def swing_plan(start: Array) -> list[int]:
    """Actions from a start to the goal; raises ValueError where the search finds none."""
    states, history = start[None], []
    for _ in range(DEPTH):
        parent = np.repeat(np.arange(len(states)), 3)
        action = np.tile([0, 1, 2], len(states))
        after = swing(states[parent], action - 1.0)
        history.append((parent, action))
        done = -np.cos(after[:, 0]) - np.cos(after[:, 0] + after[:, 1]) > 1.0
        if done.any():
            return traced_back(history, int(done.argmax()))
        _, kept = np.unique(np.round(after / CELL).astype(int), axis=0, return_index=True)
        kept = kept[np.argsort(-energy(after[kept]), kind="stable")][:BEAM]
        history[-1] = (parent[kept], action[kept])
        states = after[kept]
    raise ValueError(f"no plan of {DEPTH} steps was found from {start}")


def traced_back(history: list[tuple[Array, Array]], last: int) -> list[int]:
    """The actions that led to entry `last` of the newest step."""
    actions = []
    for parent, action in reversed(history):
        actions.append(int(action[last]))
        last = int(parent[last])
    return actions[::-1]


def returns(id: str, choose: Any, num_starts: int) -> Array:
    """Episode returns from the starts of seeds 0, 1, ...; `choose(env)` gives a policy."""
    env = gymnasium.make(id, max_episode_steps=MAX_STEPS, disable_env_checker=True)
    totals = []
    for seed in range(num_starts):
        env.reset(seed=seed)
        policy, total, ended = choose(env), 0.0, False
        while not ended:
            _, reward, terminated, truncated, _ = env.step(policy())
            total, ended = total + float(reward), terminated or truncated
        totals.append(total)
    return np.array(totals)


def main() -> None:
    """Print mean, standard error and number of starts of every figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--starts", type=int, default=100)
    num_starts = parser.parse_args().starts
    values, rng = CarValues(), np.random.default_rng(0)
    policies: dict[str, Any] = {
        "MountainCar-v0": lambda env: lambda: values.best_action(*env.unwrapped.state),
        "Acrobot-v1": lambda env: iter(swing_plan(np.array(env.unwrapped.state))).__next__,
    }
    for id, best in policies.items():
        players = {
            "best": (best, num_starts),
            "random": (lambda _: lambda: int(rng.integers(3)), 5 * num_starts),
        }
        for title, (choose, num) in players.items():
            found = returns(id, choose, num)
            error = found.std(ddof=1) / num**0.5
            print(f"| {id} | {title} | {found.mean():.2f} ± {error:.2f} | {num} |", flush=True)


if __name__ == "__main__":
    main()
