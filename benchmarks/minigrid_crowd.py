"""How fast a crowd of MiniGrid lifetimes is, beside Gymnasium's and EnvPool's vector environments.

    python benchmarks/minigrid_crowd.py [--lifetimes 32] [--output results/minigrid_crowd.md]

Steps of one lifetime per CPU second of random play, all threads counted. The players take turns in
every round. Only a crowd gives the agent's inputs (previous action and reward, masks, starts),
switches tasks and writes episode records with regret; the others give MiniGrid's raw observations.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from sojourn.envs import Crowd, Length, MinigridFamily, NeverRepeating, Stream, Workers

Play = Callable[[np.ndarray], object]
IDS = ("MiniGrid-Empty-8x8-v0", "MiniGrid-DoorKey-8x8-v0", "MiniGrid-MemoryS11-v0")


def crowd(
    id: str, num_rows: int, instance: Any, workers: int | Workers = 0, backend: Any = "auto"
) -> Play:
    """Ours: five episodes per task, then the next; planner and random floor included."""
    family = MinigridFamily(id, instance=instance)
    stream = Stream(NeverRepeating([family]), Length(5), 0, backend=backend, workers=workers)
    return Crowd(stream, num_rows).step


def sync_vector(id: str, num_rows: int) -> Play:
    """Gymnasium's loop over environments."""
    makers = [lambda: gymnasium.make(id, disable_env_checker=True) for _ in range(num_rows)]
    envs = gymnasium.vector.SyncVectorEnv(makers)
    envs.reset(seed=0)
    return envs.step


def envpool(id: str, num_rows: int) -> Play:
    """EnvPool's own MiniGrid in C++, one thread."""
    import envpool as package  # no dependency: measured where it is installed

    envs = package.make(id, env_type="gymnasium", num_envs=num_rows, num_threads=1, seed=0)
    envs.reset()
    return envs.step  # type: ignore[no-any-return]


def speeds(players: list[Play], num_rows: int, num_steps: int, rounds: int) -> np.ndarray:
    """Steps per CPU second `[rounds, players]`, after one round of warming up."""
    actions = np.random.default_rng(0).integers(7, size=(num_steps, num_rows)).astype(np.int64)
    measured = np.empty((rounds + 1, len(players)))
    for row in measured:
        for column, play in enumerate(players):
            begin = time.process_time()
            for action in actions:
                play(action)
            row[column] = num_rows * num_steps / (time.process_time() - begin)
    return measured[1:]


def table(num_rows: int, num_steps: int, rounds: int) -> list[str]:
    """One line per environment."""
    pooled = find_spec("envpool") is not None
    titles = ["crowd, one layout per task", "crowd, new layouts", "SyncVectorEnv"]
    titles += ["crowd on EnvPool", f"EnvPool {version('envpool')}"] if pooled else []
    lines = [f"| environment | {' | '.join(titles)} | crowd / SyncVectorEnv |"]
    lines.append("|---" * (len(titles) + 2) + "|")
    for id in IDS:
        players = [crowd(id, num_rows, "fixed"), crowd(id, num_rows, "resampled")]
        players += [sync_vector(id, num_rows)]
        if pooled:
            players += [crowd(id, num_rows, "resampled", backend="envpool"), envpool(id, num_rows)]
        found = speeds(players, num_rows, num_steps, rounds)
        cells = [f"{value / 1000:,.1f} k" for value in np.median(found, axis=0)]
        ratio = np.median(found[:, 0] / found[:, 2])
        lines.append(f"| {id} | {' | '.join(cells)} | {ratio:.1f}x |")
        print(lines[-1], flush=True)
    return lines


def heading(num_rows: int, num_steps: int, rounds: int) -> str:
    """What stands above the table."""
    return f"""# Speed of a crowd of MiniGrid lifetimes

    python benchmarks/minigrid_crowd.py --lifetimes {num_rows} --steps {num_steps} \\
        --output results/minigrid_crowd.md

Environment steps per CPU second of random play with {num_rows} environments, all in one run: the
median of {rounds} rounds in which the players take turns. A crowd's steps include the adapter, the
inputs of the agent (previous action and reward, mask, start flags), task switches, the planner's
optimum of every new layout (not on EnvPool, where nobody plans), episode records and regret;
SyncVectorEnv and EnvPool (one thread) give raw observations. EnvPool's MiniGrid is another program
with other random layouts: no number here compares what is learned. NumPy {np.__version__},
Gymnasium {gymnasium.__version__}, Python {platform.python_version()}, {platform.machine()}.

"""


def main() -> None:
    """Print the table, and write it where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lifetimes", type=int, default=32)
    parser.add_argument("--steps", type=int, default=300, help="steps per round and player")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    lines = table(options.lifetimes, options.steps, options.rounds)
    if options.output is not None:
        above = heading(options.lifetimes, options.steps, options.rounds)
        options.output.write_text(above + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
