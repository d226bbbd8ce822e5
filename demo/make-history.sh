#!/usr/bin/env bash
# Make a kernel tree with a short history that is worth bisecting.
#
#   make-history.sh DIR
#
# DIR becomes a git repository: Debian's linux-source-6.12 as one commit and
# 30 commits on top of it, from the mails in patches/ beside this script. The
# working tree is checked out on branch `main`. Tags:
#
#   v6.12-demo-good .. v6.12-demo-bad     30 commits, with a merged topic branch,
#                                         two commits that do not build, two
#                                         that do not boot, a decoy and the one
#                                         that makes hackbench slower
#   v6.12-short-good .. v6.12-short-bad   6 of them in a row, all of which build
#                                         and boot, the slow one among them
#
# Nothing but the tarball decides the commit ids: names and dates are fixed and
# no configuration of the user is read. A complete DIR is left as it is; an
# outdated one is made anew. The work is done in DIR.partial/tree, which is
# renamed at the end: a killed run leaves no DIR that looks complete, and the
# next run throws its remains away.
#
# Environment: LINUX_SOURCE_TARBALL, by default
# /usr/src/linux-source-6.12.tar.xz (Debian package linux-source-6.12).
# Needs git 2.28 or newer, tar, xz; 2.5 GB of disk.
set -euo pipefail

self=$(realpath -- "${BASH_SOURCE[0]}")
patches=$(dirname -- "$self")/patches
tarball=${LINUX_SOURCE_TARBALL:-/usr/src/linux-source-6.12.tar.xz}

say() { printf 'make-history: %s\n' "$*" >&2; }
die() {
    say "error: $*"
    exit 1
}

if [[ $# -ne 1 || -z $1 || $1 == -* ]]; then
    printf 'usage: make-history.sh DIR\n' >&2
    exit 2
fi
[[ -r $tarball ]] || die "cannot read $tarball (apt install linux-source-6.12, or set LINUX_SOURCE_TARBALL)"
mkdir -p -- "$(dirname -- "$1")"
dir=$(realpath -- "$1")
partial=$dir.partial
marker=$partial/made-by-make-history
tree=$partial/tree

# --- an environment in which git does the same for everyone -------------------
while read -r name; do unset "$name"; done < <(git rev-parse --local-env-vars)
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_ATTR_NOSYSTEM=1 XDG_CONFIG_HOME=/nonexistent HOME=/nonexistent
export LC_ALL=C TZ=UTC GIT_TERMINAL_PROMPT=0
export GIT_AUTHOR_NAME='Demo Developer' GIT_AUTHOR_EMAIL=developer@example.org
export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
umask 022

# One at a time: two runs for the same DIR would delete each other's work. The
# lock is on the parent directory, so no lock file stays behind.
exec 9<"$(dirname -- "$dir")"
flock 9

# --- is it there already? ------------------------------------------------------
stamp=$(cat -- "$self" "$patches"/*.patch "$tarball" | sha256sum | cut -d' ' -f1)
stamp_file=.git/demo-history-stamp

# Whatever is deleted carries proof that this script made it: in DIR.partial the
# marker, which comes first and goes last; in DIR the stamp. An old DIR is moved
# into DIR.partial before it is deleted, for a kill in between.
discard_partial() {
    rm -rf -- "$tree" "$partial/old"
    rm -f -- "$marker"
    rmdir -- "$partial"
}

if [[ -e $partial ]]; then
    [[ -f $marker || -z $(ls -A -- "$partial") ]] ||
        die "$partial exists and was not made by this script; remove it"
    say "throwing away the half-made $partial"
    discard_partial
fi
if [[ -f $dir/$stamp_file ]]; then
    if [[ $(<"$dir/$stamp_file") == "$stamp" ]] &&
        git -C "$dir" rev-parse -q --verify 'v6.12-demo-bad^{commit}' >/dev/null; then
        say "$dir holds the complete history already"
        exit 0
    fi
    say "$dir is outdated, making it anew"
    mkdir -- "$partial"
    : >"$marker"
    mv -T -- "$dir" "$partial/old"
    discard_partial
elif [[ -e $dir ]]; then
    [[ -z $(ls -A -- "$dir") ]] ||
        die "$dir exists and was not made by this script; name another directory"
fi

# --- the base --------------------------------------------------------------------
# Commits with the date $1, the message on standard input.
at() {
    local date=$1
    shift
    GIT_AUTHOR_DATE=$date GIT_COMMITTER_DATE=$date git -C "$tree" "$@"
}

mkdir -- "$partial"
: >"$marker"
git init -q --template= -b main "$tree"
git -C "$tree" config gc.auto 0
git -C "$tree" config maintenance.auto false
git -C "$tree" config advice.detachedHead false

say "unpacking $tarball"
tar -x -f "$tarball" -C "$tree" --strip-components=1 --no-same-owner
version=$(awk '$1 ~ /^(VERSION|PATCHLEVEL|SUBLEVEL)$/ { printf "%s%s", dot, $3; dot = "." }
    /^NAME/ { exit }' "$tree/Makefile")

say "importing Linux $version (some 20 seconds)"
# Loose objects at the fastest compression took the least time: 19 s against 26 s
# for one pack (core.bigFileThreshold=1). No fsync: what is lost is made again.
git -C "$tree" -c core.looseCompression=1 -c core.fsync=none -c core.preloadIndex=true \
    add --all --force .
printf 'Linux %s\n' "$version" | at '2024-11-17 22:15:08 +0000' commit -q -F -
git -C "$tree" tag v6.12-demo-good

# --- the history -----------------------------------------------------------------
# Applies the patches numbered $1 to $2. One line of context is enough, since
# the surroundings move a little between the point releases.
apply() {
    local n files=()
    for ((n = $1; n <= $2; n++)); do
        files+=("$patches/$(printf '%02d' "$n")"-*.patch)
    done
    say "applying patches $1 to $2"
    git -C "$tree" am -q -C1 --no-3way --committer-date-is-author-date -- "${files[@]}" >&2 ||
        die "a patch does not fit Linux $version; see above"
}

apply 1 5
git -C "$tree" branch sched/loadavg
apply 6 8
git -C "$tree" checkout -q sched/loadavg
apply 9 12
git -C "$tree" checkout -q main
say "merging the topic branch"
at '2024-11-22 10:00:00 +0000' merge -q --no-ff \
    -m "Merge branch 'sched/loadavg' into sched/core" sched/loadavg >&2
git -C "$tree" branch -q -D sched/loadavg
apply 14 16
git -C "$tree" tag v6.12-short-good
apply 17 22
git -C "$tree" tag v6.12-short-bad
apply 23 30
git -C "$tree" tag v6.12-demo-bad

# --- done ------------------------------------------------------------------------
printf '%s\n' "$stamp" >"$tree/$stamp_file"
mv -T -- "$tree" "$dir"
discard_partial
say "$dir: $(git -C "$dir" rev-list --count v6.12-demo-good..v6.12-demo-bad) commits on Linux $version"
