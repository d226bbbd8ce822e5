# shellcheck shell=sh
# $1 release, $2 directory of images, $3 SHA-256 of the image. The image comes last: where it is, everything is.
release=$1
boot=$2
incoming=$state/incoming/$release
new=$root$boot/.sched-bisect.$release
cp "$incoming/image" "$new"
if [ "$(hash_of "$new")" != "$3" ]; then
	rm -f "$new"
	die 5 "the image differs after copying"
fi
sync
mv -f "$new" "$root$boot/vmlinuz-$release"
mkdir -p "$state/sums"
(
	cd "${root:-/}"
	for file in "${boot#/}/vmlinuz-$release" "${boot#/}/initrd.img-$release" \
		"boot/config-$release" "boot/System.map-$release"; do
		if [ -f "$file" ]; then sha256sum "$file"; fi
	done
	# Indexes may be made anew by depmod at any time.
	find "lib/modules/$release" -type f ! -name 'modules.*' -exec sha256sum {} +
) >"$state/sums/.$release"
mv -f "$state/sums/.$release" "$state/sums/$release"
{
	grep -v '^whole=' "$kernels/$release"
	say whole 1
} >"$kernels/.$release"
sync
mv -f "$kernels/.$release" "$kernels/$release"
rm -rf "$incoming"
sync
