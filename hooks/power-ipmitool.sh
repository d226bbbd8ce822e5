#!/bin/sh
# Switches a machine by its BMC, with ipmitool. The contract is in README.md, "Power".
#
#   SB_POWER                 on, off, cycle or status
#   SB_POWER_HOST            the BMC's name or address
#   SB_POWER_USER            user on it
#   SB_POWER_PASSWORD_FILE   file with the password in its first line; or IPMI_PASSWORD holds the password itself
#   SB_POWER_INTERFACE       lanplus (default), lan
#   SB_POWER_BMC_PORT        UDP port (623)
#   SB_POWER_LEVEL           privilege asked for (ADMINISTRATOR); OPERATOR is enough to switch
#   SB_POWER_CIPHER          cipher suite (the best that both know)
#
# By hand: SB_POWER=status SB_POWER_HOST=sut1-bmc SB_POWER_USER=lab SB_POWER_PASSWORD_FILE=~/.sut1-bmc hooks/power-ipmitool.sh
set -eu
. "$(dirname "$0")/power-common.sh"
power_need SB_POWER_HOST SB_POWER_USER
power_need_tool ipmitool "on Debian: apt install ipmitool"
if [ -n "${SB_POWER_PASSWORD_FILE:-}" ]; then
    [ -r "$SB_POWER_PASSWORD_FILE" ] || power_refuse "cannot read $SB_POWER_PASSWORD_FILE"
else
    [ -n "${IPMI_PASSWORD:-}" ] || power_refuse "neither SB_POWER_PASSWORD_FILE nor IPMI_PASSWORD is set"
fi

# What the BMC itself had against it; the last line is the same for everything.
ipmi_said() {
    printf '%s\n' "$power_err" | grep -E 'RAKP|nauthorized|nsufficient|password' | head -n 1
}

# ipmi on|off|status
ipmi() {
    ipmi_action=$1
    # -v: without it a wrong password and a BMC that is not there look alike. -N, -R: the tool's own patience, 18 s.
    set -- -v -N 2 -R 3 -I "${SB_POWER_INTERFACE:-lanplus}" -H "$SB_POWER_HOST" -p "${SB_POWER_BMC_PORT:-623}" \
        -U "$SB_POWER_USER" ${SB_POWER_LEVEL:+-L "$SB_POWER_LEVEL"} ${SB_POWER_CIPHER:+-C "$SB_POWER_CIPHER"}
    if [ -n "${SB_POWER_PASSWORD_FILE:-}" ]; then set -- "$@" -f "$SB_POWER_PASSWORD_FILE"; else set -- "$@" -E; fi
    power_run ipmitool "$@" chassis power "$ipmi_action"
    [ "$power_rc" != 0 ] || return 0
    case $power_err in
    *"RAKP 2 HMAC is invalid"* | *"nauthorized name"* | *"password error"*)
        power_refuse "the BMC $SB_POWER_HOST refuses user or password: $(ipmi_said)"
        ;;
    *"nauthorized role"* | *"nsufficient privilege"*)
        power_refuse "the BMC $SB_POWER_HOST does not let $SB_POWER_USER do that: $(ipmi_said)"
        ;;
    *) power_again "the BMC $SB_POWER_HOST does not answer as it should: $(power_said)" ;;
    esac
}

power_read() {
    ipmi status
    case $power_out in
    *"Chassis Power is on"*) power_state=on ;;
    *"Chassis Power is off"*) power_state=off ;;
    *) power_state=unknown ;;
    esac
}

power_on() {
    ipmi on
}

power_off() {
    ipmi off
}

power_main
