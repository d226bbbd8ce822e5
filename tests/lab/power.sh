#!/bin/sh
# The power switch of the guest: what a remote power strip is to a server.
#
#   SB_POWER=cycle|on|off|status power.sh MONITOR
#
# MONITOR is the unix socket of QEMU's human monitor. `off` holds the processors before the first instruction and forgets
# memory, without asking the guest; QEMU stays, and so do the forwarded port (nothing answers behind it) and the disk.
# `status` prints on or off. Exit status 0: done; 1: not done, said why; 2: wrong use.
# Needs perl (perl-base, which every Debian has).
set -eu

case ${SB_POWER:-} in
cycle | on | off | status) ;;
*)
    echo "power.sh: SB_POWER must be cycle, on, off or status, not '${SB_POWER:-}'" >&2
    exit 2
    ;;
esac
[ $# = 1 ] || {
    echo "usage: SB_POWER=cycle|on|off|status power.sh MONITOR" >&2
    exit 2
}

exec perl -e '
use strict;
use IO::Socket::UNIX;
my ($path, $verb) = @ARGV;
# A monitor that does not answer must not hold the caller.
local $SIG{ALRM} = sub { die "power.sh: $path: no answer for 20 s\n" };
alarm 20;
my $monitor = IO::Socket::UNIX->new(Peer => $path) or die "power.sh: $path: $!\n";

sub answer {
    my $text = "";
    while ($text !~ /\(qemu\) $/) {
        sysread($monitor, $text, 4096, length $text) or die "power.sh: $path: QEMU ended\n";
    }
    return $text;
}
# Not "tell", which Perl has a function of its own for.
sub order {
    syswrite($monitor, "$_[0]\n");
    return answer();
}
sub state {
    my ($state) = order("info status") =~ /VM status: (.*?)\r?\n/;
    return $state // die "power.sh: $path: no status\n";
}
# A reset takes place after the monitor has answered, and a machine that stands still tells when it did.
sub held_at_reset {
    order("stop");
    order("system_reset");
    select(undef, undef, undef, 0.05) until state() =~ /prelaunch/;
}

answer();
my $on = state() =~ /^running/;
if ($verb eq "status") { print $on ? "on\n" : "off\n" }
elsif ($verb eq "off") { held_at_reset() }
elsif ($verb eq "cycle") { held_at_reset(); order("cont") }
elsif ($verb eq "on" && !$on) { held_at_reset(); order("cont") }
' "$1" "$SB_POWER"
