#!/bin/sh
# Runs the given workload once and prints how long it took: one number, in seconds (lower is better).
#
#   sched-bisect ... --metric elapsed --direction lower --run '/path/to/run-number.sh ./bench --size 10'
#
# By hand: hooks/run-number.sh sleep 1
# The workload's own output goes to standard error: only the last line of standard output is the measurement.
set -eu
if [ $# -eq 0 ]; then
    echo "usage: run-number.sh COMMAND [ARGUMENT]..." >&2
    exit 127
fi
start=$(date +%s%N)
# A failing workload fails the run, with its own exit status: a time until a crash is no measurement.
"$@" >&2
end=$(date +%s%N)
awk -v ns="$((end - start))" 'BEGIN { printf "%.6f\n", ns / 1e9 }'
