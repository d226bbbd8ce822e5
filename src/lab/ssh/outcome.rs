//! Whose fault it is that a machine did not come up as the candidate: the sorting, without input or output.
//!
//! When in doubt it is ours. A kernel is blamed only where the boot loader itself, or the console, tells that it was
//! started; another kernel that runs instead is never a fact about the candidate.

use super::wait::Stage;
use crate::lab::splat::{Hurt, Splat};
use crate::model::{InfraFailure, InfraKind, Untestable, UntestableKind};

/// Why a boot or a run came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// A fact about the commit.
    Commit(Untestable),
    /// Ours.
    Infra(InfraFailure),
}

impl Failure {
    pub fn commit(kind: UntestableKind, reason: impl Into<String>) -> Self {
        Self::Commit(Untestable { kind, reason: reason.into() })
    }

    pub fn words(&self) -> &str {
        match self {
            Self::Commit(untestable) => &untestable.reason,
            Self::Infra(failure) => &failure.reason,
        }
    }

    pub fn infra(kind: InfraKind, reason: impl Into<String>) -> Self {
        Self::Infra(InfraFailure { kind, reason: reason.into() })
    }
}

impl From<InfraFailure> for Failure {
    fn from(failure: InfraFailure) -> Self {
        Self::Infra(failure)
    }
}

/// What is known after a restart that did not end in the candidate.
#[derive(Debug, Clone, Default)]
pub(super) struct Fallen {
    /// Release that was asked for.
    pub wanted: String,
    /// Release that runs now; empty: nothing answers.
    pub running: String,
    /// The machine's own.
    pub rescue: String,
    /// Whether the boot loader began to start the candidate; `None`: it cannot tell.
    pub was_started: Option<bool>,
    /// The worst that the console showed since.
    pub splat: Option<Splat>,
    /// The console's last line.
    pub last_line: String,
}

/// Another kernel came up than the one that was asked for.
pub(super) fn other_kernel(fallen: &Fallen) -> Failure {
    let Fallen { wanted, running, rescue, was_started, splat, last_line } = fallen;
    if let Some(splat) = splat.as_ref().filter(|splat| splat.hurt >= Hurt::Oops) {
        let reason = format!("{} (on the way up; the machine is back on {running})", splat.line);
        return Failure::commit(UntestableKind::Panic, reason);
    }
    let back = running == rescue;
    let said =
        if last_line.is_empty() { String::new() } else { format!("; the console's last line: {last_line}") };
    match was_started {
        Some(true) if back => Failure::commit(
            UntestableKind::Boot,
            format!("was started and did not come up: the machine fell back to {running}{said}"),
        ),
        Some(false) => Failure::infra(
            InfraKind::WrongKernel,
            format!(
                "one-shot boot not honoured: {wanted} was chosen for the next boot, and {running} runs{said}"
            ),
        ),
        Some(true) | None => Failure::infra(
            InfraKind::WrongKernel,
            format!("{wanted} was to boot, and {running} runs; nothing tells whether it was tried{said}"),
        ),
    }
}

/// Nothing of the candidate came up in time, and the machine had to be `reset`; `None`: it could not be.
pub(super) fn not_up(
    fallen: &Fallen,
    stage: Stage,
    words: &str,
    within_s: u64,
    reset: Option<bool>,
) -> Failure {
    let Fallen { wanted, splat, last_line, was_started, .. } = fallen;
    let said =
        if last_line.is_empty() { String::new() } else { format!("; the console's last line: {last_line}") };
    let is_login = last_line.ends_with("login:");
    let waited = format!("{wanted} was not up within {within_s} s ({words}{said})");
    match (stage, reset) {
        (Stage::Old, _) => Failure::infra(
            InfraKind::Unreachable,
            format!(
                "restart the machine: it did not go down within {within_s} s; look at what holds its shutdown up"
            ),
        ),
        // Only a hand helps: no use in trying again.
        (_, None) => Failure::infra(
            InfraKind::Missing,
            format!("{waited}; switch it off and on, then resume; machine.power in the profile would do it"),
        ),
        (_, Some(false)) => Failure::infra(
            InfraKind::Unreachable,
            format!("{waited}, and it did not come back after a power cycle either"),
        ),
        (_, Some(true)) => match splat.as_ref().filter(|splat| splat.hurt >= Hurt::Lockup) {
            Some(splat) => Failure::commit(UntestableKind::Panic, format!("{} (on the way up)", splat.line)),
            None if is_login => Failure::commit(
                UntestableKind::Boot,
                format!("boots, no network: {waited}; does its configuration have the network card?"),
            ),
            None if *was_started == Some(false) => {
                Failure::infra(InfraKind::WrongKernel, format!("one-shot boot not honoured: {waited}"))
            }
            None => Failure::commit(
                UntestableKind::Boot,
                format!("hangs: {waited}; a power cycle brought the machine back"),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fallen() -> Fallen {
        Fallen {
            wanted: "6.12.0-sb-c5".to_owned(),
            running: "6.1.0-rescue".to_owned(),
            rescue: "6.1.0-rescue".to_owned(),
            was_started: Some(true),
            ..Fallen::default()
        }
    }

    fn splat(hurt: Hurt) -> Option<Splat> {
        Some(Splat { hurt, line: "Kernel panic - not syncing: x".to_owned() })
    }

    fn is_commit(failure: &Failure) -> bool {
        matches!(failure, Failure::Commit(_))
    }

    #[test]
    fn case_44_a_kernel_that_panics_and_falls_back_is_its_own_fault() {
        let by_console = other_kernel(&Fallen { splat: splat(Hurt::Panic), was_started: None, ..fallen() });
        assert!(
            matches!(&by_console, Failure::Commit(u) if u.kind == UntestableKind::Panic && u.reason.contains("panic"))
        );
        assert!(matches!(&other_kernel(&fallen()), Failure::Commit(u) if u.kind == UntestableKind::Boot));
    }

    #[test]
    fn a_kernel_that_was_never_started_is_never_blamed() {
        let ignored = other_kernel(&Fallen { was_started: Some(false), ..fallen() });
        assert!(matches!(&ignored, Failure::Infra(f) if f.reason.contains("not honoured")), "{ignored:?}");
        let unknown = other_kernel(&Fallen { was_started: None, ..fallen() });
        assert!(!is_commit(&unknown));
        let third = other_kernel(&Fallen { running: "6.5.0-other".to_owned(), ..fallen() });
        assert!(!is_commit(&third), "neither its own nor the candidate");
        for stage in [Stage::Down, Stage::Starting] {
            let ignored = Fallen { was_started: Some(false), ..fallen() };
            assert!(!is_commit(&not_up(&ignored, stage, "nothing answers", 600, Some(true))));
        }
    }

    #[test]
    fn only_a_machine_that_comes_back_by_itself_or_by_a_reset_tells_of_its_kernel() {
        let words = "nothing answers";
        assert!(is_commit(&not_up(&fallen(), Stage::Down, words, 600, Some(true))));
        assert!(!is_commit(&not_up(&fallen(), Stage::Down, words, 600, Some(false))));
        assert!(!is_commit(&not_up(&fallen(), Stage::Down, words, 600, None)));
        assert!(!is_commit(&not_up(&fallen(), Stage::Old, words, 600, Some(true))));
    }

    #[test]
    fn case_49_a_kernel_without_its_network_card_is_told_from_one_that_hangs() {
        let login = Fallen { last_line: "sut login:".to_owned(), ..fallen() };
        let Failure::Commit(told) = not_up(&login, Stage::Down, "nothing answers", 600, Some(true)) else {
            panic!("a fact")
        };
        assert!(told.reason.starts_with("boots, no network"), "{}", told.reason);
    }
}
