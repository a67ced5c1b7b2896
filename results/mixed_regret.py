"""Normalised regret of every task over the fifths of a run.

python results/mixed_regret.py RUN [RUN ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from sojourn.envs import pooled_regret
from sojourn.experiments.episodes import Episodes

PARTS = 5


def rows(run: Path) -> list[str]:
    """One line of a table per task."""
    episodes = Episodes.from_table(run / "episodes.csv")
    known = np.isfinite(episodes.optimal)
    part = np.minimum((episodes.step - 1) * PARTS // episodes.step.max(), PARTS - 1)
    lines = []
    for task in np.unique(episodes.task):
        cells, count = [], 0
        for number in range(PARTS):
            of = known & (episodes.task == task) & (part == number)
            regret = pooled_regret(episodes.optimal[of], episodes.achieved[of], episodes.floor[of])
            cells.append(f"{regret:.2f}")
            count += int(of.sum())
        lines.append(f"| {run.name} | {task} | {' | '.join(cells)} | {count} |")
    return lines


def main() -> None:
    """Print the table."""
    header = [f"{number + 1}/{PARTS}" for number in range(PARTS)]
    print(f"| run | task | {' | '.join(header)} | episodes |")
    print("|---" * (PARTS + 3) + "|")
    for run in sys.argv[1:]:
        print("\n".join(rows(Path(run))))


if __name__ == "__main__":
    main()
