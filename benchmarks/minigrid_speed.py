"""How much faster MiniGrid is here, with a check that it shows the same.

    python benchmarks/minigrid_speed.py [--output results/minigrid_speed.md]

Steps per CPU second of random play, episodes included: the variants take turns in every round, each
figure is the median over rounds and each ratio the median of the ratios within a round.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from sojourn.envs.minigrid import SnapshotReset, use_fast_observations
from sojourn.envs.minigrid.recipe import make_bare

Env = gymnasium.Env[Any, Any]
IDS = (
    "MiniGrid-Empty-8x8-v0",
    "MiniGrid-FourRooms-v0",
    "MiniGrid-MemoryS7-v0",
    "MiniGrid-DoorKey-8x8-v0",
)


@dataclass(frozen=True)
class Variant:
    """A way to make and reset an environment; `layouts` different seeds take turns."""

    title: str
    make: Callable[[str], Env]
    layouts: int = 1


def original(id: str) -> Env:
    """The registered environment."""
    return make_bare(id, {})


def fast(id: str) -> Env:
    """With fast observations."""
    return use_fast_observations(make_bare(id, {}))


def fast_with_snapshots(id: str) -> Env:
    """With fast observations and fast restarts."""
    return SnapshotReset(fast(id))


FIXED = (
    Variant("original", original),
    Variant("fast", fast),
    Variant("fast + snapshot", fast_with_snapshots),
)
RESAMPLED = (Variant("original", original, 1 << 30), Variant("fast", fast, 1 << 30))


def play(env: Env, actions: list[int], layouts: int, see: Callable[[Any], object]) -> None:
    """Play `actions`, starting a new episode where one ends; `see` gets every observation."""
    episode = 0
    see(env.reset(seed=0)[0])
    for action in actions:
        seen, _, terminated, truncated, _ = env.step(action)
        see(seen)
        if terminated or truncated:
            episode += 1
            see(env.reset(seed=episode % layouts)[0])


def random_actions(num_steps: int) -> list[int]:
    """The same uniformly random native actions every time."""
    actions: list[int] = np.random.default_rng(0).integers(7, size=num_steps).tolist()
    return actions


def speeds(
    id: str, variants: tuple[Variant, ...], num_steps: int, num_rounds: int
) -> np.ndarray[Any, Any]:
    """Steps per CPU second `[rounds, variants]`."""
    actions = random_actions(num_steps)
    envs = [variant.make(id) for variant in variants]
    measured = np.empty((num_rounds + 1, len(variants)))
    for row in measured:
        for column, (env, variant) in enumerate(zip(envs, variants, strict=True)):
            start = time.process_time()
            play(env, actions, variant.layouts, see=lambda _: None)
            row[column] = num_steps / (time.process_time() - start)
    return measured[1:]  # the first round warms up


def shows_the_same(id: str, variants: tuple[Variant, ...], num_steps: int) -> bool:
    """Whether all variants show equal images, directions and missions."""
    lives: list[list[Any]] = []
    for variant in variants:
        seen: list[Any] = []
        play(variant.make(id), random_actions(num_steps), variant.layouts, seen.append)
        lives.append([(o["image"].tobytes(), int(o["direction"]), o["mission"]) for o in seen])
    return all(life == lives[0] for life in lives)


def row(id: str, num_steps: int, num_rounds: int) -> str:
    """One line of the table."""
    fixed = speeds(id, FIXED, num_steps, num_rounds)
    fresh = speeds(id, RESAMPLED, num_steps, num_rounds)
    cells = [f"{np.median(fixed[:, 0]):,.0f}"]
    cells += [
        f"{np.median(fixed[:, v]):,.0f} ({np.median(fixed[:, v] / fixed[:, 0]):.1f}x)"
        for v in (1, 2)
    ]
    cells += [f"{np.median(fresh[:, 1]):,.0f} ({np.median(fresh[:, 1] / fresh[:, 0]):.1f}x)"]
    same = all(shows_the_same(id, variants, num_steps) for variants in (FIXED, RESAMPLED))
    return f"| {id} | {' | '.join(cells)} | {'yes' if same else 'NO'} |"


def table(num_steps: int, num_rounds: int) -> str:
    """The whole report as Markdown."""
    lines = [
        "| environment | original | fast | fast + snapshot | fast, new layouts | same seen |",
        "|---|---|---|---|---|---|",
        *(row(id, num_steps, num_rounds) for id in IDS),
        "",
        f"Steps per CPU second of random play, one process, median of {num_rounds} interleaved "
        f"rounds of {num_steps:,} steps; in brackets the median ratio to the original. One layout "
        "is replayed, except under *new layouts*. "
        f"Python {platform.python_version()}, {platform.machine()}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--steps", type=int, default=3000, help="steps per round and variant")
    parser.add_argument("--rounds", type=int, default=7, help="measured rounds")
    parser.add_argument("--output", type=Path, help="Markdown file to write")
    options = parser.parse_args()
    report = table(options.steps, options.rounds)
    print(report, end="")
    if options.output is not None:
        options.output.write_text(report)


if __name__ == "__main__":
    main()
