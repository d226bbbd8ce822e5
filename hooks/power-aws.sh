#!/bin/sh
# Switches an instance of EC2, with the AWS CLI. The contract is in README.md, "Power".
#
#   SB_POWER            on, off, cycle or status
#   SB_POWER_INSTANCE   the instance ("i-0123456789abcdef0")
#   SB_POWER_REGION     its region; default: the CLI's own
#   SB_POWER_CYCLE      reboot (default) or stop-start, see below
#   SB_POWER_WAIT       seconds until it must be running or stopped (600)
#
# By hand: SB_POWER=status SB_POWER_INSTANCE=i-0123456789abcdef0 SB_POWER_REGION=eu-west-1 hooks/power-aws.sh
# Credentials are the CLI's own: AWS_PROFILE, ~/.aws, the instance's role.
#
# EC2 has no power cycle. "reboot" asks for reboot-instances: EC2 asks the system to reboot and resets the instance itself where
# it has not done so after a few minutes, so a dead kernel takes that long; the instance stays on its host, as a comparison of
# kernels needs. No state of EC2 tells when it is done: the machine's new boot id does. "stop-start" is seen to be done, but the
# instance may come up on another host, with another speed and another public address, and may find no room.
set -eu
. "$(dirname "$0")/power-common.sh"
power_need SB_POWER_INSTANCE
power_need_tool aws "on Debian: apt install awscli"
SB_POWER_WAIT=${SB_POWER_WAIT:-600}
SB_POWER_POLL=${SB_POWER_POLL:-5}
export AWS_PAGER=

# ec2 COMMAND [ARGUMENT]...
ec2() {
    ec2_command=$1
    shift
    power_run aws ec2 "$ec2_command" ${SB_POWER_REGION:+--region "$SB_POWER_REGION"} \
        --cli-connect-timeout 10 --cli-read-timeout 30 --instance-ids "$SB_POWER_INSTANCE" --output text "$@"
    [ "$power_rc" != 0 ] || return 0
    case $power_err in
    *InvalidInstanceID* | *UnauthorizedOperation* | *AuthFailure* | *ExpiredToken* | *InvalidClientTokenId* | \
        *"Unable to locate credentials"* | *"must specify a region"*)
        power_refuse "EC2 refuses $ec2_command of $SB_POWER_INSTANCE: $(power_said)"
        ;;
    *) power_again "aws ec2 $ec2_command: $(power_said)" ;;
    esac
}

power_read() {
    ec2 describe-instances --query 'Reservations[0].Instances[0].State.Name'
    case $power_out in
    running) power_state=on ;;
    stopped) power_state=off ;;
    terminated | shutting-down) power_refuse "$SB_POWER_INSTANCE is terminated" ;;
    *) power_state=$power_out ;;
    esac
}

power_on() {
    ec2 start-instances
}

# --force: what runs there is not asked, as with a plug.
power_off() {
    ec2 stop-instances --force
}

ec2_stop_start() {
    power_go off
    power_go on
}

ec2_reboot() {
    power_read
    case $power_state in
    on) ec2 reboot-instances ;;
    *) ec2_stop_start ;;
    esac
}

power_cycle() {
    case ${SB_POWER_CYCLE:-reboot} in
    reboot) ec2_reboot ;;
    stop-start) ec2_stop_start ;;
    *) power_refuse "SB_POWER_CYCLE is \"$SB_POWER_CYCLE\" and not reboot or stop-start" ;;
    esac
}

power_main
