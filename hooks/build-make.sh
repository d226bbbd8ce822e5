#!/bin/sh
# Builds the candidate in its own tree with make; the product stays there.
#
#   sched-bisect ... --build '/path/to/build-make.sh [TARGET]...'
#
# By hand: SB_SOURCE=/path/to/tree hooks/build-make.sh
set -eu
cd "$SB_SOURCE"
if ! [ -e Makefile ] && ! [ -e makefile ] && ! [ -e GNUmakefile ]; then
    echo "no makefile in this commit" >&2
    exit 125
fi
exec make -j"$(nproc)" "$@"
