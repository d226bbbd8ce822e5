#!/bin/sh
# The hardware, firmware and kernels of a machine that is a network namespace: what GRUB would boot is read from GRUB's own
# files, by GRUB's own program, and "booted" by changing what the machine tells of itself.
#
#   restart.sh DIR reboot|kexec|power
#
# DIR/faults has lines "WHAT RELEASE [TIMES]" (RELEASE may be a glob):
#   panic      it panics on its way up; the machine falls back by itself
#   hang       it is not seen until the power is switched
#   ignored    the one-shot entry is passed over
#   late       services take long to start
#   nologin    nobody is let in for a while
#   no-kexec   kexec does nothing
#   slow-down  services take long to end
# TIMES, where given, is how often.
set -u
dir=$1 how=$2
env=/boot/grub/grubenv

fault() {
    while read -r what which times; do
        # shellcheck disable=SC2254 # a pattern
        case "$what $2" in "$1 "$which) ;; *) continue ;; esac
        if [ -n "${times:-}" ]; then
            [ "$times" -gt 0 ] || continue
            awk -v old="$what $which $times" -v new="$what $which $((times - 1))" \
                '$0 == old { print new; next } { print }' "$dir/faults" >"$dir/faults.new"
            mv "$dir/faults.new" "$dir/faults"
        fi
        return 0
    done <"$dir/faults"
    return 1
}

say() { echo "$*" >>"$dir/console.log"; }

variable() { grub-editenv $env list | sed -n "s/^$1=//p"; }

# Comes up as release $1 with the command line $2.
up() {
    echo "$1" >"$dir/osrelease"
    echo "$2" >"$dir/cmdline"
    cat /proc/sys/kernel/random/uuid >"$dir/boot_id.new"
    cat "$dir/boot_id.new" >"$dir/boot_id"
    echo 0 >"$dir/sys/kexec_loaded"
    rm -rf /run/sched-bisect
    echo running >"$dir/state"
    say "Linux version $1"
    if fault late "$1"; then
        echo starting >"$dir/state"
        (sleep 4; echo running >"$dir/state") &
    fi
    if fault nologin "$1"; then
        echo "System is booting up." >/run/nologin
        (sleep 4; rm -f /run/nologin) &
    fi
    ip link set control up
    say "sut login: "
}

rescue() { up "$(cat "$dir/rescue")" "root=/dev/fake quiet"; }

# The entry of custom.cfg with the id $1: its release and its command line.
entry() {
    awk -v id="$1" '
        /^menuentry/ { inside = index($0, "\047" id "\047") > 0 }
        inside && $1 == "set" { split($2, pair, "="); print "set", pair[1], pair[2] }
        inside && $1 == "linux" { sub(/^.*vmlinuz-/, "", $0); print "linux", $0 }
    ' /boot/grub/custom.cfg 2>/dev/null
}

exec 2>>"$dir/restart.log"
[ "$how" = power ] || sleep 0.2
if [ "$how" = kexec ]; then
    if fault no-kexec "$(cat /run/sched-bisect/kexec)"; then exit 0; fi
    release=$(cat /run/sched-bisect/kexec)
    words=$(cat "$dir/kexec_words")
fi
if [ "$how" != power ]; then
    echo stopping >"$dir/state"
    if fault slow-down any; then sleep 8; fi
fi
echo >"$dir/boot_id.down"
# All that runs ends, but the first process and this one.
ip link set control down
for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    case $pid in 1 | $$) ;; *) kill -9 "$pid" ;; esac
done
rm -f /run/nologin
sleep 0.5
say "restart by $how"
if [ "$how" != kexec ]; then
    id=$(variable next_entry)
    grub-editenv $env unset next_entry
    release= words=
    if [ -n "$id" ] && ! fault ignored "${id#sched-bisect-}"; then
        found=$(entry "$id")
        set -- $(printf '%s\n' "$found" | sed -n 's/^set //p')
        [ $# = 2 ] && grub-editenv $env set "$1=$2"
        line=$(printf '%s\n' "$found" | sed -n 's/^linux //p')
        release=${line%% *} words=${line#* }
    fi
fi
if [ -z "$release" ] || [ ! -f "/boot/vmlinuz-$release" ]; then
    rescue
elif fault panic "$release"; then
    say "Linux version $release"
    say "Kernel panic - not syncing: planted"
    sleep 0.5
    rescue
elif fault hang "$release"; then
    say "Linux version $release"
else
    up "$release" "$words"
fi
