#!/bin/sh
# Makes what `cargo deb` packs beside the repository's own files: completions, manual pages, Debian's changelog.
#   scripts/stage-deb.sh BINARY DIRECTORY
set -eu

binary=$1
directory=$2
here=$(cd "$(dirname "$0")/.." && pwd)

rm -rf "$directory"
mkdir -p "$directory/completions"
"$binary" man "$directory/man"
"$binary" completions bash >"$directory/completions/sched-bisect"
"$binary" completions zsh >"$directory/completions/_sched-bisect"
"$binary" completions fish >"$directory/completions/sched-bisect.fish"
gzip -9n "$directory"/man/*.1
gzip -9n <"$here/CHANGELOG.md" >"$directory/changelog.gz"

# The date of the commit, so that the same source gives the same package.
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct 2>/dev/null || date +%s)}
version=$("$binary" --version)
maintainer=$(sed -n 's/^maintainer = "\(.*\)"$/\1/p' "$here/Cargo.toml")
cat >"$directory/changelog" <<EOF
sched-bisect (${version#sched-bisect }-1) unstable; urgency=medium

  * See /usr/share/doc/sched-bisect/changelog.gz.

 -- $maintainer  $(LC_ALL=C date -u -d "@$epoch" '+%a, %d %b %Y %H:%M:%S +0000')
EOF
