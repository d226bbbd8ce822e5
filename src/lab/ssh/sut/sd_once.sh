# shellcheck shell=sh
# $1 entry to boot once; "": none, where it is one of ours.
if [ -n "$1" ]; then
	bootctl set-oneshot "$1" >&2
else
	case $(variable LoaderEntryOneShot) in
	sched-bisect-*) bootctl set-oneshot '' >&2 ;;
	esac
fi
now=$(variable LoaderEntryOneShot)
say once "$now"
case $1:$now in
"$1:$1") ;;
:sched-bisect-*) die 7 "the one-shot entry could not be unset" ;;
:*) ;;
*) die 7 "the one-shot entry does not read back" ;;
esac
