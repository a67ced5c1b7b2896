#!/usr/bin/env bash
# Continual CartPole with observation offsets, short form: 4 seeds x 2 agents x 480 k steps, about 45 CPU minutes in all.
# Usage: results/continual_cartpole.sh   (prints the rows of results/continual_cartpole.md)
set -euo pipefail
cd "$(dirname "$0")/.."
export OMP_NUM_THREADS=1
.venv/bin/python results/continual_cartpole.py --seeds 4 --iterations 60 --levels 10
