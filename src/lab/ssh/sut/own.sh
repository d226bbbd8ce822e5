# shellcheck shell=sh
# $1 directory of images, $2 release. Tells which files the machine's own kernel has, under the names that entries use.
if [ ! -f "$root$1/vmlinuz-$2" ]; then die 2 "no $1/vmlinuz-$2"; fi
say image "$1/vmlinuz-$2"
if [ -f "$root$1/initrd.img-$2" ]; then say initramfs "$1/initrd.img-$2"; fi
