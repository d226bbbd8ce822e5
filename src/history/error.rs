//! What can go wrong with the user's repository or our worktrees, each with its next step.

use crate::model::CommitId;
use std::io;
use std::path::{Path, PathBuf};

/// An error of [`super::History`] or [`super::Worktree`]. Each text fits "failed to ...".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no repository that can be opened.
    #[error("open the git repository of {}: {reason}", dir.display())]
    Open {
        /// Where it was looked for.
        dir: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// The history ends early.
    #[error(
        "use the repository {}: it is a shallow clone, its history is cut off; complete it with: git -C {} fetch \
         --unshallow", dir.display(), dir.display()
    )]
    Shallow {
        /// Its common git directory.
        dir: PathBuf,
    },
    /// A revision names no commit.
    #[error("resolve the revision {rev:?}: {reason}")]
    Revision {
        /// As given.
        rev: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// Something in the repository cannot be read.
    #[error("read {what}: {reason}; {mend}")]
    Unreadable {
        /// What.
        what: String,
        /// libgit2's reason.
        reason: String,
        /// What mends it, or where it was.
        mend: String,
    },
    /// The endpoints span no range.
    #[error("find a range between good {good} and bad {bad}: {reason}")]
    NoRange {
        /// Good endpoint.
        good: CommitId,
        /// Bad endpoint.
        bad: CommitId,
        /// Why not, and what to do.
        reason: String,
    },
    /// A path limit that cannot be used.
    #[error("limit the search to {path:?}: {reason}")]
    Path {
        /// As given.
        path: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// A revert that cannot be tried.
    #[error("revert {commit}: {reason}")]
    Revert {
        /// The commit to revert.
        commit: CommitId,
        /// Why not, and what to do.
        reason: String,
    },
    /// The git program failed.
    #[error("run {command}: {reason}")]
    Command {
        /// The command line.
        command: String,
        /// Its own words or the operating system's.
        reason: String,
    },
    /// There is no git program.
    #[error("run git: it is not installed or not in PATH; on Debian: apt install git")]
    NoGit,
    /// A worktree of ours cannot be had at its place.
    #[error("make a worktree at {}: {reason}", path.display())]
    Worktree {
        /// Where.
        path: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// The operating system refused.
    #[error("use {}: {reason}", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
}

impl Error {
    pub(super) fn open(dir: &Path, error: &git2::Error) -> Self {
        let code = error.code();
        let reason = if code == git2::ErrorCode::NotFound {
            "there is none, neither here nor in a directory above; use --repo DIR".to_owned()
        } else if code == git2::ErrorCode::Owner {
            format!(
                "it belongs to another user and git does not open such repositories; if you trust it: git config \
                 --global --add safe.directory {}",
                dir.display()
            )
        } else {
            format!("{}; use --repo DIR to name another", error.message())
        };
        Self::Open { dir: dir.to_owned(), reason }
    }

    pub(super) fn io(path: &Path, reason: io::Error) -> Self {
        Self::Io { path: path.to_owned(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use git2::{ErrorClass, ErrorCode};

    #[test]
    fn a_foreign_owner_is_explained_with_the_command_that_trusts_the_directory() {
        let refused =
            git2::Error::new(ErrorCode::Owner, ErrorClass::Config, "repository path is not owned by you");
        let text = Error::open(Path::new("/srv/linux"), &refused).to_string();
        assert!(text.contains("git config --global --add safe.directory /srv/linux"), "{text}");
    }
}
