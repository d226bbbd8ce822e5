#!/bin/sh
# Plays QEMU and its guest for tests.rs: the command channel is standard input (a socket), the console standard output.
# The words in the kernel "image" say what goes wrong.
while [ $# -gt 0 ]; do
    case $1 in
    -kernel) image=$2 ;;
    -append) cmdline=$2 ;;
    esac
    shift
done
mode=" $(cat "$image") "
for word in $cmdline; do
    case $word in sb.boot=*) token=${word#sb.boot=} ;; esac
done
# For commands that play the kernel.
exec 4>&1
dir=$(mktemp -d "$(dirname "$image")/guest.XXXXXX")

is() {
    case $mode in *" $1 "*) true ;; *) false ;; esac
}

# answer ID STATUS TAINT_AFTER: stdout and stderr come from files.
answer() {
    head="$token $1 $2 0 $3 $(wc -c <"$dir/out") $(busybox crc32 <"$dir/out") $(wc -c <"$dir/err") $(busybox crc32 <"$dir/err")"
    middle=$(base64 "$dir/out")
    if is always-damaged || { is damaged-once && [ ! -e "$dir/damaged" ]; }; then
        : >"$dir/damaged"
        middle="A$middle"
    fi
    printf '\nSB1 R %s\n%s\nSB1 S %s %s\n%s\nSB1 E %s\n' \
        "$head" "$middle" "$token" "$1" "$(base64 "$dir/err")" "$head" >&0
}

is refuses && { echo "qemu: -foo: invalid option" >&2; exit 1; }
is mute && exec sleep 300
is ends-mute && exit 0
echo "[    0.000000] Linux version 6.12.0"
is panics-up && { echo "[    0.5] Kernel panic - not syncing: VFS: no root"; exit 0; }
is panics-and-stays && { echo "[    0.5] Kernel panic - not syncing: stuck"; exec sleep 300; }
is oopses-up && echo "[    0.5] BUG: kernel NULL pointer dereference, address: 0"
is hangs-up && exec sleep 300
is greets-as-another && token=00000000-0000000000000000

boot_id=$(cat /proc/sys/kernel/random/uuid)
is same-boot-id && boot_id=11111111-2222-4333-8444-555555555555
release=6.12.0-rc1+
is other-release && release=6.12.0-rc2+
printf 'boot_id %s\nrelease %s\ncpus 0\ncmdline %s\nnotes\n' "$boot_id" "$release" "$cmdline" >"$dir/out"
: >"$dir/err"
answer 0 0 0

last=0 status=0 taint=0
while read -r magic tok id verb length payload; do
    [ "$magic $tok" = "SB1 $token" ] || continue
    if [ "$verb" = K ]; then
        is deaf-to-kill || printf 'SB1 K %s %s\n' "$token" "$id" >&0
        continue
    fi
    [ "${#payload}" = "$length" ] || continue
    if is refuses-once && [ ! -e "$dir/refused" ]; then
        : >"$dir/refused"
        printf 'SB1 N %s %s\n' "$token" "$id" >&0
        continue
    fi
    if [ "$id" != "$last" ]; then
        last=$id
        printf 'SB1 A %s %s\n' "$token" "$id" >&0
        is panics-in-run && { echo "[    9.0] Kernel panic - not syncing: in run"; exit 0; }
        is restarts-in-run && exit 0
        is killed-in-run && kill -9 $$
        is told-to-end && { echo "qemu: terminating on signal 15 from pid 1 (kill)" >&2; exit 0; }
        is warns-in-run && echo "[    9.0] WARNING: CPU: 0 PID: 1 at a.c:1"
        is never-ends && continue
        printf %s "$payload" | base64 -d >"$dir/command"
        taint=0
        is taints && taint=512
        sh "$dir/command" >"$dir/out" 2>"$dir/err" </dev/null
        status=$?
        echo ran >>"$dir/../ran"
    fi
    answer "$id" "$status" "$taint"
done
