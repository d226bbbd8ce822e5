//! Whose fault it is that a guest did not do what was asked.
//!
//! Owns: the sorting of every way in which a guest can go wrong into facts about the commit and failures of
//! ours; when in doubt it is ours. Must not do: input or output. Tested here over every way, and with a
//! program that plays QEMU in tests.rs.

use crate::lab::console::Console;
use crate::lab::process::Ended;
use crate::lab::splat::Hurt;
use crate::model::{BootResult, InfraFailure, InfraKind, RunResult, Untestable, UntestableKind};
use std::io;
use std::path::Path;

/// A boot or a run that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// A fact about the commit.
    Commit(Untestable),
    /// Ours.
    Infra(InfraFailure),
}

impl Failure {
    /// The commit's.
    pub(super) fn commit(kind: UntestableKind, reason: impl Into<String>) -> Self {
        Self::Commit(Untestable { kind, reason: reason.into() })
    }

    /// Ours.
    pub(super) fn infra(kind: InfraKind, reason: impl Into<String>) -> Self {
        Self::Infra(InfraFailure { kind, reason: reason.into() })
    }

    /// Ours: the file system's answer to `doing` something with `path`.
    pub(super) fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let kind = if full { InfraKind::OutOfDisk } else { InfraKind::Other };
        Self::infra(kind, format!("{doing} {}: {error}", path.display()))
    }

    #[cfg(test)]
    pub(super) fn infra_kind(&self) -> Option<InfraKind> {
        match self {
            Self::Infra(failure) => Some(failure.kind),
            Self::Commit(_) => None,
        }
    }

    #[cfg(test)]
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Infra(failure) => &failure.reason,
            Self::Commit(untestable) => &untestable.reason,
        }
    }
}

impl From<Failure> for BootResult {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Commit(untestable) => Self::Untestable(untestable),
            Failure::Infra(failure) => Self::Infra(failure),
        }
    }
}

impl From<Failure> for RunResult {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Commit(untestable) => Self::Untestable(untestable),
            Failure::Infra(failure) => Self::Infra(failure),
        }
    }
}

/// What the guest was at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Coming up, on a lab that deserves so much trust.
    Boot(Trust),
    /// A run.
    Run,
}

/// How much a guest that does not come up says about its kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Others have come up here.
    Proven,
    /// None has yet: if it shows nothing at all, the lab may be to blame.
    Untried,
    /// None has yet, and the accelerator is known to hang good kernels on some hosts.
    Suspect,
}

impl Phase {
    fn words(self) -> &'static str {
        match self {
            Self::Boot(_) => "on the way up",
            Self::Run => "under load",
        }
    }

    /// Whether this end may as well be a lab that cannot start any guest.
    fn is_doubtful(self, console: &Console) -> bool {
        match self {
            Self::Boot(Trust::Suspect) => true,
            Self::Boot(Trust::Untried) => console.last_line().is_empty(),
            Self::Boot(Trust::Proven) | Self::Run => false,
        }
    }
}

/// QEMU is gone, and nobody here ended it.
pub(super) fn gone(ended: Ended, console: &Console, stderr: &str, phase: Phase) -> Failure {
    let said = last_words(stderr);
    // What ends QEMU from outside says nothing about a kernel that merely complained before.
    let by_itself = ended == Ended::Exit(0) && !stderr.contains("terminating on signal");
    if let Some(failure) = broken_kernel(console, phase).filter(|_| by_itself || console.panicked()) {
        return failure;
    }
    match ended {
        // QEMU answers SIGTERM, SIGINT and SIGHUP with an orderly end and this message.
        Ended::Exit(0) if stderr.contains("terminating on signal") => {
            Failure::infra(InfraKind::Killed, format!("keep the guest running: QEMU was told to end: {said}"))
        }
        Ended::Exit(0) if phase.is_doubtful(console) => Failure::infra(
            InfraKind::Other,
            format!(
                "boot the guest: it ended ({}), and no guest has come up here yet; does the kernel have a serial \
                 console, and is it for this machine? {said}",
                last_line(console)
            ),
        ),
        Ended::Exit(0) => match console.init_failure() {
            Some(reason) => Failure::commit(UntestableKind::Boot, format!("the guest gave up: {reason}")),
            None => Failure::commit(
                UntestableKind::Boot,
                format!("died silently {}: {}", phase.words(), last_line(console)),
            ),
        },
        Ended::Exit(status) => Failure::infra(
            refusal(stderr),
            format!("run the guest: QEMU ended with exit status {status}: {said}"),
        ),
        Ended::Signal(signal) => Failure::infra(
            InfraKind::Killed,
            format!(
                "keep the guest running: QEMU was killed by signal {signal} (memory of the host?) {said}"
            ),
        ),
        // Only a guest that this module ended itself has this end.
        Ended::Deadline => silent(console, phase),
    }
}

/// QEMU runs, but the guest does not answer any more.
pub(super) fn silent(console: &Console, phase: Phase) -> Failure {
    if let Some(failure) = broken_kernel(console, phase) {
        return failure;
    }
    if phase.is_doubtful(console) {
        return Failure::infra(
            InfraKind::Other,
            format!(
                "boot the guest: it hangs ({}), and no guest has come up here yet; try another accelerator (icount \
                 works everywhere), and see that the kernel has a serial console",
                last_line(console)
            ),
        );
    }
    Failure::commit(UntestableKind::Boot, format!("hangs {}: {}", phase.words(), last_line(console)))
}

/// A kernel that came up hurt: what failed in it is gone, and nobody knows what hangs on it.
pub(super) fn hurt(console: &Console) -> Option<Failure> {
    let splat = console.worst()?;
    match splat.hurt {
        Hurt::Panic | Hurt::Oops => {
            Some(Failure::commit(UntestableKind::Panic, format!("{} (on the way up)", splat.line)))
        }
        Hurt::Lockup | Hurt::OutOfMemory | Hurt::Warning => None,
    }
}

/// A kernel that runs on another number of CPUs than it was given. The first one may be the plan's fault.
pub(super) fn too_few(cpus: u32, given: u32, proven: bool) -> Option<Failure> {
    let reason = format!("runs on {cpus} of the {given} CPUs it was given");
    match (cpus == given, proven) {
        (true, _) => None,
        (false, true) => Some(Failure::commit(UntestableKind::Boot, reason)),
        (false, false) => Some(Failure::infra(
            InfraKind::BrokenCommand,
            format!(
                "boot the guest as planned: its kernel {reason}; ask for fewer, or configure it (CONFIG_SMP, \
                 CONFIG_NR_CPUS, CONFIG_X86_MPPARSE or CONFIG_ACPI)"
            ),
        )),
    }
}

/// A kernel that panicked in a run, even if it answered before.
pub(super) fn dead(console: &Console) -> Option<Failure> {
    broken_kernel(console, Phase::Run).filter(|_| console.panicked())
}

/// A kernel that said itself what became of it.
fn broken_kernel(console: &Console, phase: Phase) -> Option<Failure> {
    let splat = console.worst()?;
    match splat.hurt {
        Hurt::Panic | Hurt::Oops | Hurt::Lockup => {
            Some(Failure::commit(UntestableKind::Panic, format!("{} ({})", splat.line, phase.words())))
        }
        Hurt::OutOfMemory | Hurt::Warning => None,
    }
}

fn last_line(console: &Console) -> String {
    match console.last_line() {
        "" => "nothing on the console".to_owned(),
        line => format!("last console line {line:?}"),
    }
}

fn last_words(stderr: &str) -> String {
    match stderr.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("({line})"),
        None => "(it said nothing)".to_owned(),
    }
}

/// Why QEMU refused, from its own words: there is nothing else to tell by.
fn refusal(stderr: &str) -> InfraKind {
    if stderr.contains("Cannot allocate memory") {
        InfraKind::Other
    } else if stderr.contains("No space left on device") {
        InfraKind::OutOfDisk
    } else {
        InfraKind::BrokenCommand
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: Phase = Phase::Boot(Trust::Proven);

    fn console(text: &str) -> Console {
        let mut console = Console::default();
        console.push(text.as_bytes());
        console
    }

    fn kind(failure: &Failure) -> Result<UntestableKind, InfraKind> {
        match failure {
            Failure::Commit(untestable) => Ok(untestable.kind),
            Failure::Infra(failure) => Err(failure.kind),
        }
    }

    #[test]
    fn a_panic_is_the_commits_and_shows_its_line() {
        let panic = console("[    1.0] Kernel panic - not syncing: VFS: no root\n");
        let failure = gone(Ended::Exit(0), &panic, "", UP);
        assert_eq!(kind(&failure), Ok(UntestableKind::Panic));
        assert!(failure.reason().contains("VFS: no root"), "{}", failure.reason());
        assert_eq!(kind(&silent(&panic, UP)), Ok(UntestableKind::Panic), "it did not even restart");
    }

    #[test]
    fn an_end_without_a_word_is_a_silent_death_once_the_lab_is_proven() {
        let failure = gone(Ended::Exit(0), &console("[    0.1] smp: Bringing up\n"), "", UP);
        assert_eq!(kind(&failure), Ok(UntestableKind::Boot));
        assert!(failure.reason().contains("died silently"), "{}", failure.reason());
        assert!(failure.reason().contains("smp: Bringing up"), "{}", failure.reason());
        assert_eq!(kind(&gone(Ended::Exit(0), &console(""), "", UP)), Ok(UntestableKind::Boot));
        let unproven = Phase::Boot(Trust::Untried);
        assert_eq!(kind(&gone(Ended::Exit(0), &console(""), "", unproven)), Err(InfraKind::Other));
        assert_eq!(kind(&silent(&console(""), unproven)), Err(InfraKind::Other));
        assert_eq!(kind(&silent(&console("[ 0.1] x\n"), unproven)), Ok(UntestableKind::Boot));
        let suspect = Phase::Boot(Trust::Suspect);
        assert_eq!(kind(&silent(&console("[ 0.1] x\n"), suspect)), Err(InfraKind::Other));
    }

    #[test]
    fn a_killed_emulator_never_speaks_against_the_commit() {
        let quiet = console("[    0.1] smp: Bringing up\n");
        assert_eq!(kind(&gone(Ended::Signal(9), &quiet, "", Phase::Run)), Err(InfraKind::Killed));
        let hurt = console("[   30.0] rcu: INFO: rcu_sched self-detected stall on CPU\n");
        assert_eq!(kind(&gone(Ended::Signal(9), &hurt, "", Phase::Run)), Err(InfraKind::Killed));
        let told = "qemu-system-x86_64: terminating on signal 15 from pid 7 (kill)\n";
        assert_eq!(kind(&gone(Ended::Exit(0), &quiet, told, Phase::Run)), Err(InfraKind::Killed));
    }

    #[test]
    fn an_emulator_that_refuses_says_why() {
        let said = "qemu-system-x86_64: -foo: invalid option\n";
        let failure = gone(Ended::Exit(1), &console(""), said, UP);
        assert_eq!(kind(&failure), Err(InfraKind::BrokenCommand));
        assert!(failure.reason().contains("-foo: invalid option"), "{}", failure.reason());
        let poor = "cannot set up guest memory 'pc.ram': Cannot allocate memory";
        assert_eq!(kind(&gone(Ended::Exit(1), &console(""), poor, UP)), Err(InfraKind::Other));
    }

    #[test]
    fn a_lockup_is_the_kernels_and_a_warning_before_a_hang_is_not_its_cause() {
        let stuck = console("[   30.0] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [a:1]\n");
        assert_eq!(kind(&silent(&stuck, Phase::Run)), Ok(UntestableKind::Panic));
        let warned = console("[   30.0] WARNING: CPU: 0 PID: 1 at a.c:1\n");
        let failure = silent(&warned, Phase::Run);
        assert_eq!(kind(&failure), Ok(UntestableKind::Boot));
        assert!(failure.reason().contains("hangs under load"), "{}", failure.reason());
    }

    #[test]
    fn a_missing_cpu_speaks_against_the_commit_only_after_another_kernel_had_it() {
        assert_eq!(too_few(2, 2, false), None);
        assert_eq!(too_few(1, 2, true).map(|failure| kind(&failure)), Some(Ok(UntestableKind::Boot)));
        assert_eq!(too_few(1, 2, false).map(|failure| kind(&failure)), Some(Err(InfraKind::BrokenCommand)));
    }

    #[test]
    fn a_guest_that_gave_up_says_what_it_lacked() {
        let said = console("sched-bisect-init: no /dev/ttyS1\nreboot: machine restart\n");
        let failure = gone(Ended::Exit(0), &said, "", UP);
        assert_eq!(failure.reason(), "the guest gave up: no /dev/ttyS1");
    }
}
