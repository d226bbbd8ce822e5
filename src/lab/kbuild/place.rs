//! Where make runs: here, or on a build host, with the same words for both.

use super::host::{BuildHost, There, Who};
use super::run::{Runner, Step};
use super::slot::Slot;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// Where modules are installed to be packed.
const STAGING: &str = "staging";

/// Where make runs for one step.
pub(super) enum Place<'a> {
    /// On this host.
    Here(&'a Slot),
    /// On another; the slot's own directories mirror what is kept.
    There { host: &'a BuildHost, at: There, slot: &'a Slot, session: &'a Path },
}

impl<'a> Place<'a> {
    /// Sees to the directories there, where it is another machine.
    pub(super) async fn find(
        host: Option<&'a BuildHost>,
        slot: &'a Slot,
        session: &'a Path,
        run: &Runner<'_>,
    ) -> Step<Self> {
        let Some(host) = host else { return Ok(Self::Here(slot)) };
        let name = slot.name();
        let at = host.prepare(run, &Who { root: slot.root(), slot: &name, session }).await?;
        Ok(Self::There { host, at, slot, session })
    }

    /// Directory of all builders.
    pub(super) fn root(&self) -> &Path {
        match self {
            Self::Here(slot) => slot.root(),
            Self::There { at, .. } => &at.root,
        }
    }

    pub(super) fn source(&self) -> PathBuf {
        match self {
            Self::Here(slot) => slot.source(),
            Self::There { at, .. } => at.source.clone(),
        }
    }

    pub(super) fn build(&self) -> PathBuf {
        match self {
            Self::Here(slot) => slot.build(),
            Self::There { at, .. } => at.build.clone(),
        }
    }

    /// Where modules are installed; [`fetch_staging`](Self::fetch_staging) tells where they are here.
    pub(super) fn staging(&self) -> PathBuf {
        match self {
            Self::Here(slot) => slot.file(STAGING),
            Self::There { at, .. } => at.staging.clone(),
        }
    }

    pub(super) fn cpus(&self) -> usize {
        match self {
            Self::Here(_) => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            Self::There { at, .. } => at.cpus,
        }
    }

    /// What a build directory is made on, as part of its stamp; empty: this host.
    pub(super) fn stamp(&self) -> String {
        match self {
            Self::Here(_) => String::new(),
            Self::There { host, at, .. } => format!("{} {}\n", host.address(), at.build.display()),
        }
    }

    /// Runs a command, its output in the log; gives its exit status.
    pub(super) async fn execute(&self, run: &Runner<'_>, command: Command) -> Step<i32> {
        match self {
            Self::Here(_) => run.execute(command).await,
            Self::There { host, at, .. } => Ok(host.run(run, at, &command).await?.0),
        }
    }

    /// Runs a command; gives its exit status and what it printed.
    pub(super) async fn capture(&self, run: &Runner<'_>, command: Command) -> Step<(i32, Vec<u8>)> {
        match self {
            Self::Here(_) => run.capture(command).await,
            Self::There { host, at, .. } => host.run(run, at, &command).await,
        }
    }

    /// Before a build directory is emptied here: nothing works in the one there, and it is empty.
    pub(super) async fn start_anew(&self) -> Step<()> {
        let Self::There { host, at, slot, session } = self else { return Ok(()) };
        let name = slot.name();
        host.start_anew(at, &Who { root: slot.root(), slot: &name, session }).await
    }

    /// The source tree as it is here.
    pub(super) async fn send_tree(&self, run: &Runner<'_>) -> Step<()> {
        let Self::There { host, at, slot, .. } = self else { return Ok(()) };
        host.send_tree(run, at, &slot.source()).await
    }

    /// Files of the build directory that were written here.
    pub(super) async fn send(&self, run: &Runner<'_>, names: &[&str]) -> Step<()> {
        let Self::There { host, at, slot, .. } = self else { return Ok(()) };
        host.send(run, at, &slot.build(), names).await
    }

    /// Files of the build directory that make wrote.
    pub(super) async fn fetch(&self, run: &Runner<'_>, names: &[&str]) -> Step<()> {
        let Self::There { host, at, slot, .. } = self else { return Ok(()) };
        host.fetch(run, at, &slot.build(), names).await
    }

    /// Nothing of an earlier kernel's modules is left where they are installed.
    pub(super) async fn clear_staging(&self) -> Step<()> {
        match self {
            Self::Here(slot) => super::modules::clear(&slot.file(STAGING)),
            Self::There { host, at, .. } => host.empty(&at.staging).await,
        }
    }

    /// The installed modules in a directory of this host.
    pub(super) async fn fetch_staging(&self, run: &Runner<'_>) -> Step<PathBuf> {
        match self {
            Self::Here(slot) => Ok(slot.file(STAGING)),
            Self::There { host, at, slot, .. } => {
                let here = slot.file(STAGING);
                host.fetch_dir(run, &at.staging, &here).await?;
                Ok(here)
            }
        }
    }
}
