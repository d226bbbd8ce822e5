#!/bin/sh
# Switches a virtual machine of libvirt, with virsh. The contract is in README.md, "Power".
#
#   SB_POWER          on, off, cycle or status
#   SB_POWER_DOMAIN   the machine's name
#   SB_POWER_URI      connection ("qemu:///system", "qemu+ssh://host/system"); default: virsh's own
#   SB_POWER_PAUSE    seconds between off and on in a cycle (1)
#
# By hand: SB_POWER=status SB_POWER_DOMAIN=sut1 SB_POWER_URI=qemu:///system hooks/power-virsh.sh
set -eu
. "$(dirname "$0")/power-common.sh"
power_need SB_POWER_DOMAIN
power_need_tool virsh "on Debian: apt install libvirt-clients"
SB_POWER_PAUSE=${SB_POWER_PAUSE:-1}

virsh_do() {
    LC_ALL=C power_run virsh ${SB_POWER_URI:+-c "$SB_POWER_URI"} "$1" --domain "$SB_POWER_DOMAIN"
    [ "$power_rc" != 0 ] || return 0
    case $power_err in
    *"failed to get domain"* | *"Domain not found"*) power_refuse "libvirt knows no $SB_POWER_DOMAIN: $(power_said)" ;;
    *"uthentication"* | *"ermission denied"* | *"access denied"*) power_refuse "libvirt refuses: $(power_said)" ;;
    # Somebody was faster.
    *"domain is not running"* | *"Domain is already active"*) ;;
    *) power_again "virsh $1: $(power_said)" ;;
    esac
}

# Whatever is not shut off has to be destroyed before it can start anew: paused, crashed, in shutdown.
power_read() {
    virsh_do domstate
    case $power_out in
    "shut off"*) power_state=off ;;
    *) power_state=on ;;
    esac
}

power_on() {
    virsh_do start
}

power_off() {
    virsh_do destroy
}

power_main
