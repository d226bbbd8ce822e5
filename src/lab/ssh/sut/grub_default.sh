# shellcheck shell=sh
# $1 value of saved_entry; "": none. Puts it back.
if [ -n "$1" ]; then
	"$editenv" "$grub/grubenv" set "saved_entry=$1"
else
	"$editenv" "$grub/grubenv" unset saved_entry
fi
sync
now=$(environment | sed -n 's/^saved_entry=//p')
if [ "$now" != "$1" ]; then die 7 "saved_entry reads \"$now\""; fi
