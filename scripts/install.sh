#!/bin/sh
# Puts a built sched-bisect where a system looks for it, or takes it away again; `make install` and `make uninstall` run it.
#   scripts/install.sh install|uninstall BINARY PREFIX [DESTDIR]
# Completions and manual pages are made by the binary itself.
set -eu

what=$1
binary=$2
prefix=$3
root=${4:-}$prefix
here=$(cd "$(dirname "$0")/.." && pwd)

bash_completion=$root/share/bash-completion/completions/sched-bisect
zsh_completion=$root/share/zsh/site-functions/_sched-bisect
fish_completion=$root/share/fish/vendor_completions.d/sched-bisect.fish

put() { # MODE DIRECTORY FILE...
    mode=$1 directory=$2
    shift 2
    install -d -m 755 "$directory"
    install -m "$mode" "$@" "$directory"
}

completion() { # SHELL FILE
    "$binary" completions "$1" >"$made/completion"
    install -d -m 755 "$(dirname "$2")"
    install -m 644 "$made/completion" "$2"
}

case $what in
install)
    made=$(mktemp -d)
    trap 'rm -rf "$made"' EXIT
    "$binary" man "$made/man"
    put 755 "$root/bin" "$binary"
    put 644 "$root/share/man/man1" "$made"/man/*.1
    completion bash "$bash_completion"
    completion zsh "$zsh_completion"
    completion fish "$fish_completion"
    put 644 "$root/share/sched-bisect/profiles" "$here"/bisect-profiles/*
    put 755 "$root/share/sched-bisect/hooks" "$here"/hooks/*.sh
    # Read by the others, not run.
    put 644 "$root/share/sched-bisect/hooks" "$here/hooks/power-common.sh" "$here/hooks/README.md"
    put 644 "$root/share/doc/sched-bisect" "$here"/README.md "$here"/CHANGELOG.md "$here"/LICENSE-*
    put 644 "$root/share/doc/sched-bisect/docs" "$here"/docs/*.md
    ;;
uninstall)
    rm -f "$root/bin/sched-bisect" "$root"/share/man/man1/sched-bisect.1 "$root"/share/man/man1/sched-bisect-*.1
    rm -f "$bash_completion" "$zsh_completion" "$fish_completion"
    rm -rf "$root/share/sched-bisect" "$root/share/doc/sched-bisect"
    ;;
*)
    echo "install.sh: $what is neither install nor uninstall" >&2
    exit 2
    ;;
esac
