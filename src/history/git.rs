//! The git program, started so that neither the caller's environment nor the user's habits change what it does.
//!
//! Owns: [`command`], and how a git of ours ends. Must not do: run hooks, ask questions, keep a daemon, tidy up the
//! user's repository.

use super::Error;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Output, Stdio};
use tokio::process::Command;

/// Variables of git's that stay: where its configuration lies (it may name safe directories and filters) and how it
/// reaches a remote (a partial clone fetches while it checks out).
const KEPT: [&str; 8] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSL_CAINFO",
    "GIT_SSL_NO_VERIFY",
];

/// Configuration that holds for every git of ours, with why.
const SETTINGS: [&str; 12] = [
    // The user's hooks are about his own work.
    "core.hooksPath=/dev/null",
    // Nothing stays behind in the background.
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    // A candidate is checked out whole and byte for byte.
    "core.autocrlf=false",
    "core.sparseCheckout=false",
    "submodule.recurse=false",
    // Our checkouts are nobody's history.
    "core.logAllRefUpdates=false",
    "advice.detachedHead=false",
    "color.ui=false",
    "core.quotePath=false",
    "worktree.useRelativePaths=false",
];

/// A git command in `dir`, with standard input empty. Arguments are the caller's to add.
pub fn command(dir: &Path) -> Command {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("GIT_") && !KEPT.contains(&text.as_ref()) {
            command.env_remove(&name);
        }
    }
    command
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .stdin(Stdio::null());
    for setting in SETTINGS {
        command.arg("-c").arg(setting);
    }
    command.arg("-C").arg(dir);
    command
}

/// Runs `git ARGS` in `dir` to its end. Dropping the future kills it with its children.
pub(super) async fn run(dir: &Path, args: &[&str], marks: &[(OsString, OsString)]) -> Result<(), Error> {
    let mut command = command(dir);
    command.args(args).envs(marks.iter().map(|(name, value)| (name, value)));
    let shown = format!("git {} (in {})", args.join(" "), dir.display());
    match finish(command).await {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let words = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            let reason = if words.is_empty() { output.status.to_string() } else { words };
            Err(Error::Command { command: shown, reason })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && dir.is_dir() => Err(Error::NoGit),
        Err(error) => Err(Error::Command { command: shown, reason: error.to_string() }),
    }
}

async fn finish(mut command: Command) -> io::Result<Output> {
    command.process_group(0).kill_on_drop(true).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn()?;
    let mut guard = Guard(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let output = child.wait_with_output().await;
    guard.0 = None;
    output
}

/// Kills a process group unless it has ended.
struct Guard(Option<Pid>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Fails only when the group is gone, which is what is wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
