#!/usr/bin/env bash
# The pictures of the README: nine small runs, their evaluations and their report, photographed. Needs chromium.
set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/screenshots}
mkdir -p "$runs"
for seed in 1 2 3; do
    for memory in gated_delta_net linear_attention gru; do
        run=$runs/$memory-$seed
        sojourn train stream=dark_room_recurring memory=$memory seed=$seed folder="$run" num_steps=160_000 \
            num_lifetimes=32 slice_steps=50 agent.width=48 diagnostics_every=5 quiet=true
        sojourn evaluate "$run" num_lifetimes=8 segments=6 conditions=carried,reset_task probe_episodes=2
    done
done
pages=$(mktemp -d)
sojourn compare "$runs" output="$pages"
python docs/images/photograph.py report "$pages/report.html" docs/images/report.png
python docs/images/photograph.py terminal docs/images/terminal.svg sojourn compare "$runs"
