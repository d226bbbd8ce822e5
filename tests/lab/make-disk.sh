#!/usr/bin/env bash
# Make the disk of a machine that reboots: Debian with systemd, sshd, GRUB and a rescue kernel, for a QEMU guest.
#
#   make-disk.sh [--boot-in-root] OUT.img
#
# Beside the image it writes
#   OUT.img.key          private key (and .key.pub) for root, `lab` (sudo without a password) and `nosudo` (no sudo)
#   OUT.img.hostkey.pub  the guest's host key
#   OUT.img.stamp        hash of this script, its options and what it read; the image that fits is left as it is
#
# The disk: 2.2 GB, sparse; partition 1 is / (ext4, label root); partition 2 is /boot (ext4, label boot, 192 MB), which a
# test can fill without touching anything else. With --boot-in-root /boot is a directory, and partition 2 is not there.
#
# GRUB does what Debian's generated configuration does where it matters: next_entry for one boot, else saved_entry, and
# custom.cfg at the end. The entry that is saved is `rescue`.
#
# Nothing is mounted here and no loop device is used: the file systems are filled by mke2fs -d. (grub-install and
# grub-mkconfig want to see the partition, so GRUB's two stages are written by hand.)
#
# On Debian as root, missing packages are installed; elsewhere it says what is missing. LAB_SOURCES: apt sources for the
# guest, by default those of this host; LAB_SUITE: their suite, by default this host's.
set -euo pipefail

self=$(realpath -- "${BASH_SOURCE[0]}")
here=$(dirname -- "$self")
root_mb=2048
boot_mb=192
disk_id=5bd15c01

say() { printf 'make-disk: %s\n' "$*" >&2; }
die() {
    say "error: $*"
    exit 1
}

boot_in_root=no
if [[ ${1:-} == --boot-in-root ]]; then
    boot_in_root=yes
    shift
fi
if [[ $# -ne 1 || -z $1 || $1 == -* ]]; then
    printf 'usage: make-disk.sh [--boot-in-root] OUT.img\n' >&2
    exit 2
fi
mkdir -p -- "$(dirname -- "$1")"
out=$(realpath -- "$1")

# --- what it takes, to make it and to run it ------------------------------------------------------------------------------
missing=""
for need in mmdebstrap:mmdebstrap mke2fs:e2fsprogs sfdisk:fdisk ssh:openssh-client perl:perl-base \
    qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils; do
    command -v "${need%%:*}" >/dev/null || missing+=" ${need##*:}"
done
if [[ -n $missing ]]; then
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || die "please install (names of Debian 12 packages):$missing"
    say "installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of package names
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

# --- is it there already? ---------------------------------------------------------------------------------------------
# One at a time; the lock is on the directory, so no lock file stays behind.
exec 9<"$(dirname -- "$out")"
flock 9

stamp=$({
    cat -- "$self" "$here"/disk/*
    printf '%s\n' "$boot_in_root" "${LAB_SOURCES:-}" "${LAB_SUITE:-}"
} | sha256sum | cut -d' ' -f1)
if [[ -f $out && -f $out.key && -f $out.hostkey.pub && -f $out.stamp && $(<"$out.stamp") == "$stamp" ]]; then
    exit 0
fi

[[ $(id -u) == 0 ]] || die "must run as root: files of the guest belong to root"
sources=${LAB_SOURCES:-/etc/apt/sources.list.d/debian.sources}
[[ -r $sources ]] || sources=/etc/apt/sources.list
# shellcheck disable=SC1091 # a file of the system
suite=${LAB_SUITE:-$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-bookworm}")}

work=$out.partial
trap 'rm -rf --one-file-system -- "$work"' EXIT
rm -rf --one-file-system -- "$work"
mkdir -m 700 -- "$work"
tree=$work/tree

# --- Debian -----------------------------------------------------------------------------------------------------------
packages=(
    systemd-sysv dbus udev openssh-server sudo procps iproute2 kmod zstd
    linux-image-cloud-amd64 initramfs-tools grub2-common grub-pc-bin kexec-tools libnuma1
)
list=$(IFS=, && printf "%s" "${packages[*]}")
ssh-keygen -q -t ed25519 -N '' -C lab -f "$work/key"
ssh-keygen -q -t ed25519 -N '' -C guest -f "$work/hostkey"

say "installing $suite into the disk (about a minute)"
# The answer is there before kexec-tools asks, and the initramfs is made once, as small as this machine needs it.
mmdebstrap --quiet --mode=root --variant=minbase --include="$list" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
    --essential-hook='echo kexec-tools kexec-tools/load_kexec boolean false | chroot "$1" debconf-set-selections' \
    --essential-hook='mkdir -p "$1/etc/initramfs-tools/conf.d"' \
    --essential-hook="copy-in $here/disk/initramfs-lab /etc/initramfs-tools/conf.d" \
    --essential-hook="copy-in $here/disk/modules /etc/initramfs-tools" \
    --customize-hook="copy-in $here/disk/setup.sh $work/key.pub $work/hostkey $work/hostkey.pub /tmp" \
    --customize-hook="copy-in $here/disk/grub.cfg $here/disk/rescue-entry /tmp" \
    --customize-hook="chroot \"\$1\" bash /tmp/setup.sh $boot_in_root $disk_id" \
    "$suite" "$tree" "$sources" >&2 || die "mmdebstrap failed; see above"

# --- the disk ---------------------------------------------------------------------------------------------------------
say "making the file systems"
disk=$work/disk
make_fs() { # label, first MiB, size in MiB, directory
    mke2fs -q -F -t ext4 -L "$1" -m 0 -d "$4" -O ^orphan_file,^metadata_csum_seed -E "offset=$(($2 << 20))" \
        "$disk" "$(($3 << 10))"
}
total=$((1 + root_mb))
layout="label: dos
label-id: 0x$disk_id
start=1MiB, size=${root_mb}MiB, type=83, bootable"
if [[ $boot_in_root == no ]]; then
    layout+="
start=$((1 + root_mb))MiB, size=${boot_mb}MiB, type=83"
    total=$((total + boot_mb))
    mv -- "$tree/boot" "$work/boot"
    mkdir -- "$tree/boot"
fi
truncate -s "${total}M" "$disk"
printf '%s\n' "$layout" | sfdisk -q "$disk"
# GRUB: the first stage around the partition table, the second in the sectors behind it.
dd if="$tree/usr/lib/grub/i386-pc/boot.img" of="$disk" bs=440 count=1 conv=notrunc status=none
dd if="$tree/usr/lib/grub/core-lab.img" of="$disk" bs=512 seek=1 conv=notrunc status=none
make_fs root 1 "$root_mb" "$tree"
[[ $boot_in_root == yes ]] || make_fs boot "$((1 + root_mb))" "$boot_mb" "$work/boot"

mv -- "$work/key" "$out.key"
mv -- "$work/key.pub" "$out.key.pub"
mv -- "$work/hostkey.pub" "$out.hostkey.pub"
mv -- "$disk" "$out"
printf '%s\n' "$stamp" >"$out.stamp"
say "$out: $(du -h -- "$out" | cut -f1) on disk, made in $SECONDS s"
