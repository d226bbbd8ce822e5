//! Why a boot or run came to nothing, and who is to blame.

use super::Called;
use crate::model::{BootResult, InfraFailure, InfraKind, RunResult, Untestable, UntestableKind};
use crate::session::SUT;
use crate::workload::Output;

/// Why a boot or run came to nothing.
pub(super) enum Trouble {
    /// The commit, or its boot, is to blame.
    Commit(UntestableKind, String),
    /// This run's numbers would not count.
    Invalid(String),
    /// The workload failed.
    Failed(String),
    /// Ours.
    Infra(InfraFailure),
}

impl Trouble {
    pub fn of_boot(self) -> BootResult {
        match self {
            Self::Commit(kind, reason) => BootResult::Untestable(Untestable { kind, reason }),
            Self::Invalid(reason) | Self::Failed(reason) => {
                BootResult::Untestable(Untestable { kind: UntestableKind::Boot, reason })
            }
            Self::Infra(failure) => BootResult::Infra(failure),
        }
    }

    pub fn of_run(self) -> RunResult {
        match self {
            Self::Commit(kind, reason) => RunResult::Untestable(Untestable { kind, reason }),
            Self::Invalid(reason) => RunResult::Invalid { reason },
            Self::Failed(reason) => RunResult::Failed { reason },
            Self::Infra(failure) => RunResult::Infra(failure),
        }
    }

    pub fn words(&self) -> &str {
        match self {
            Self::Commit(_, reason) | Self::Invalid(reason) | Self::Failed(reason) => reason,
            Self::Infra(failure) => &failure.reason,
        }
    }
}

pub(super) fn ours(kind: InfraKind, reason: String) -> Trouble {
    Trouble::Infra(InfraFailure { kind, reason })
}

/// A failure on the SUT may be its kernel's; one on any other machine is ours.
pub(super) fn blamed(role: &str, reason: String) -> Trouble {
    if role == SUT { Trouble::Failed(reason) } else { ours(InfraKind::Other, reason) }
}

/// What it printed; `is_ours`: whatever went wrong says nothing about the commit.
pub(super) fn done(called: Called, what: &str, is_ours: bool) -> Result<Output, Trouble> {
    let failed = |reason: String| {
        let reason = format!("{what}: {reason}");
        if is_ours { ours(InfraKind::Other, reason) } else { Trouble::Failed(reason) }
    };
    match called {
        Called::Done(output) => Ok(output),
        Called::CannotMeasure(reason) => Err(Trouble::Commit(UntestableKind::Declared, reason)),
        Called::Failed { reason, .. } => Err(failed(reason)),
        Called::Late => Err(failed("it outlived its deadline and was ended".to_owned())),
        Called::Untestable(untestable) => Err(Trouble::Commit(untestable.kind, untestable.reason)),
        Called::Invalid(reason) => Err(Trouble::Invalid(reason)),
        Called::Infra(failure) => Err(Trouble::Infra(failure)),
    }
}

pub(super) fn words(called: Called) -> String {
    match done(called, "the last attempt", true) {
        Ok(_) => String::new(),
        Err(trouble) => trouble.words().to_owned(),
    }
}
