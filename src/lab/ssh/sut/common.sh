#!/bin/sh
# Stands before every script of this directory; they run under dash, bash and busybox sh.
# $1: a directory that every path starts with; "" on a real machine.
# Answers are lines key=value on standard output. Exit statuses of all of them:
#   0 done   1 a command failed, standard error says why   2 what is asked for is not there
#   3 a file is in the way that is not ours   4 the running kernel would be hit   5 a hash differs
#   6 a program is missing   7 what was set does not read back
set -eu
LC_ALL=C
# ssh gives root's commands the PATH of a user on some systems.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export LC_ALL PATH
umask 022
root=$1
shift
state=$root/var/lib/sched-bisect
kernels=$state/kernels

say() { printf '%s=%s\n' "$1" "$2"; }

die() {
	status=$1
	shift
	printf '%s\n' "$*" >&2
	exit "$status"
}

have() { command -v "$1" >/dev/null 2>&1; }

# The first of the programs that is there.
first_of() {
	for program in "$@"; do
		if have "$program"; then
			printf '%s' "$program"
			return
		fi
	done
}

running() {
	if [ -r "$root/proc/sys/kernel/osrelease" ]; then
		cat "$root/proc/sys/kernel/osrelease"
	fi
}

hash_of() {
	line=$(sha256sum <"$1")
	printf '%s' "${line%% *}"
}

bytes_of() { if [ -f "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi; }

# Text $2 as the file $1, whole or not at all.
write_whole() {
	printf '%s' "$2" >"$1.sched-bisect-new"
	mv -f "$1.sched-bisect-new" "$1"
}

# What an interrupted installation left under temporary names of ours in the directory $1.
clear_temporary() {
	for left in "$1"/.sched-bisect.*; do
		if [ -e "$left" ]; then rm -rf "$left"; fi
	done
}

# Mount point and free bytes of the file system that holds (or will hold) $2, as $1_mount and $1_free.
say_free() {
	place=$2
	while [ ! -e "$place" ]; do place=$(dirname "$place"); done
	df -Pk "$place" | {
		read -r _
		read -r _ _ _ free _ mount
		say "$1_mount" "$mount"
		say "$1_free" "$((free * 1024))"
	}
}
