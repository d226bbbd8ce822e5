//! The port to another machine: scripts of ours run on it, and files put there.

use async_trait::async_trait;
use std::path::Path;
use std::time::Duration;

/// A script for the far machine's `sh`, as root.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    /// For messages, so that it fits "failed to ...": "read the default boot entry".
    pub what: &'a str,
    /// Its text. A constant of the program: data travels in `args`, so that nothing of it can become code.
    pub text: &'static str,
    /// `$1`, `$2` and so on; no NUL bytes.
    pub args: &'a [&'a str],
    /// When to give up.
    pub deadline: Duration,
}

/// How a script ended: by itself, with this status. Whoever waits for a number must look at the status first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its exit status, as the far side itself wrote it.
    pub status: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

/// Why the far machine did not tell. None of it says anything about a commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FarError {
    /// Nothing answers there yet, or it says that it is booting: try again.
    #[error("{what}: {host} is not up: {reason}")]
    NotUp {
        /// What was to be done.
        what: String,
        /// The machine.
        host: String,
        /// Why.
        reason: String,
    },
    /// It answered before and does not any more; what was begun there may have been done or not.
    #[error("{what}: lost {host}: {reason}")]
    Lost {
        /// What was to be done.
        what: String,
        /// The machine.
        host: String,
        /// Why.
        reason: String,
    },
    /// It will not let us in, however often it is tried: key, host key, sudo.
    #[error("{what}: {host} refuses: {reason}")]
    Refused {
        /// What was to be done.
        what: String,
        /// The machine.
        host: String,
        /// Why, and what mends it.
        reason: String,
    },
    /// The script outlived its deadline and was ended there.
    #[error("{what}: not done on {host} within {deadline:?}")]
    Late {
        /// What was to be done.
        what: String,
        /// The machine.
        host: String,
        /// Its deadline.
        deadline: Duration,
    },
    /// A file of ours, or what the far side says of it.
    #[error("{what}: {reason}")]
    File {
        /// What was to be done.
        what: String,
        /// Why.
        reason: String,
    },
}

/// Another machine.
#[async_trait(?Send)]
pub trait Far {
    /// Its name, for messages.
    fn host(&self) -> &str;

    /// Runs a script there to its end.
    async fn sh(&mut self, script: Script<'_>) -> Result<Told, FarError>;

    /// Puts a file of this machine there: at `to`, an absolute path whose directory exists, whole or not at all. What an
    /// earlier, interrupted call got over is not sent again.
    async fn put(&mut self, from: &Path, to: &str) -> Result<(), FarError>;
}
