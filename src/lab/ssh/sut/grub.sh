# shellcheck shell=sh
# Stands before the scripts for GRUB: its directory and programs, called grub2 on some systems.
grub=
for name in grub grub2; do
	if [ -z "$grub" ] && [ -f "$root/boot/$name/grub.cfg" ]; then grub=$root/boot/$name; fi
done
if [ -z "$grub" ]; then die 6 "no grub.cfg in /boot/grub or /boot/grub2"; fi
editenv=$(first_of grub-editenv grub2-editenv)
if [ -z "$editenv" ]; then die 6 "no grub-editenv"; fi
environment() {
	if [ -f "$grub/grubenv" ]; then "$editenv" "$grub/grubenv" list; fi
}
