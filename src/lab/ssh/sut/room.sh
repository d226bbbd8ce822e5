# shellcheck shell=sh
# $1 release, $2 directory of images. Removes temporary files of ours, then tells the room there is, what of the release
# is there already, and how large an initramfs may become.
release=$1
boot=$2
clear_temporary "$root$boot"
clear_temporary "$root/boot"
clear_temporary "$root/lib/modules"
say_free boot "$root$boot"
say_free files "$root/boot"
say_free modules "$root/lib/modules"
say_free state "$state"
say boot_there $(($(bytes_of "$root$boot/vmlinuz-$release") + $(bytes_of "$root$boot/initrd.img-$release")))
there=0
if [ -d "$root/lib/modules/$release" ]; then
	there=$(du -sk "$root/lib/modules/$release")
	there=$((${there%%[!0-9]*} * 1024))
fi
say modules_there "$there"
there=0
for file in image config System.map modules.tar; do
	there=$((there + $(bytes_of "$state/incoming/$release/$file")))
done
say state_there "$there"
largest=0
now=$(running)
for file in "$root/boot/initrd.img-$now" "$root/boot/initramfs-$now.img" "$root$boot/initrd.img-$now"; do
	size=$(bytes_of "$file")
	if [ "$size" -gt "$largest" ]; then largest=$size; fi
done
for manifest in "$kernels"/*; do
	size=$(bytes_of "$root$boot/initrd.img-${manifest##*/}")
	if [ "$size" -gt "$largest" ]; then largest=$size; fi
done
say initramfs "$largest"
