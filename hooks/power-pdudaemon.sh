#!/bin/sh
# Switches a socket of a PDU by PDUDaemon over HTTP. The contract is in README.md, "Power".
#
#   SB_POWER            on, off or cycle; PDUDaemon does not know a socket's state, so status is refused
#   SB_POWER_URL        the daemon ("http://lab:16421")
#   SB_POWER_PDU        the PDU's name in its configuration
#   SB_POWER_PORT       the socket
#   SB_POWER_PING       the machine's address: after an "off" it is pinged until it does not answer (SB_POWER_WAIT, 60 s)
#   SB_POWER_SETTLE     without SB_POWER_PING: seconds until an accepted request is taken for done (15)
#   SB_POWER_PAUSE      seconds between off and on (5)
#
# By hand: SB_POWER=off SB_POWER_URL=http://lab:16421 SB_POWER_PDU=rack2 SB_POWER_PORT=7 hooks/power-pdudaemon.sh
#
# The daemon answers "accepted" at once and works through a queue; that the PDU did nothing stands in its log alone. So a
# request is never taken for done by its answer: name the machine in SB_POWER_PING where it can be pinged.
set -eu
. "$(dirname "$0")/power-common.sh"
power_need SB_POWER_URL SB_POWER_PDU SB_POWER_PORT
power_need_tool curl "on Debian: apt install curl"
[ -z "${SB_POWER_PING:-}" ] || power_need_tool ping "on Debian: apt install iputils-ping"

# pdu on|off
pdu() {
    power_run curl --silent --show-error --max-time 20 --get --write-out '\n%{http_code}' \
        --data-urlencode "hostname=$SB_POWER_PDU" --data-urlencode "port=$SB_POWER_PORT" \
        "${SB_POWER_URL%/}/power/control/$1"
    [ "$power_rc" = 0 ] || power_again "$SB_POWER_URL does not answer: $(power_said)"
    pdu_code=$(printf '%s\n' "$power_out" | tail -n 1)
    pdu_text=$(printf '%s\n' "$power_out" | head -n 1)
    case $pdu_code in
    2??) ;;
    # Its answer to a PDU that it does not know, and to nothing else.
    4?? | 500) power_refuse "PDUDaemon refuses $1 of socket $SB_POWER_PORT of $SB_POWER_PDU: $pdu_code $pdu_text" ;;
    *) power_again "PDUDaemon is in trouble: $pdu_code $pdu_text" ;;
    esac
}

# Whether the machine answers, as far as that tells of its power.
power_read() {
    if ping -c 1 -W 1 "$SB_POWER_PING" >/dev/null 2>&1; then power_state=on; else power_state=off; fi
}

power_on() {
    pdu on
    [ -n "${SB_POWER_PING:-}" ] || sleep "${SB_POWER_SETTLE:-15}"
}

power_off() {
    pdu off
    if [ -n "${SB_POWER_PING:-}" ]; then power_wait off; else sleep "${SB_POWER_SETTLE:-15}"; fi
}

# What is asked for is always sent: that a machine does not answer a ping does not mean that it has no power.
power_go() {
    "power_$1"
}

[ "$SB_POWER" != status ] || power_refuse "PDUDaemon does not tell whether a socket is on"
power_main
