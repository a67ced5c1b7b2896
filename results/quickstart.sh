#!/usr/bin/env bash
# The quickstart, its controls and its comparison: 8 runs, about 20 minutes of one CPU core.
# Usage: results/quickstart.sh [PARALLEL_RUNS]   (writes runs/quickstart-study and results/quickstart)
set -euo pipefail
cd "$(dirname "$0")/.."
study=runs/quickstart-study
export OMP_NUM_THREADS=1
{
    for seed in 1 2 3; do echo "seed=$seed folder=$study/gated_delta_net-$seed"; done
    echo "memory=gru folder=$study/gru"
    echo "memory=gru num_steps=2_000_000 folder=$study/gru-4x"
    echo "memory=none folder=$study/none"
    echo "memory_reset=episode folder=$study/reset-every-episode"
    echo "memory=linear_attention folder=$study/linear_attention"
} | xargs -P "${1:-2}" -I{} bash -c '.venv/bin/sojourn train experiment=quickstart quiet=true {}'
.venv/bin/sojourn compare "$study/*" output=results/quickstart
# The same without the longer run: every memory at the quickstart's budget.
.venv/bin/sojourn compare "$study/gated_delta_net-*" "$study/gru" "$study/none" \
    "$study/linear_attention" "$study/reset-every-episode" output=results/quickstart/equal_budget
