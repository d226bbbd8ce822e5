# shellcheck shell=sh
# $1 release, $2 directory of images, $3 command line. Loads the kernel for the next restart; nothing of it is left after
# a reset. "how" is "file" or, where the running kernel or an old kexec knows no loading by file, "classic".
release=$1
boot=$2
words=$3
if ! have kexec; then die 6 "no kexec"; fi
set -- "$root$boot/vmlinuz-$release" "--command-line=$words"
if [ -f "$root$boot/initrd.img-$release" ]; then set -- "$@" "--initrd=$root$boot/initrd.img-$release"; fi
how="file"
if ! kexec -l -s "$@" >&2; then
	how=classic
	kexec -l "$@" >&2
fi
if [ "$(cat "$root/sys/kernel/kexec_loaded")" != 1 ]; then die 7 "no kernel is loaded"; fi
# Gone after a restart, like the loaded kernel itself.
mkdir -p "$root/run/sched-bisect"
write_whole "$root/run/sched-bisect/kexec" "$release"
say how "$how"
