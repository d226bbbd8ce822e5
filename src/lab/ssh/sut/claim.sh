# shellcheck shell=sh
# $1 release, $2 text of its manifest. Writes the manifest before anything else of the kernel is there; refuses (3) when
# a file it names exists and no manifest of ours named it before.
release=$1
text=$2
manifest=$kernels/$release
printf '%s\n' "$text" | {
	foreign=0
	while IFS='=' read -r key path; do
		case $key in file | dir) ;; *) continue ;; esac
		if [ ! -e "$root$path" ] && [ ! -L "$root$path" ]; then continue; fi
		if [ -f "$manifest" ] && grep -Fxq "$key=$path" "$manifest"; then continue; fi
		say foreign "$path"
		foreign=1
	done
	exit "$foreign"
} || die 3 "files are in the way that this program did not put there"
mkdir -p "$kernels" "$state/incoming/$release"
# A name with a leading dot is no manifest to anybody.
printf '%s\n' "$text" >"$kernels/.$release"
mv -f "$kernels/.$release" "$manifest"
sync
