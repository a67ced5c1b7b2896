#!/usr/bin/env bash
# Five-armed bandits against Thompson sampling: 5 runs, about 15 minutes of one CPU core.
# Usage: results/bandit.sh [PARALLEL_RUNS]   (writes runs/bandit-study and results/bandit)
set -euo pipefail
cd "$(dirname "$0")/.."
study=runs/bandit-study
export OMP_NUM_THREADS=1
# The GRU with the discount and trace that suit it; everything else as for the others.
gru="memory=gru trainer.returns.discount=0.95 trainer.returns.trace=0.3"
{
    for seed in 1 2 3; do echo "seed=$seed folder=$study/gated_delta_net-$seed"; done
    echo "$gru folder=$study/gru-own"
    echo "memory=gru folder=$study/gru"
} | xargs -P "${1:-2}" -I{} bash -c '.venv/bin/sojourn train experiment=bandit quiet=true {}'
.venv/bin/sojourn compare "$study/*" output=results/bandit
