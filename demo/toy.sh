#!/usr/bin/env bash
# Make a tiny repository on which each command of docs/ runs in seconds, without kernels.
#
#   toy.sh DIR
#
# Its program, ./bench, prints the time that a version "takes": the sum of the files in costs/, with noise of 1 % from run to
# run, the same for the same boot of the same commit, so that what docs/ shows comes out again but for choices that follow
# from how long things took. ./build fails where the file `broken` is there. Commit ids follow from this script alone.
#
#   v1.0 .. v1.1   wake costs 8 more
#   v1.1 .. v1.2   lock costs 4 more
#   v1.2 .. v1.3   tidied up: the same time, but the lines of the first change are other ones
#   v1.3 .. v1.4   a merge, whose side branch costs 6 more
#   v1.4 .. v1.5   lock costs 10 less
#   v1.5 .. v1.6   four commits that do not build, one of which makes idle cost 9 more
set -euo pipefail

dir=$1
if [ -e "$dir" ]; then
    echo "toy.sh: $dir is there already" >&2
    exit 1
fi
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=Toy GIT_AUTHOR_EMAIL=toy@example.org GIT_COMMITTER_NAME=Toy GIT_COMMITTER_EMAIL=toy@example.org
git init --quiet --initial-branch=main -- "$dir"
cd -- "$dir"
at=1700000000

commit() { # SUBJECT
    at=$((at + 3600))
    export GIT_AUTHOR_DATE="$at +0000" GIT_COMMITTER_DATE="$at +0000"
    git add --all
    git commit --quiet --allow-empty --message="$1"
}
note() { # a commit that changes nothing but words
    echo "$1" >>NOTES
    commit "$1"
}
cost() { # NAME COST SUBJECT
    echo "$2" >"costs/$1"
    commit "$3"
}

mkdir costs
cat >bench <<'BENCH'
#!/bin/sh
# Prints one number: milliseconds, lower is better. The noise is drawn from the boot's number and the commit.
seed=$(printf '%s' "$SB_COMMIT $SB_BOOT $SB_REPETITION" | cksum)
cat costs/* | awk -v seed="${seed%% *}" '
    { sum += $1 }
    END {
        for (i = 0; i < 12; i++) { seed = (seed * 16807) % 2147483647; noise += seed / 2147483647 - 0.5 }
        printf "%.3f\n", sum * (1 + 0.01 * noise)
    }'
BENCH
cat >build <<'BUILD'
#!/bin/sh
if [ -e broken ]; then
    echo "error: $(cat broken)" >&2
    exit 1
fi
cp -r bench costs "$SB_ARTIFACTS"
BUILD
chmod +x bench build
echo 20 >costs/wake
echo 30 >costs/lock
echo 45 >costs/io
echo 5 >costs/idle
commit "Import"
git tag v1.0
note "docs: Say what a waiter is"
note "tests: Cover the empty queue"
cost wake 28 "wake: Wake waiters one at a time"
note "docs: Describe the lock"
note "build: Sort the sources"
git tag v1.1
note "tests: Cover two waiters"
cost lock 34 "lock: Spin before sleeping"
note "docs: Describe the idle loop"
git tag v1.2
cost wake 28.0 "wake: Write costs with a point"
note "lock: Name the lock's owner"
git tag v1.3
git checkout --quiet -b io
cost io 51 "io: Flush after each line"
note "io: Describe the flush"
git checkout --quiet main
note "tests: Cover three waiters"
at=$((at + 3600))
GIT_AUTHOR_DATE="$at +0000" GIT_COMMITTER_DATE="$at +0000" git merge --quiet --no-ff --strategy-option=ours --message="Merge branch 'io'" io
note "docs: Describe the io layer"
git tag v1.4
cost lock 24 "lock: Sleep at once"
note "tests: Cover four waiters"
git tag v1.5
note "idle: Rename the loop"
echo "idle.h: no such file" >broken
commit "idle: Split the header"
echo 14 >costs/idle
commit "idle: Poll before sleeping"
note "idle: Describe the polling"
note "tests: Cover polling"
rm broken
commit "idle: Add the header"
note "docs: Describe polling"
git tag v1.6
