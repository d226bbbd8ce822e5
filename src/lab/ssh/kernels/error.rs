//! Why a kernel could not be put on the machine, or chosen for its next boot.

use crate::lab::ssh::far::FarError;
use crate::lab::ssh::kernels::room::Short;
use crate::model::{InfraFailure, InfraKind};
use std::path::PathBuf;

/// What went wrong. None of it says anything about a commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The connection, or a script that did not end.
    #[error(transparent)]
    Far(#[from] FarError),
    /// A command failed there.
    #[error("{what} on {host}: exit {status}: {reason}")]
    Failed {
        /// What was to be done.
        what: String,
        /// The machine.
        host: String,
        /// The script's exit status.
        status: i32,
        /// The end of its standard error.
        reason: String,
    },
    /// Its answer lacks something.
    #[error("{what} on {host}: its answer has no {missing}")]
    Answer {
        /// What was to be done.
        what: String,
        /// The machine.
        host: String,
        /// The key.
        missing: String,
    },
    /// A product of the build cannot be read here.
    #[error("read the kernel to install, {}: {reason}", path.display())]
    Artifact {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A release, file name or word that is not let near a boot loader.
    #[error("put a kernel's entry together: {text:?} {reason}")]
    Word {
        /// The text.
        text: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// Somebody else's files have the kernel's names.
    #[error(
        "install {release} on {host}: {} there, and this program did not put it there; remove it or give the \
         kernels another local version", files.join(", ")
    )]
    Foreign {
        /// The kernel.
        release: String,
        /// The machine.
        host: String,
        /// The files.
        files: Vec<String>,
    },
    /// The kernel that runs would lose its files.
    #[error("{what} on {host}: it is the running kernel; boot another first")]
    Runs {
        /// What was to be done.
        what: String,
        /// The machine.
        host: String,
    },
    /// Files arrived changed, twice.
    #[error(
        "install {release} on {host}: {file} arrived changed twice; look at the machine's disk and memory"
    )]
    Damaged {
        /// The kernel.
        release: String,
        /// The machine.
        host: String,
        /// What arrived changed.
        file: String,
    },
    /// Too little room, also without the own kernels that may go.
    #[error(
        "install {release} on {host}: no room: {}; remove kernels of yours there or enlarge it, then resume",
        shown(shorts)
    )]
    NoRoom {
        /// The kernel.
        release: String,
        /// The machine.
        host: String,
        /// Where, and how much.
        shorts: Vec<Short>,
    },
    /// A program is not there.
    #[error("{what} on {host}: {reason}")]
    Missing {
        /// What was to be done.
        what: String,
        /// The machine.
        host: String,
        /// What is missing, and how to get it.
        reason: String,
    },
    /// What was set does not read back.
    #[error("{what} on {host}: set, but it does not read back: {reason}")]
    NotSet {
        /// What was to be done.
        what: String,
        /// The machine.
        host: String,
        /// What reads back.
        reason: String,
    },
    /// The default entry is another than before and cannot be put back.
    #[error("keep the default boot entry of {host}: it was {before}, now it is {now}; {mend}")]
    DefaultMoved {
        /// The machine.
        host: String,
        /// Before.
        before: String,
        /// Now.
        now: String,
        /// What to do.
        mend: String,
    },
    /// The user's command that chooses the next boot.
    #[error("choose the next boot of {host} by the hook: {reason}")]
    Hook {
        /// The machine.
        host: String,
        /// Class.
        kind: InfraKind,
        /// How it failed.
        reason: String,
    },
}

impl Error {
    /// The class of it for the journal.
    pub fn kind(&self) -> InfraKind {
        match self {
            Self::Far(FarError::NotUp { .. } | FarError::Lost { .. }) => InfraKind::Unreachable,
            Self::Far(FarError::Refused { .. }) | Self::Missing { .. } => InfraKind::Missing,
            Self::Far(FarError::Late { .. }) => InfraKind::Timeout,
            Self::NoRoom { .. } => InfraKind::OutOfDisk,
            Self::Failed { reason, .. } | Self::Far(FarError::File { reason, .. })
                if reason.contains("No space left on device") =>
            {
                InfraKind::OutOfDisk
            }
            // Trying again meets the same words, files and menu.
            Self::Word { .. } | Self::Foreign { .. } | Self::DefaultMoved { .. } => InfraKind::Missing,
            Self::Hook { kind, .. } => *kind,
            Self::Far(FarError::File { .. })
            | Self::Failed { .. }
            | Self::Answer { .. }
            | Self::Artifact { .. }
            | Self::Runs { .. }
            | Self::Damaged { .. }
            | Self::NotSet { .. } => InfraKind::Other,
        }
    }
}

impl From<Error> for InfraFailure {
    fn from(error: Error) -> Self {
        Self { kind: error.kind(), reason: format!("failed to {error}") }
    }
}

fn shown(shorts: &[Short]) -> String {
    let shown: Vec<String> = shorts.iter().map(ToString::to_string).collect();
    shown.join("; ")
}
