# shellcheck shell=sh
# $1 id of the entry to boot once; "": none, where it is one of ours (no other is ever unset).
id=$1
if [ -n "$id" ]; then
	reboot=$(first_of grub-reboot grub2-reboot)
	# Where it is missing or fails, its effect is one variable; that is read back in any case.
	if [ -z "$reboot" ] || ! "$reboot" --boot-directory="$root/boot" "$id" >&2; then
		"$editenv" "$grub/grubenv" set "next_entry=$id"
	fi
else
	case $(environment | sed -n 's/^next_entry=//p') in
	sched-bisect-*) "$editenv" "$grub/grubenv" unset next_entry ;;
	esac
fi
sync
now=$(environment | sed -n 's/^next_entry=//p')
say next_entry "$now"
case $id:$now in
"$id:$id") ;;
:sched-bisect-*) die 7 "next_entry could not be unset" ;;
:*) ;;
*) die 7 "next_entry does not read back" ;;
esac
