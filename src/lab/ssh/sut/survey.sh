# shellcheck shell=sh
# No arguments. What a machine can do as one under test; never fails for what is missing.
say user "$(id -u)"
say running "$(running)"
if [ -r "$root/proc/cmdline" ]; then say cmdline "$(cat "$root/proc/cmdline")"; fi
for program in grub-reboot grub2-reboot grub-editenv grub2-editenv bootctl kexec systemctl mkinitramfs dracut \
	update-initramfs mkinitcpio sha256sum tar; do
	if have "$program"; then say program "$program"; fi
done
for name in grub grub2; do
	if [ -f "$root/boot/$name/grub.cfg" ]; then
		say grub "/boot/$name"
		if grep -q next_entry "$root/boot/$name/grub.cfg"; then say grub_once yes; fi
		if grep -q 'custom\.cfg' "$root/boot/$name/grub.cfg"; then say grub_custom yes; fi
		probe=$(first_of grub-probe grub2-probe)
		if [ -n "$probe" ]; then
			say grub_fs "$("$probe" --target=fs "$root/boot/$name" 2>/dev/null || true)"
			say grub_abstraction "$("$probe" --target=abstraction "$root/boot/$name" 2>/dev/null | tr '\n' ' ' || true)"
		fi
		if have findmnt; then
			say grub_mount "$(findmnt -n -o FSTYPE,SOURCE -T "$root/boot/$name" 2>/dev/null | tr -s ' ' || true)"
		fi
		break
	fi
done
for file in "$root/etc/default/grub" "$root"/etc/default/grub.d/*.cfg; do
	if [ -f "$file" ]; then sed -n 's/^\(GRUB_[A-Z_]*\)=\(.*\)$/setting.\1=\2/p' "$file"; fi
done
if [ -d "$root/sys/firmware/efi" ]; then
	say efi yes
	secure=$root/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
	if [ -r "$secure" ]; then say secure_boot "$(tail -c 1 "$secure" | od -An -tu1 | tr -d ' ')"; fi
fi
if have bootctl; then say systemd_boot "$(bootctl is-installed 2>/dev/null || true)"; fi
if [ -r "$root/sys/kernel/security/lockdown" ]; then say lockdown "$(cat "$root/sys/kernel/security/lockdown")"; fi
if have kexec; then say kexec "$(kexec -v 2>/dev/null || true)"; fi
if [ -r "$root/sys/kernel/kexec_loaded" ]; then say kexec_kernel yes; fi
if [ -r "$root/proc/sys/kernel/kexec_load_disabled" ]; then
	say kexec_disabled "$(cat "$root/proc/sys/kernel/kexec_load_disabled")"
fi
say_free boot "$root/boot"
say_free modules "$root/lib/modules"
say_free state "$state"
for image in "$root"/boot/vmlinuz-*; do
	if [ -f "$image" ]; then
		say kernel "${image##*/vmlinuz-}"
		say kernel_bytes "$(bytes_of "$image")"
	fi
done
now=$(running)
for file in "$root/boot/initrd.img-$now" "$root/boot/initramfs-$now.img"; do
	if [ -f "$file" ]; then say initramfs_bytes "$(bytes_of "$file")"; fi
done
if [ -d "$root/lib/modules/$now" ]; then
	used=$(du -sk "$root/lib/modules/$now")
	say modules_bytes $((${used%%[!0-9]*} * 1024))
fi
