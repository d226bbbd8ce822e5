//! What came of a build, a boot, a run. Three kinds that never mix: a fact about the kernel (`Untestable`,
//! measured values), a failure on our side (`InfraFailure`), and success.

use super::CommitId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Why a commit cannot be measured. A fact about the commit; never read as good or bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UntestableKind {
    /// The build said no.
    Build,
    /// A fix-up patch neither applies nor is already there.
    FixUp,
    /// A required configuration symbol did not survive.
    Config,
    /// It did not come up.
    Boot,
    /// It panicked, oopsed or locked up on the way up or under load.
    Panic,
    /// The workload failed on every attempt.
    Run,
    /// The workload's numbers were invalid on every attempt.
    InvalidOutput,
    /// A command answered 125: "this commit cannot be measured".
    Declared,
    /// It has not the tunable that its variant sets.
    Knob,
}

impl UntestableKind {
    /// Whether it would be the same each time, so that it is not tried again.
    pub fn is_certain(self) -> bool {
        match self {
            Self::Declared | Self::Knob => true,
            Self::Build
            | Self::FixUp
            | Self::Config
            | Self::Boot
            | Self::Panic
            | Self::Run
            | Self::InvalidOutput => false,
        }
    }
}

impl fmt::Display for UntestableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Build => "build",
            Self::FixUp => "fix-up",
            Self::Config => "config",
            Self::Boot => "boot",
            Self::Panic => "panic",
            Self::Run => "run",
            Self::InvalidOutput => "invalid output",
            Self::Declared => "declared",
            Self::Knob => "knob",
        })
    }
}

/// A commit that cannot be measured, with the reason in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untestable {
    /// Class of the failure.
    pub kind: UntestableKind,
    /// One line for people, e.g. the first compiler error.
    pub reason: String,
}

/// What broke on our side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InfraKind {
    /// The machine or its channel does not answer.
    Unreachable,
    /// A deadline passed where the kernel cannot be to blame.
    Timeout,
    /// No room left.
    OutOfDisk,
    /// A process of ours was killed by a signal.
    Killed,
    /// A command asked to be tried again (exit 75).
    TryAgain,
    /// A command is itself broken (exit 126, 127; not executable; malformed). Not retried.
    BrokenCommand,
    /// A tool is missing or refused (git, make, qemu). Not retried.
    Missing,
    /// The kernel that runs is not the candidate.
    WrongKernel,
    /// The machine is not what it was in the session's first boot: its numbers would mix with others.
    Environment,
    /// Anything else of ours.
    Other,
}

impl InfraKind {
    /// Whether trying again can help. `false`: the session stops at once, resumable.
    pub fn is_retried(self) -> bool {
        match self {
            Self::Unreachable
            | Self::Timeout
            | Self::Killed
            | Self::TryAgain
            | Self::WrongKernel
            | Self::Environment
            | Self::Other => true,
            Self::OutOfDisk | Self::BrokenCommand | Self::Missing => false,
        }
    }
}

/// A failure on our side. Never evidence about a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfraFailure {
    /// Class.
    pub kind: InfraKind,
    /// What failed, why, and what mends it.
    pub reason: String,
}

/// The product of a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The candidate.
    pub commit: CommitId,
    /// Directory with the product (image, configuration, log); absolute. Empty when the product stays in the tree.
    pub dir: String,
    /// Release string that the running kernel must show; empty where no kernel is booted.
    pub release: String,
    /// GNU build id (lower-case hex) that the running kernel must show; empty where no kernel is booted.
    pub build_id: String,
    /// blake3 of the image, hex; empty where there is none.
    pub image_hash: String,
    /// blake3 of the configuration, hex; empty where there is none.
    pub config_hash: String,
    /// How the configuration differs from the base, one symbol a line ("CONFIG_FOO: y -> n").
    pub config_delta: Vec<String>,
    /// Compiler and version.
    pub toolchain: String,
    /// Whether it came from the cache of an earlier build.
    pub cached: bool,
    /// Fix-up patches: applied, or already there.
    pub fixups: Vec<String>,
    /// What stands in the directory beside image and configuration for a machine with a disk (`System.map`,
    /// `modules.tar`): blake3 (hex) by file name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub packed: BTreeMap<String, String>,
}

impl Artifact {
    /// The product of a build of which nothing is known but what was built.
    pub fn of(commit: CommitId) -> Self {
        Self {
            commit,
            dir: String::new(),
            release: String::new(),
            build_id: String::new(),
            image_hash: String::new(),
            config_hash: String::new(),
            config_delta: Vec::new(),
            toolchain: String::new(),
            cached: false,
            fixups: Vec::new(),
            packed: BTreeMap::new(),
        }
    }
}

/// End of a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum BuildResult {
    /// There is an artifact.
    Built {
        /// It.
        artifact: Box<Artifact>,
    },
    /// The commit does not build.
    Untestable(Untestable),
    /// We failed.
    Infra(InfraFailure),
}

/// A boot that counts: the kernel proved to be the candidate and the boot id is new.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BootRecord {
    /// The machine's own id of this boot; unique in the session.
    pub boot_id: String,
    /// `uname -r` as read back; empty where no kernel is booted.
    pub release: String,
    /// Kernel command line as read back; empty where no kernel is booted.
    pub cmdline: String,
    /// What else was read back once it was up, by name ("canary", "sut.cpus"). Records of older versions have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// What the machines were like, by field; those of other roles than the SUT as "ldg:governor". What a machine does not
    /// have is not there. Empty where it was not looked at, and in records of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// End of a boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum BootResult {
    /// It runs.
    Booted(BootRecord),
    /// It does not come up (one attempt; the session decides when that is enough).
    Untestable(Untestable),
    /// We failed.
    Infra(InfraFailure),
}

/// End of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum RunResult {
    /// The workload reported these; each finite. The judged metric is among them.
    Measured {
        /// Value by metric name.
        metrics: BTreeMap<String, f64>,
        /// The tunables that it ran under, as they were read back, and what else was seen of the machines, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        settings: BTreeMap<String, String>,
        /// What the kernel counted meanwhile, by name; for people, never judged. Records of older versions have none.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        evidence: BTreeMap<String, f64>,
    },
    /// The run ended but its numbers cannot be used (no number, NaN, several numbers, a splat in the log).
    Invalid {
        /// Why.
        reason: String,
    },
    /// The workload failed.
    Failed {
        /// Why.
        reason: String,
    },
    /// The commit says it cannot be measured (exit 125), or its kernel died under the workload.
    Untestable(Untestable),
    /// We failed.
    Infra(InfraFailure),
}

impl RunResult {
    /// Measured, with nothing seen beside the numbers.
    pub fn measured(metrics: BTreeMap<String, f64>) -> Self {
        Self::Measured { metrics, settings: BTreeMap::new(), evidence: BTreeMap::new() }
    }
}
