//! The lab: building, booting and running candidates.
//!
//! Owns: the ports [`Builder`] and [`Machine`] and their adapters. Must not do: decide anything, write the
//! journal, judge a number. A port's answer sorts every failure into a fact about the commit or a failure of ours;
//! when in doubt it is ours. Dropping a future of a port ends every process it started.
//! Tested in each adapter and, with real kernels, in tests/it/.

mod build_id;
pub mod command;
pub mod console;
pub mod console_command;
mod identity;
pub mod kbuild;
pub mod power;
pub mod process;
pub mod qemu;
pub mod shell;
pub mod sim;
pub mod splat;
pub mod ssh;
pub mod stage;

use crate::model::{Artifact, BootNo, BootResult, BuildResult, CommitId, RunResult, StepId};
use crate::session::NamedVariant;
use async_trait::async_trait;
use std::path::PathBuf;
use std::time::Duration;

/// One build to do.
#[derive(Debug, Clone)]
pub struct BuildJob {
    /// Step of the journal.
    pub step: StepId,
    /// What to build.
    pub commit: CommitId,
    /// When to give up.
    pub deadline: Duration,
    /// File that takes the whole output.
    pub log: PathBuf,
}

/// One boot to do.
#[derive(Debug, Clone)]
pub struct BootJob {
    /// Step of the journal.
    pub step: StepId,
    /// What to boot.
    pub artifact: Artifact,
    /// Number of this boot in the session.
    pub boot: BootNo,
    /// What its runs are measured under.
    pub variant: NamedVariant,
    /// Existing, empty directory of this boot (SB_BOOT_DIR).
    pub dir: PathBuf,
    /// When to give up.
    pub deadline: Duration,
    /// File that takes the console or output.
    pub log: PathBuf,
}

/// One run in the live boot.
#[derive(Debug, Clone)]
pub struct RunJob {
    /// Step of the journal.
    pub step: StepId,
    /// What runs.
    pub artifact: Artifact,
    /// The live boot.
    pub boot: BootNo,
    /// Its directory.
    pub dir: PathBuf,
    /// Index of the run inside the boot, from 1; warm-up runs count.
    pub repetition: u32,
    /// When to give up.
    pub deadline: Duration,
    /// File that takes the whole output.
    pub log: PathBuf,
}

/// Makes artifacts.
#[async_trait(?Send)]
pub trait Builder {
    /// Builds one commit. Idempotent: after an interruption it is simply called again.
    async fn build(&mut self, job: &BuildJob) -> BuildResult;
}

/// One machine under test.
#[async_trait(?Send)]
pub trait Machine {
    /// Starts the artifact and proves that it runs, under a boot id never seen before. A boot that is up is ended
    /// first.
    async fn boot(&mut self, job: &BootJob) -> BootResult;

    /// Runs the workload once in the live boot and reads its numbers.
    async fn run(&mut self, job: &RunJob) -> RunResult;

    /// Ends the live boot, if any. Nothing of it runs afterwards.
    async fn off(&mut self);
}
