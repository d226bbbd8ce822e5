# shellcheck shell=sh
# $1 release, $2 to $5 SHA-256 of image, configuration, System.map and archive of modules ("-": there is none),
# $6 directory of images.
# Checks what came over (5: names the file as "damaged" and removes it), then puts everything but the image in place.
release=$1
incoming=$state/incoming/$release
check() {
	if [ "$2" = - ]; then return; fi
	if [ "$(hash_of "$incoming/$1")" != "$2" ]; then
		rm -f "$incoming/$1"
		say damaged "$1"
		die 5 "$1 is not what was sent"
	fi
}
put() {
	if [ "$2" = - ]; then return; fi
	cp "$incoming/$1" "$root/boot/.sched-bisect.$release"
	mv -f "$root/boot/.sched-bisect.$release" "$root/boot/$1-$release"
}
check image "$2"
check config "$3"
check System.map "$4"
check modules.tar "$5"

modules=$root/lib/modules
mkdir -p "$modules" "$root/boot"
# Ours, by the manifest: what an interrupted installation left. An image without the rest must never be booted.
rm -f "$root$6/vmlinuz-$release" "$root$6/initrd.img-$release"
rm -rf "$modules/.sched-bisect.$release" "${modules:?}/$release"
mkdir "$modules/.sched-bisect.$release"
if [ "$5" = - ]; then
	# What makes an initramfs looks for the directory.
	mkdir -p "$modules/.sched-bisect.$release/lib/modules/$release"
else
	tar -C "$modules/.sched-bisect.$release" -xof "$incoming/modules.tar"
fi
unpacked=$modules/.sched-bisect.$release/lib/modules/$release
if [ ! -d "$unpacked" ]; then die 2 "the archive holds no lib/modules/$release"; fi
mv "$unpacked" "$modules/$release"
rm -rf "$modules/.sched-bisect.$release"
put config "$3"
put System.map "$4"
if [ ! -f "$modules/$release/modules.dep" ] && have depmod; then
	depmod -b "${root:-/}" "$release" || true
fi
