#!/usr/bin/env bash
# Learning studies: every memory on the streams where memory matters; the settings are in configs/study.
# Finished members are kept as row files in results/learning/STUDY and are not run again; a stopped script goes on
# where it was. What everything takes is not measured; a member is 1 to 4 M steps, minutes of one quiet CPU core.
# Usage: results/learning.sh                    all studies, cheapest claims first
#        results/learning.sh STUDY [WORD ...]   one study; only= chooses members by name, other words change all of them:
#        results/learning.sh moving_bandit 'only=gru__*,none__*' jobs=1
set -euo pipefail
cd "$(dirname "$0")/.."
sojourn=${SOJOURN:-.venv/bin/sojourn}
failed=0

held_out() { # STUDY: what its agents are asked on lifetimes that were never trained on; empty: nothing
    case $1 in
    hidden_rules)
        echo conditions=carried,reset_task,reset_episode,shuffled,random num_lifetimes=64 segments=8 probe_lifetimes=0 ;;
    recurring_rules)
        echo conditions=carried,reset_task,shuffled,random num_lifetimes=64 segments=16 probe_lifetimes=0 ;;
    dark_room)
        echo conditions=carried,reset_task,shuffled,random num_lifetimes=256 segments=10 stream.lifetime_segments=10 ;;
    recurring_rooms)
        echo conditions=carried,reset_task,shuffled,random num_lifetimes=128 segments=8 stream.lifetime_segments=8 ;;
    minigrid_memory)
        echo conditions=carried,reset_episode,frozen,random num_lifetimes=64 segments=8 probe_lifetimes=0 ;;
    recurring_grids)
        echo conditions=carried,reset_task,random num_lifetimes=16 segments=12 checkpoints=all ;;
    esac
}

lags() { # RUN KEPT: an agent of MiniGrid-Memory 11 in corridors of other lengths
    local size length=stream.schedule.families.0.kwargs
    mkdir -p "$2"
    for size in 11 13 15 17 21 25; do
        [ ! -e "$2/size_$size.csv" ] || continue
        "$sojourn" evaluate "$1" conditions=carried,reset_episode num_lifetimes=64 segments=2 probe_lifetimes=0 \
            "$length.size=$size" "$length.max_steps=$((10 * size))" "output=$1/lags/$size"
        cp "$1/lags/$size/measures.csv" "$2/size_$size.csv"
    done
}

run() { # STUDY WORDS ...
    local name=$1 runs=runs/learning/$1 kept=results/learning/$1 code=0 words member matrix
    shift
    mkdir -p "$runs/members" "$kept/members"
    cp -n "$kept"/members/*.json "$runs/members/" 2>/dev/null || true
    "$sojourn" study "study=$name" "output=$runs" "$@" || code=$?
    cp "$runs"/members/*.json "$kept/members/" 2>/dev/null || true
    [ "$code" -le 1 ] || exit "$code" # stopped, or a word that is wrong
    [ "$code" -eq 0 ] || failed=1
    words=$(held_out "$name")
    [ -n "$words" ] || return 0
    for member in "$kept"/members/*.json; do
        member=$(basename "$member" .json)
        [ ! -e "$kept/evaluations/$member.csv" ] || continue
        if [ ! -d "$runs/runs/$member" ]; then
            echo "$member: not evaluated, its run folder is gone; delete its row to run it again"
            continue
        fi
        # shellcheck disable=SC2086
        "$sojourn" evaluate "$runs/runs/$member" $words "output=$runs/evaluations/$member"
        mkdir -p "$kept/evaluations"
        cp "$runs/evaluations/$member/measures.csv" "$kept/evaluations/$member.csv"
        matrix=$runs/evaluations/$member/outer_matrix.csv
        if [ -e "$matrix" ]; then
            mkdir -p "$kept/outer_matrices"
            cp "$matrix" "$kept/outer_matrices/$member.csv"
        fi
    done
    for member in "$runs"/runs/gated_delta_net__s1__*; do
        if [ "$name" = minigrid_memory ] && [ -d "$member" ]; then lags "$member" "$kept/lags"; fi
    done
}

main() {
    if [ $# -gt 0 ]; then
        run "$@"
        return
    fi
    local study
    for study in moving_bandit tabular_mdp bandit hidden_rules dark_room recurring_rooms recall minigrid_memory \
        recurring_rules recurring_grids; do
        run "$study"
    done
}

export OMP_NUM_THREADS=1
main "$@"; exit "$failed" # on one line: the file may change while it runs
