# shellcheck shell=sh
# $1 value of the default entry; "": none is set. Puts it back.
bootctl set-default "$1" >&2
now=$(variable LoaderEntryDefault)
if [ "$now" != "$1" ]; then die 7 "the default entry reads \"$now\""; fi
