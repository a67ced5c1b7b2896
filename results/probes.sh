#!/usr/bin/env bash
# Memories on supervised tasks: every memory on recall, overwriting, regression and state tracking, one
# seed; a panel of eight on recall and state tracking, three seeds, and on the other probes, one seed; the
# recall probe's control. About 90 minutes of two quiet CPU cores.
# A stopped script goes on where it was. A failed member is named in the tables, the rest goes on.
# Usage: results/probes.sh [PARALLEL_MEMBERS]   (writes runs/probes-study and results/probes)
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${1:-2}
rows=results/probes/members # what earlier runs of this script have finished
study=runs/probes-study
main=mqar,regression,overwriting,register_machine,permutation
claims=mqar,register_machine,permutation
panel=softmax_attention,linear_attention,delta_net,gated_delta_net,memt,mesa_net,ttt_mlp,gru
failed=0

probe() { # FOLDER words ...: members found by an earlier command are taken over
    local folder=$study/$1
    shift
    mkdir -p "$folder/members"
    for file in "$rows"/* "$study"/*/members/*; do
        [ ! -e "$file" ] || [ -e "$folder/members/${file##*/}" ] || cp "$file" "$folder/members/"
    done
    sojourn probe "$@" "jobs=$jobs" "output=$folder" || failed=1
    mkdir -p "$rows"
    cp "$folder"/members/* "$rows/"
}

probe every "probe=$main" memory=all seed=0
probe panel "probe=$claims" "memory=$panel" seed=0..2
probe others probe=all "memory=$panel" seed=0
probe control probe=mqar "memory=$panel" seed=0 control=none,reset_every_step

for folder in every panel others control; do
    mkdir -p "results/probes/$folder"
    cp "$study/$folder"/*.{md,csv,png} "results/probes/$folder/"
done
exit "$failed"
