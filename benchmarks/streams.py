"""How fast the vectorised families play, alone and with all the bookkeeping of a crowd.

    python benchmarks/streams.py [--lifetimes 256] [--output results/stream_speed.md]

Steps per CPU second of random play, the median of 5 turns. `simulator`: step, observation and the
start of episodes; `crowd`: also previous-action inputs, records, regret and task switches;
`gymnasium`: the same crowd on step environments, one after another.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sojourn.envs import (
    Autoencode,
    BernoulliBandit,
    CartPole,
    Crowd,
    DarkRoom,
    ExchangingGoals,
    Family,
    KeyDoor,
    Length,
    NeverRepeating,
    RepeatPrevious,
    Stream,
    TabularMDP,
    TMaze,
)

TURNS = 5
FAMILIES: dict[str, tuple[Callable[[], Family], int]] = {
    "bandit, 5 arms, 100 pulls": (lambda: BernoulliBandit(5, 100), 4),
    "dark room 5x5, 16 steps": (lambda: DarkRoom(5, 16), 4),
    "dark room 9x9, 20 steps": (lambda: DarkRoom(9, 20), 6),
    "key-door 9x9, 50 steps": (lambda: KeyDoor(9, 50), 5),
    "random MDP, 10 steps": (TabularMDP, 100),
    "T-maze, 40 steps": (TMaze, 4),
    "exchanging goals, 100 steps": (ExchangingGoals, 50),
    "RepeatPrevious, 103 steps": (lambda: RepeatPrevious(2, 32), 1),
    "Autoencode, 103 steps": (Autoencode, 1),
    "CartPole, drawn gravity": (lambda: CartPole(500, {"gravity": [5.0, 20.0]}), 5),
}


def rate(play: Callable[[int], None], num_rows: int, seconds: float) -> float:
    """Median steps per CPU second."""
    rates = []
    for _ in range(TURNS):
        start, played = time.process_time(), 0
        while time.process_time() - start < seconds / TURNS:
            play(played)
            played += 1
        rates.append(played * num_rows / (time.process_time() - start))
    return float(np.median(rates))


def crowd_rate(stream: Stream, num_rows: int, seconds: float) -> float:
    """With everything that a crowd keeps."""
    crowd = Crowd(stream, num_rows)
    actions = random_actions(stream, num_rows)
    return rate(lambda step: void(crowd.step(actions[step % len(actions)])), num_rows, seconds)


def simulator_rate(stream: Stream, num_rows: int, seconds: float) -> float:
    """Without: one task per row, episode after episode."""
    simulator = stream.simulator(num_rows)
    actions = random_actions(stream, num_rows)
    for row in range(num_rows):
        simulator.begin_segment(row, stream.segment(row, 0))
        simulator.begin_episode(row, row)

    def play(step: int) -> None:
        outcome = simulator.step(actions[step % len(actions)])
        for row in np.flatnonzero(outcome.terminated | outcome.truncated).tolist():
            simulator.begin_episode(row, step * num_rows + row)
        simulator.observation()

    return rate(play, num_rows, seconds)


def random_actions(stream: Stream, num_rows: int) -> np.ndarray:
    """Uniform actions for 64 steps, drawn beforehand."""
    return np.random.default_rng(0).integers(stream.interface.num_actions, size=(64, num_rows))


def void(_: object) -> None:
    """Drop a result."""


def table(num_rows: int, seconds: float) -> list[str]:
    """One line per family."""
    lines = [
        "| family | simulator | crowd | gymnasium |",
        "|---|---|---|---|",
    ]
    for title, (make, episodes) in FAMILIES.items():
        schedule = NeverRepeating([make()])
        fast, slow = (
            Stream(schedule, Length(episodes), 0, backend=backend)
            for backend in ("auto", "gymnasium")
        )
        rates = (
            simulator_rate(fast, num_rows, seconds),
            crowd_rate(fast, num_rows, seconds),
            crowd_rate(slow, num_rows, seconds),
        )
        lines.append(
            f"| {title} | " + " | ".join(f"{value / 1000:,.0f} k" for value in rates) + " |"
        )
        print(lines[-1], flush=True)
    return lines


def heading(num_rows: int) -> str:
    """What stands above the table."""
    return f"""# Speed of the vectorised streams

    python benchmarks/streams.py --lifetimes {num_rows} --output results/stream_speed.md

Steps per CPU second of random play with {num_rows} lifetimes side by side, one thread; NumPy
{np.__version__}, Python {platform.python_version()}, {platform.machine()}. `simulator`: the physics
alone; `crowd`: with inputs, records, regret and task switches; `gymnasium`: the same crowd on step
environments. Short episodes cost the crowd most: it writes a record and draws a seed for each.

"""


def main() -> None:
    """Print the table, and write it where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lifetimes", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    lines = table(options.lifetimes, options.seconds)
    if options.output is not None:
        options.output.write_text(heading(options.lifetimes) + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
