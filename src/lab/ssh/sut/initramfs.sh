# shellcheck shell=sh
# $1 release, $2 directory of images, $3 one of mkinitramfs, dracut, update-initramfs, mkinitcpio. Makes the initramfs.
# Of mkinitramfs and update-initramfs the first leaves nothing behind that a later `update-initramfs -k all` would take up.
release=$1
boot=$2
tool=$3
new=$root$boot/.sched-bisect.$release
rm -f "$new"
case $tool in
mkinitramfs) mkinitramfs -o "$new" "$release" >&2 ;;
dracut) dracut --force --kver "$release" "$new" >&2 ;;
mkinitcpio) mkinitcpio -k "$release" -g "$new" >&2 ;;
update-initramfs)
	rm -f "$root/boot/initrd.img-$release" "$root/var/lib/initramfs-tools/$release"
	update-initramfs -c -k "$release" >&2
	mv -f "$root/boot/initrd.img-$release" "$new"
	;;
*) die 6 "no way known to make an initramfs by $tool" ;;
esac
if [ ! -s "$new" ]; then die 1 "$tool made no initramfs"; fi
mv -f "$new" "$root$boot/initrd.img-$release"
