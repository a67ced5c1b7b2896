"""How well the classical learners play the preset bandits, on common problems and reward tables.

python results/bandit_references.py [NUM_PROBLEMS]
"""

import sys

import numpy as np

from sojourn.envs import BernoulliBandit, MovingBandit, reference_plays

SEED = 12345


def main() -> None:
    num = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    for family in (BernoulliBandit(), BernoulliBandit(num_arms=10), MovingBandit()):
        print(f"\n{family.name}, {num:,} problems, seed {SEED}\n")
        print("| player | reward | pseudo-regret |\n|---|---|---|")
        for name, played in reference_plays(family, num, SEED).items():
            cells = [
                f"{values.mean():.2f} ± {values.std() / np.sqrt(num):.2f}"
                for values in (played.reward, played.regret)
            ]
            print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
