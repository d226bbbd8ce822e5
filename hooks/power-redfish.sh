#!/bin/sh
# Switches a machine by its BMC over Redfish (ComputerSystem.Reset), with curl. The contract is in README.md, "Power".
#
#   SB_POWER                 on, off, cycle or status
#   SB_POWER_URL             the BMC ("https://sut1-bmc")
#   SB_POWER_USER            user on it
#   SB_POWER_PASSWORD_FILE   file with the password in its first line; or SB_POWER_PASSWORD holds the password itself
#   SB_POWER_SYSTEM          the system's path; default: the only one below /redfish/v1/Systems
#   SB_POWER_CACERT          certificate to trust; SB_POWER_INSECURE=1: trust any (many BMCs have none of worth)
#   SB_POWER_WAIT            seconds until it must be on or off (60)
#   SB_POWER_PAUSE           seconds between off and on in a cycle (5)
#
# By hand: SB_POWER=status SB_POWER_URL=https://sut1-bmc SB_POWER_USER=lab SB_POWER_PASSWORD_FILE=~/.sut1-bmc hooks/power-redfish.sh
set -eu
. "$(dirname "$0")/power-common.sh"
power_need SB_POWER_URL SB_POWER_USER
power_need_tool curl "on Debian: apt install curl"
if [ -n "${SB_POWER_PASSWORD_FILE:-}" ]; then
    [ -r "$SB_POWER_PASSWORD_FILE" ] || power_refuse "cannot read $SB_POWER_PASSWORD_FILE"
    redfish_password=$(head -n 1 "$SB_POWER_PASSWORD_FILE")
elif [ -n "${SB_POWER_PASSWORD:-}" ]; then
    redfish_password=$SB_POWER_PASSWORD
else
    power_refuse "neither SB_POWER_PASSWORD_FILE nor SB_POWER_PASSWORD is set"
fi

# User and password go to curl by its standard input: a command line can be read by everyone on the host.
redfish_curl() {
    printf 'user = "%s"\n' "$(printf '%s' "$SB_POWER_USER:$redfish_password" | sed 's/[\\"]/\\&/g')" |
        curl --config - --silent --show-error --max-time 20 --write-out '\n%{http_code}' \
            ${SB_POWER_CACERT:+--cacert "$SB_POWER_CACERT"} ${SB_POWER_INSECURE:+--insecure} "$@"
}

# redfish PATH [ARGUMENT]...: the answer in redfish_body.
redfish() {
    redfish_path=$1
    shift
    power_run redfish_curl "$@" "${SB_POWER_URL%/}$redfish_path"
    case $power_rc in
    0) ;;
    35 | 51 | 60 | 77) power_refuse "the certificate of $SB_POWER_URL is not trusted: $(power_said)" ;;
    *) power_again "$SB_POWER_URL does not answer: $power_err" ;;
    esac
    redfish_code=$(printf '%s\n' "$power_out" | tail -n 1)
    redfish_body=$(printf '%s\n' "$power_out" | sed '$d')
    case $redfish_code in
    2??) ;;
    401 | 403) power_refuse "the BMC $SB_POWER_URL refuses user or password ($redfish_code)" ;;
    # 408, 409, 429: it is busy.
    408 | 409 | 429) power_again "the BMC is busy with $redfish_path ($redfish_code)" ;;
    4??) power_refuse "the BMC refuses $redfish_path ($redfish_code): $(redfish_message)" ;;
    *) power_again "the BMC is in trouble with $redfish_path ($redfish_code): $(redfish_message)" ;;
    esac
}

# redfish_text KEY: the values of that key, one a line; the answers asked for here have no text with a quote in it.
redfish_text() {
    printf '%s' "$redfish_body" | tr -d '\n' | tr ',{}[]' '[\n*]' |
        sed -n "s/^[[:space:]]*\"$1\"[[:space:]]*:[[:space:]]*\"\([^\"]*\)\".*/\1/p"
}

redfish_message() {
    redfish_text message | head -n 1
}

redfish_find() {
    redfish /redfish/v1/Systems
    redfish_system=$(redfish_text @odata.id | sed '/\/Systems\/*$/d')
    case $redfish_system in
    /*"
"*) power_refuse "several systems, name one in SB_POWER_SYSTEM: $(printf '%s' "$redfish_system" | tr '\n' ' ')" ;;
    /*) ;;
    *) power_refuse "no system below /redfish/v1/Systems; name it in SB_POWER_SYSTEM" ;;
    esac
}

power_read() {
    redfish "$redfish_system"
    case $(redfish_text PowerState | head -n 1) in
    On) power_state=on ;;
    Off) power_state=off ;;
    "") power_state=unknown ;;
    *) power_state=$(redfish_text PowerState | head -n 1) ;;
    esac
}

redfish_reset() {
    redfish "${redfish_system%/}/Actions/ComputerSystem.Reset" --header 'Content-Type: application/json' \
        --data "{\"ResetType\": \"$1\"}"
}

power_on() {
    redfish_reset On
}

power_off() {
    redfish_reset ForceOff
}

redfish_system=${SB_POWER_SYSTEM:-}
[ -n "$redfish_system" ] || redfish_find
power_main
