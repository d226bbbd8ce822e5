//! `--notify CMD`: a command that is told that a session ended or stopped. What it does changes nothing about the session
//! or the exit status. Tested in tests/it/telling.rs.

use super::exit;
use crate::driver::SessionDir;
use crate::lab::process::{Ended, Group};
use crate::model::Conclusion;
use crate::report::say;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// How long the command may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// What the command is told, in its environment only: nothing of a session becomes part of a shell line.
#[derive(Debug)]
pub(super) struct News {
    /// Exit status that this process will have.
    pub exit: u8,
    /// Whether there is an end to the session.
    pub is_concluded: bool,
    /// Kind of conclusion; "stopped" where there is none.
    pub conclusion: String,
    /// What it came to, in words.
    pub summary: String,
}

impl News {
    /// Of a session that concluded or stopped.
    pub fn of(conclusion: &Conclusion, is_concluded: bool) -> Self {
        // Kinds are plain names: they serialize as text.
        let kind = serde_json::to_value(conclusion.kind).ok();
        let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default().to_owned();
        Self { exit: conclusion.exit, is_concluded, conclusion: kind, summary: one_line(&conclusion.reason) }
    }

    /// Of a session whose process failed.
    pub fn failed(exit: u8, error: &str) -> Self {
        Self {
            exit,
            is_concluded: false,
            conclusion: "stopped".to_owned(),
            summary: one_line(&format!("failed to {error}")),
        }
    }

    fn event(&self) -> &'static str {
        match self.exit {
            _ if self.is_concluded => "concluded",
            exit::INFRASTRUCTURE => "infrastructure",
            exit::BUDGET => "budget",
            exit::INTERRUPTED => "interrupted",
            _ => "failed",
        }
    }
}

/// An environment can hold no NUL, and one line is easier to use.
fn one_line(words: &str) -> String {
    words.replace('\0', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs the command and waits for it, but not for ever; what is wrong with it is told on standard error.
pub(super) fn run(command: &str, dir: &SessionDir, news: &News) {
    if let Some(why) = trouble(command, dir, news, DEADLINE) {
        say(&format!("warning: --notify: {why}; that changes nothing about the session"));
    }
}

fn trouble(command: &str, dir: &SessionDir, news: &News, deadline: Duration) -> Option<String> {
    let ended = tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        runtime.block_on(async {
            let mut group = Group::spawn(&mut shell(command, dir, news)?, dir.path())?;
            tokio::select! {
                ended = group.wait(deadline) => ended.map(Some),
                // The group ends with its guard.
                _ = tokio::signal::ctrl_c() => Ok(None),
            }
        })
    });
    match ended {
        Ok(Some(Ended::Exit(0))) => None,
        Ok(Some(Ended::Exit(status))) => Some(format!("it exited with status {status}")),
        Ok(Some(Ended::Signal(signal))) => Some(format!("it died of signal {signal}")),
        Ok(Some(Ended::Deadline)) => Some(format!("it was ended after {} s", deadline.as_secs())),
        Ok(None) => Some("it was interrupted".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

/// Standard output is for data of ours, so the command's goes to standard error.
fn shell(command: &str, dir: &SessionDir, news: &News) -> std::io::Result<Command> {
    let talk = std::io::stderr().as_fd().try_clone_to_owned()?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::from(talk));
    shell.env("SB_EVENT", news.event()).env("SB_SESSION", dir.name());
    shell.env("SB_CONCLUSION", &news.conclusion).env("SB_SUMMARY", &news.summary);
    shell.env("SB_EXIT", news.exit.to_string());
    shell.env("SB_STATE_DIR", dir.path().parent().unwrap_or(Path::new(".")));
    Ok(shell)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(command: &str, exit: u8, is_concluded: bool) -> Option<String> {
        let dir = tempfile::tempdir().expect("a directory");
        let summary = one_line("a \0 b\nc");
        let news = News { exit, is_concluded, conclusion: "stopped".to_owned(), summary };
        trouble(command, &SessionDir::at(dir.path().join("s")), &news, Duration::from_secs(1))
    }

    #[test]
    fn a_command_that_does_not_end_is_ended_with_its_children_at_the_deadline() {
        let began = std::time::Instant::now();
        let why = told("sleep 300 & sleep 300", exit::DONE, true);
        assert_eq!(why.as_deref(), Some("it was ended after 1 s"));
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }

    #[test]
    fn the_event_follows_from_the_end_and_the_summary_is_one_line() {
        for (exit, is_concluded, event) in [
            (exit::DONE, true, "concluded"),
            (exit::INFRASTRUCTURE, true, "concluded"),
            (exit::INFRASTRUCTURE, false, "infrastructure"),
            (exit::BUDGET, false, "budget"),
            (exit::INTERRUPTED, false, "interrupted"),
            (exit::JOURNAL, false, "failed"),
        ] {
            let command = format!("[ \"$SB_EVENT $SB_EXIT $SB_SUMMARY\" = '{event} {exit} a b c' ]");
            assert_eq!(told(&command, exit, is_concluded), None, "{event}");
        }
    }
}
