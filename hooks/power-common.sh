# shellcheck shell=sh disable=SC2034,SC2154 # variables that the hooks set or read
#
# What the power hooks share; not a program. A hook sets up, defines power_read, power_on and power_off (and power_cycle where
# off and on would not do), and ends with power_main. The contract is in README.md, "Power".
#
# power_read puts the state into power_state: "on", "off", or any other word for in between.

power_name=${0##*/}

power_refuse() {
    echo "$power_name: $*" >&2
    exit 1
}

power_again() {
    echo "$power_name: $*" >&2
    exit 75
}

# power_need_tool PROGRAM PACKAGE
power_need_tool() {
    command -v "$1" >/dev/null 2>&1 && return
    echo "$power_name: $1 is not installed; $2" >&2
    exit 127
}

# Prints the head of the hook.
power_usage() {
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
}

# power_need VARIABLE...: they must be set. Without SB_POWER nobody asked for anything: the usage.
power_need() {
    if [ -z "${SB_POWER:-}" ]; then
        power_usage
        exit 1
    fi
    for power_variable; do
        eval "power_value=\${$power_variable:-}"
        if [ -z "$power_value" ]; then
            power_usage
            power_refuse "$power_variable is not set"
        fi
    done
}

# power_run COMMAND...: runs a tool; what it prints is in power_out, what it complains of in power_err, its status in power_rc.
power_run() {
    power_file=$(mktemp) || power_again "no temporary file"
    power_rc=0
    power_out=$("$@" 2>"$power_file" </dev/null) || power_rc=$?
    power_err=$(cat "$power_file")
    rm -f "$power_file"
}

# The last line that a tool complained with.
power_said() {
    printf '%s\n' "$power_err" "$power_out" | sed '/^[[:space:]]*$/d' | tail -n 1
}

# power_wait STATE: until the machine is in it, or SB_POWER_WAIT seconds are over.
power_wait() {
    power_end=$(($(date +%s) + ${SB_POWER_WAIT:-60}))
    while power_read && [ "$power_state" != "$1" ]; do
        [ "$(date +%s)" -lt "$power_end" ] ||
            power_again "still $power_state ${SB_POWER_WAIT:-60} s after it was told to be $1"
        sleep "${SB_POWER_POLL:-2}"
    done
}

power_go() {
    power_read
    if [ "$power_state" != "$1" ]; then
        "power_$1"
        power_wait "$1"
    fi
}

# Off and on, with a look between them: a machine that never lost its power was not cycled.
power_cycle() {
    power_go off
    sleep "${SB_POWER_PAUSE:-5}"
    power_go on
}

power_main() {
    case $SB_POWER in
    status)
        power_read
        case $power_state in
        on | off) echo "$power_state" ;;
        *) power_again "neither on nor off but $power_state" ;;
        esac
        ;;
    on | off) power_go "$SB_POWER" ;;
    cycle) power_cycle ;;
    *) power_refuse "SB_POWER is \"$SB_POWER\" and not on, off, cycle or status" ;;
    esac
}
