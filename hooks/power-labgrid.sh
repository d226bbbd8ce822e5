#!/bin/sh
# Switches a place of a labgrid lab, with labgrid-client. The contract is in README.md, "Power".
#
#   SB_POWER         on, off, cycle or status
#   SB_POWER_PLACE   the place; it must be acquired by LG_HOSTNAME/LG_USERNAME
#   LG_COORDINATOR   as labgrid takes it ("lab:20408"); so are LG_HOSTNAME, LG_USERNAME
#   SB_POWER_PAUSE   seconds between off and on in a cycle (5)
#
# By hand: SB_POWER=status SB_POWER_PLACE=sut1 LG_COORDINATOR=lab:20408 hooks/power-labgrid.sh
set -eu
. "$(dirname "$0")/power-common.sh"
power_need SB_POWER_PLACE
power_need_tool labgrid-client "pip install labgrid (Debian's package is too old to talk to a coordinator)"

labgrid() {
    power_run labgrid-client -p "$SB_POWER_PLACE" power "$1"
    [ "$power_rc" != 0 ] || return 0
    case $power_err in
    *"Could not connect to coordinator"*) power_again "$(power_said)" ;;
    # Its own word for: your request is wrong. A traceback is 2.
    *"labgrid-client: Error:"*) power_refuse "$(power_said)" ;;
    *) power_again "labgrid-client power $1: $(power_said)" ;;
    esac
}

power_read() {
    labgrid get
    case $power_out in
    *" is on") power_state=on ;;
    *" is off") power_state=off ;;
    *) power_state=unknown ;;
    esac
}

power_on() {
    labgrid on
}

power_off() {
    labgrid off
}

power_main
