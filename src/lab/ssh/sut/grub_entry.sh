# shellcheck shell=sh
# $1 release, $2 text of its entry, "" for none. Text of others in custom.cfg stays as it is.
release=$1
begin="# sched-bisect begin $release"
end="# sched-bisect end $release"
custom=$grub/custom.cfg
if [ ! -f "$custom" ]; then
	if [ -z "$2" ]; then exit 0; fi
	: >"$custom.sched-bisect-new"
else
	if [ "$(grep -Fxc "$begin" "$custom")" != "$(grep -Fxc "$end" "$custom")" ]; then
		die 3 "$custom: a line \"$begin\" or \"$end\" is gone; remove what is left of the entry by hand"
	fi
	# Owner and mode.
	cp -p "$custom" "$custom.sched-bisect-new"
	awk -v begin="$begin" -v end="$end" '
		$0 == begin { inside = 1 }
		!inside { print }
		$0 == end { inside = 0 }
	' "$custom" >"$custom.sched-bisect-new"
fi
if [ -n "$2" ]; then
	printf '%s\n%s\n%s\n' "$begin" "$2" "$end" >>"$custom.sched-bisect-new"
	if check=$(first_of grub-script-check grub2-script-check) && [ -n "$check" ]; then
		"$check" "$custom.sched-bisect-new" || die 1 "GRUB does not understand the entry"
	fi
fi
sync
if [ -s "$custom.sched-bisect-new" ]; then
	mv -f "$custom.sched-bisect-new" "$custom"
else
	rm -f "$custom" "$custom.sched-bisect-new"
fi
sync
