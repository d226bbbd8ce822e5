#!/usr/bin/env bash
# The main job, on real kernels: finds the planted regression between v6.12-demo-good and v6.12-demo-bad, then reverts
# it on top of v6.12-demo-bad and measures what comes back.
#
#   demo.sh TREE SCHED_BISECT
#
# A second run reuses the tree and what was built.
set -euo pipefail

tree=$1
program=$(realpath -- "$2")
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
began=$SECONDS

say() { printf '\n== %s (%d min %02d s)\n' "$*" $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)) >&2; }

say "the kernel tree"
"$here/make-history.sh" "$tree"

say "what this host has"
"$program" doctor --repo "$tree"

session=demo-$(date +%Y%m%d-%H%M%S)
say "sched-bisect start v6.12-demo-good v6.12-demo-bad"
"$program" start v6.12-demo-good v6.12-demo-bad --repo "$tree" --session "$session"

culprit=$("$program" report "$session" --repo "$tree" --format json |
    sed -n '/"conclusion"/,/"subject"/s/^ *"commit": "\([0-9a-f]*\)",$/\1/p')
say "sched-bisect revert-test ${culprit:0:12}"
"$program" revert-test "$culprit" --repo "$tree"
say "done"
