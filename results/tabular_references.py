"""What players that know the law of the random MDPs earn: total reward over a lifetime.

python results/tabular_references.py [NUM_PROCESSES]
"""

import sys

from sojourn.envs import TabularMDP, tabular_totals


def main(num_processes: int) -> None:
    """Print mean and standard error of every reference for lifetimes of 10 and 100 episodes."""
    short, long = (
        tabular_totals(TabularMDP(), num_episodes, num_processes, seed=0)
        for num_episodes in (10, 100)
    )
    for name in sorted(long, key=lambda name: long[name].mean()):
        cells = [
            f"{total.mean():.1f} ± {total.std(ddof=1) / num_processes**0.5:.1f}"
            for total in (short[name], long[name])
        ]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
