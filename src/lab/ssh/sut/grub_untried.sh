# shellcheck shell=sh
# No arguments. Takes what our entries left in GRUB's environment away.
if environment | grep -q '^sched_bisect_tried='; then
	"$editenv" "$grub/grubenv" unset sched_bisect_tried
	sync
fi
