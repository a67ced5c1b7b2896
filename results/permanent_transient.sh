#!/usr/bin/env bash
# Permanent and transient values on the grid with exchanging goals: 30 seeds, about 1 minute of one CPU core.
# Usage: results/permanent_transient.sh   (prints the rows of results/permanent_transient.md)
set -euo pipefail
cd "$(dirname "$0")/.."
export OMP_NUM_THREADS=1
.venv/bin/python results/permanent_transient.py --seeds 30
