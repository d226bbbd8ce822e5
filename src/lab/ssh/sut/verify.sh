# shellcheck shell=sh
# $1 release, $2 "boot": only what a boot loader reads. Whether its files are as they were put there (5: no).
release=$1
if [ ! -f "$state/sums/$release" ]; then die 5 "no hashes of $release"; fi
cd "${root:-/}"
if [ "$2" = boot ]; then
	grep -E '/(vmlinuz|initrd\.img)-[^/]*$' "$state/sums/$release" | sha256sum -c - >/dev/null ||
		die 5 "image or initramfs of $release are missing or changed"
	exit 0
fi
sha256sum -c "$state/sums/$release" >/dev/null || die 5 "files of $release are missing or changed"
# What an interrupted installation left behind its last step.
rm -rf "$state/incoming/$release"
