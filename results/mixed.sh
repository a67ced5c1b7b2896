#!/usr/bin/env bash
# A stream of four packages, and the same run killed half-way and resumed: about 3 minutes of one CPU core each.
# Needs popgym: pip install -c constraints.txt -e '.[published]'.   Usage: results/mixed.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
sojourn=${SOJOURN:-.venv/bin/sojourn}
folder=${1:-runs/mixed}
mkdir -p "$folder"
export OMP_NUM_THREADS=1
words=(stream=./results/mixed_stream.yaml trainer.returns.advantage_scale=task agent.width=48
    num_lifetimes=16 slice_steps=64 num_steps=102_400 checkpoint_every=20_000 seed=1 quiet=true)

$sojourn train "${words[@]}" "folder=$folder/whole"

$sojourn train "${words[@]}" "folder=$folder/killed" &
until [ "$(tail -qn 1 "$folder/killed/metrics.csv" 2>/dev/null | cut -d, -f1 | grep -xE '[0-9]+' || echo 0)" -gt 50000 ]; do
    sleep 0.2
done
kill -9 $!
wait || true
$sojourn train "resume=$folder/killed" quiet=true

cmp "$folder/whole/episodes.csv" "$folder/killed/episodes.csv"
columns() { ${PYTHON:-.venv/bin/python} -c "
import csv, sys
rows = csv.DictReader(open(sys.argv[1]))
print([{k: v for k, v in row.items() if not k.startswith('time/')} for row in rows])" "$1/metrics.csv"; }
cmp <(columns "$folder/whole") <(columns "$folder/killed")
echo "killed and resumed: every episode and every metric is the same"
${PYTHON:-.venv/bin/python} results/mixed_regret.py "$folder/whole"
