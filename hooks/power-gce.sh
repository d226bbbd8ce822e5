#!/bin/sh
# Switches an instance of Google Compute Engine, with gcloud. The contract is in README.md, "Power".
#
#   SB_POWER            on, off, cycle or status
#   SB_POWER_INSTANCE   the instance
#   SB_POWER_ZONE       its zone ("europe-west4-a")
#   SB_POWER_PROJECT    its project; default: gcloud's own
#   SB_POWER_WAIT       seconds until it must be running or stopped (600)
#
# By hand: SB_POWER=status SB_POWER_INSTANCE=sut1 SB_POWER_ZONE=europe-west4-a hooks/power-gce.sh
# Credentials are gcloud's own.
#
# cycle is a reset, as by a button: the instance stays on its host, as a comparison of kernels needs, and gcloud ends when it is
# done. One that is stopped is started.
set -eu
. "$(dirname "$0")/power-common.sh"
power_need SB_POWER_INSTANCE SB_POWER_ZONE
power_need_tool gcloud "see https://cloud.google.com/sdk/docs/install"
SB_POWER_WAIT=${SB_POWER_WAIT:-600}
SB_POWER_POLL=${SB_POWER_POLL:-5}

# gce COMMAND [ARGUMENT]...
gce() {
    gce_command=$1
    shift
    power_run gcloud compute instances "$gce_command" "$SB_POWER_INSTANCE" --zone "$SB_POWER_ZONE" \
        ${SB_POWER_PROJECT:+--project "$SB_POWER_PROJECT"} --quiet "$@"
    [ "$power_rc" != 0 ] || return 0
    case $power_err in
    *"was not found"* | *"Required '"*"' permission"* | *"ctive account"* | *"Reauthentication"* | *"nvalid value"*)
        power_refuse "Compute Engine refuses $gce_command of $SB_POWER_INSTANCE: $(power_said)"
        ;;
    *) power_again "gcloud compute instances $gce_command: $(power_said)" ;;
    esac
}

power_read() {
    gce describe --format 'value(status)'
    case $power_out in
    RUNNING) power_state=on ;;
    TERMINATED | STOPPED) power_state=off ;;
    *) power_state=$power_out ;;
    esac
}

power_on() {
    gce start
}

power_off() {
    gce stop
}

power_cycle() {
    power_read
    case $power_state in
    on) gce reset ;;
    *)
        power_go off
        power_go on
        ;;
    esac
}

power_main
