# shellcheck shell=sh
# $1 release, $2 text of its entry, "" for none. An entry of ours under a name with a boot counter (+3, +1-2) is the same.
name=sched-bisect-$1
for entry in "$entries/$name.conf" "$entries/$name+"*.conf; do
	if [ ! -f "$entry" ]; then continue; fi
	rest=${entry##*/"$name"}
	rest=${rest%.conf}
	case ${rest#+} in
	*[!0-9-]*) ;;
	*) if [ -z "$2" ] || [ -n "$rest" ]; then rm -f "$entry"; fi ;;
	esac
done
if [ -n "$2" ]; then
	mkdir -p "$entries"
	printf '%s\n' "$2" >"$entries/$name.new"
	sync
	mv -f "$entries/$name.new" "$entries/$name.conf"
fi
sync
