#!/bin/sh
# First process of the guest. Takes commands on the second serial port, so that nothing the kernel prints on the
# first can be taken for an answer. The other side of this conversation is channel.rs.
#
#   host:  SB1 <token> <id> R <length> <command, base64>      run it; asked again with the same id: only answer again
#          SB1 <token> <id> K 0                               kill everything that runs
#   guest: SB1 A <token> <id>                                 running
#          SB1 N <token> <id>                                 the request came damaged
#          SB1 K <token> <id>                                 killed
#          SB1 R <token> <id> <status> <taint before> <after> <size of stdout> <crc32> <size of stderr> <crc32>
#          <stdout, base64> / SB1 S <token> <id> / <stderr, base64> / SB1 E <as after R>
#
# This shell only reads requests; a command runs in a session of its own beside it. So it answers while a command
# hangs, and a busy guest is told apart from a dead one. Id 0 is not asked for: it says who this guest is.
# Every fork is instructions that an emulator has to get through, so builtins are used where they do.
set -f
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C

# Bytes kept of each stream; channel.rs knows the same number.
limit=1048576

die() {
    echo "sched-bisect-init: $1"
    reboot -f
}

mount -a 2>/dev/null
read -r cmdline </proc/cmdline || die "no /proc (CONFIG_PROC_FS, or too little memory)"
token=
for word in $cmdline; do
    case $word in sb.boot=*) token=${word#sb.boot=} ;; esac
done
[ -n "$token" ] || die "no sb.boot= on the kernel command line (CONFIG_CMDLINE_OVERRIDE?)"
true <>/dev/ttyS1 2>/dev/null || die "no /dev/ttyS1 (CONFIG_DEVTMPFS, CONFIG_SERIAL_8250_NR_UARTS >= 2)"
exec 3<>/dev/ttyS1
stty 115200 raw -echo clocal <&3 2>/dev/null ||
    die "/dev/ttyS1 does not work (CONFIG_SERIAL_8250_RUNTIME_UARTS >= 2)"

# answer ID STATUS TAINT_BEFORE TAINT_AFTER: from copies, since a process that was left may go on writing.
answer() {
    set -- "$@" $(stat -c %s /run/out /run/err)
    head -c $limit /run/out >/run/sent.out
    if [ "$6" -gt 0 ]; then head -c $limit /run/err >/run/sent.err; else : >/run/sent.err; fi
    # Gives "<crc> <name> <crc> <name>".
    set -- "$@" $(crc32 /run/sent.out /run/sent.err)
    head="$token $1 $2 $3 $4 $5 $7 $6 $9"
    {
        printf '\nSB1 R %s\n' "$head"
        base64 /run/sent.out
        printf '\nSB1 S %s %s\n' "$token" "$1"
        [ "$6" -eq 0 ] || base64 /run/sent.err
        printf '\nSB1 E %s\n' "$head"
    } >&3
}

# finish ID STATUS TAINT_BEFORE: remembers the end, then tells it.
finish() {
    taint=
    read -r taint </proc/sys/kernel/tainted
    echo "$1 $2 ${3:--} ${taint:--}" >/run/done
    answer "$1" "$2" "${3:--}" "${taint:--}"
}

start() {
    printf %s "$2" | base64 -d >/run/command
    (
        taint=
        read -r taint </proc/sys/kernel/tainted
        setsid sh /run/command </dev/null >/run/out 2>/run/err 3>&-
        finish "$1" $? "$taint"
    ) &
}

again() {
    id= status= before= after=
    read -r id status before after </run/done
    if [ "$id" = "$1" ]; then
        answer "$id" "$status" "$before" "$after"
    else
        printf '\nSB1 A %s %s\n' "$token" "$1" >&3
    fi
}

identity() {
    boot_id= release= cpus=
    read -r boot_id </proc/sys/kernel/random/boot_id
    read -r release </proc/sys/kernel/osrelease
    echo "boot_id $boot_id"
    read -r cpus </sys/devices/system/cpu/online
    echo "release $release"
    echo "cpus $cpus"
    echo "cmdline $cmdline"
    echo notes
    base64 /sys/kernel/notes
}

# Whether no program but this one lives; kernel threads and the dead have no command line.
is_alone() {
    set +f
    set -- /proc/[0-9]*/cmdline
    set -f
    for file; do
        [ "$file" != /proc/1/cmdline ] || continue
        line=
        { IFS= read -r line <"$file"; } 2>/dev/null
        [ -z "$line" ] || return 1
    done
}

identity >/run/out 2>/run/err
finish 0 0

last=0
while read -r magic tok id verb length payload <&3; do
    [ "$magic" = SB1 ] && [ "$tok" = "$token" ] || continue
    case $verb in
    R)
        if [ "${#payload}" != "$length" ]; then
            printf '\nSB1 N %s %s\n' "$token" "$id" >&3
        elif [ "$id" = "$last" ]; then
            again "$id"
        else
            last=$id
            start "$id" "$payload"
            printf '\nSB1 A %s %s\n' "$token" "$id" >&3
        fi
        ;;
    K)
        # A killed process goes on until it gets the CPU: told is what is gone, not what was killed.
        until kill -9 -1 2>/dev/null; is_alone; do :; done
        printf '\nSB1 K %s %s\n' "$token" "$id" >&3
        ;;
    esac
done
die "the command channel ended"
