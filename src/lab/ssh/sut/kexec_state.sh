# shellcheck shell=sh
# $1 "unload": unloads a kernel of ours. Tells which is loaded: the release, or "?" for one that is not ours.
loaded() { if [ -r "$root/sys/kernel/kexec_loaded" ]; then cat "$root/sys/kernel/kexec_loaded"; else echo 0; fi; }
ours=$root/run/sched-bisect/kexec
if [ "$(loaded)" = 1 ] && [ -f "$ours" ] && [ "$1" = unload ]; then kexec -u >&2; fi
if [ "$(loaded)" != 1 ]; then
	rm -f "$ours"
	say loaded ''
elif [ -f "$ours" ]; then
	if [ "$1" = unload ]; then die 7 "the kernel is still loaded"; fi
	say loaded "$(cat "$ours")"
else
	say loaded '?'
fi
