# shellcheck shell=sh
# $1 release, $2 "yes": also when it runs. Removes what its manifest names, the manifest last.
release=$1
manifest=$kernels/$release
if [ ! -f "$manifest" ]; then exit 0; fi
if [ "$release" = "$(running)" ] && [ "$2" != yes ]; then die 4 "$release is running"; fi
gone=$root/lib/modules/.sched-bisect.$release
rm -rf "$gone"
while IFS='=' read -r key path; do
	# Only names that can be ours, whatever the manifest has become.
	case $key:$path in
	*..*) ;;
	"file:/var/lib/initramfs-tools/$release" | "file:"*"-$release") rm -f "$root$path" ;;
	"dir:/lib/modules/$release")
		if [ -d "$root$path" ]; then mv "$root$path" "$gone"; fi
		;;
	esac
done <"$manifest"
rm -rf "$gone" "$state/incoming/$release"
rm -f "$state/sums/$release"
sync
rm -f "$manifest"
sync
