#!/bin/sh
# Installs what `make demo` and `make check` need. On Debian as root: installs what is missing, asks nothing.
# Elsewhere: prints the list and fails if something is missing. Arguments are more of what is needed, as PROGRAM:PACKAGE.
set -eu

# program or file : Debian package
needs="
make:make gcc:gcc git:git flex:flex bison:bison bc:bc xz:xz-utils cpio:cpio ccache:ccache kmod:kmod
qemu-system-x86_64:qemu-system-x86 busybox:busybox-static hackbench:rt-tests
/usr/include/libelf.h:libelf-dev /usr/include/openssl/ssl.h:libssl-dev
/usr/src/linux-source-6.12.tar.xz:linux-source-6.12
/usr/sbin/mariadbd:mariadb-server-core mysqladmin:mariadb-client sysbench:sysbench
/usr/sbin/sshd:openssh-server ssh:openssh-client rsync:rsync /usr/sbin/ip:iproute2
/usr/lib/git-core/git-send-email:git-email grub-editenv:grub2-common shellcheck:shellcheck curl:curl mandoc:mandoc
chromium:chromium $*
"

missing=""
for need in $needs; do
    thing=${need%%:*}
    package=${need##*:}
    case $thing in
    /usr/include/openssl/*) [ -e "$thing" ] || ls /usr/include/*/openssl >/dev/null 2>&1 || missing="$missing $package" ;;
    /*) [ -e "$thing" ] || missing="$missing $package" ;;
    busybox) dpkg -s busybox-static >/dev/null 2>&1 || missing="$missing $package" ;;
    *) command -v "$thing" >/dev/null 2>&1 || missing="$missing $package" ;;
    esac
done

if ! command -v cargo >/dev/null 2>&1; then
    echo "install-deps: Rust 1.95 or newer is missing; Debian's is too old. See https://rustup.rs" >&2
    exit 1
fi
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "install-deps: installing$missing" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # The tests start their own sshd; the one that the package would start for the whole host is told not to.
    case $missing in
    *openssh-server*)
        mkdir -p /etc/ssh
        [ -e /etc/ssh/sshd_not_to_be_run ] || {
            : >/etc/ssh/sshd_not_to_be_run
            echo "install-deps: no sshd for this host: /etc/ssh/sshd_not_to_be_run" >&2
        }
        ;;
    esac
    # shellcheck disable=SC2086 # a list of package names
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
    echo "install-deps: please install (names of Debian 12 packages):$missing" >&2
    exit 1
fi
