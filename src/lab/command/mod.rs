//! Builder and machine over the user's own commands; the contract is `hooks/README.md`.
//!
//! Owns: how a command is called (directory, environment, logs), what its exit status means, how its measurement is
//! read (in its last line, or by a parser of [`workload`](crate::workload)), and which candidate the session's tree holds. Must not do: judge a number, retry, decide whether a failing
//! boot is the commit's fault for good.
//!
//! Invariants: a command sees its candidate checked out in the tree; a candidate whose product stays in the tree is
//! built again before it runs once the tree has held another; only exit statuses that the contract gives to the
//! commit say anything about it; no process of a build, a run or a failed boot outlives its step, and no process of a
//! boot outlives [`Machine::off`](crate::lab::Machine::off).
//! Tested in `tests.rs` here, with real shells and a tree that is a plain directory.

mod builder;
mod call;
mod machine;
pub(in crate::lab) mod reading;
mod role;
mod site;
#[cfg(test)]
mod tests;

pub use builder::CommandBuilder;
pub use machine::{CommandMachine, Commands};
pub use reading::parse_measurement;
pub use site::{SharedSite, Site, SiteSpec};

use crate::model::CommitId;
use async_trait::async_trait;
use std::path::Path;

/// The session's own working tree, in which candidates are checked out.
#[async_trait(?Send)]
pub trait Tree {
    /// Makes the tree that of `commit`: tracked files are the commit's; files neither tracked nor ignored are gone;
    /// ignored files stay, so that incremental builds work. At the commit already: only modified tracked files are
    /// restored. Errors name what failed and why.
    async fn checkout(&mut self, commit: &CommitId) -> Result<(), String>;

    /// Its directory (SB_SOURCE), absolute.
    fn path(&self) -> &Path;
}
