#!/usr/bin/env bash
# The pictures of the README: nine small runs, their evaluations and their report, photographed. Needs chromium.
#     docs/images/make.sh [RUNS [PICTURES [key=value ...]]]
# Runs that are finished in RUNS are kept; with words such as num_steps=6_400 it is a quick try of the script.
set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/screenshots}
pictures=${2:-docs/images}
words=("${@:3}")
mkdir -p "$runs" "$pictures"
for seed in 1 2 3; do
    for memory in gated_delta_net linear_attention gru; do
        run=$runs/$memory-$seed
        [ -d "$run/evaluations" ] && continue
        sojourn train stream=dark_room_recurring memory=$memory seed=$seed folder="$run" num_steps=160_000 \
            num_lifetimes=32 slice_steps=50 agent.width=48 diagnostics_every=5 quiet=true "${words[@]}"
        sojourn evaluate "$run" num_lifetimes=8 segments=6 conditions=carried,reset_task probe_episodes=2
    done
done
pages=$(mktemp -d)
sojourn compare "$runs" output="$pages"
python docs/images/photograph.py report "$pages/report.html" "$pictures/report.png"
python docs/images/photograph.py terminal "$pictures/terminal.svg" sojourn compare "$runs"
