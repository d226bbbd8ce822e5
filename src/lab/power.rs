//! Power of a machine, switched by a command of the user's (contract: hooks/README.md, "Power").
//!
//! Owns: calling the command with what is wanted and its addresses in the environment, and sorting its end. Must not do:
//! decide when a machine is switched, try again. Whatever goes wrong here is ours: power says nothing about a commit. Tested
//! here and, with the shipped hooks, in tests/it/power_hooks.rs.

use super::process::{Ended, run_to_files};
use crate::model::{InfraFailure, InfraKind};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::process::Command;

/// Environment variable with what is wanted.
pub const WANTED: &str = "SB_POWER";

/// Longest part of a hook's last line that a message takes, in characters.
const WORDS_MAX: usize = 300;

/// Whether a machine has power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerState {
    /// It has.
    On,
    /// It has not.
    Off,
}

/// What a command is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Give power; nothing happens to a machine that has it.
    On,
    /// Take power away, whatever runs.
    Off,
    /// Take power away and give it again, or what comes nearest to it (a reset).
    Cycle,
}

impl Switch {
    fn word(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Cycle => "cycle",
        }
    }
}

/// A machine's power.
#[derive(Debug, Clone)]
pub struct PowerCommand {
    /// Run by `sh -c`.
    pub command: String,
    /// The machine's addresses (`SB_POWER_HOST`...); also where its password is, never the password itself.
    pub env: Vec<(String, String)>,
    /// Session directory, the mark of its processes.
    pub owner: PathBuf,
    /// When to give up on one call.
    pub deadline: Duration,
}

impl PowerCommand {
    /// Switches and returns once the command has seen it done.
    pub async fn switch(&self, to: Switch) -> Result<(), InfraFailure> {
        self.call(to.word()).await.map(|_| ())
    }

    /// Asks whether the machine has power. Some devices cannot tell: then the command refuses.
    pub async fn state(&self) -> Result<PowerState, InfraFailure> {
        let said = self.call("status").await?;
        match said.trim() {
            "on" => Ok(PowerState::On),
            "off" => Ok(PowerState::Off),
            other => Err(InfraFailure {
                kind: InfraKind::BrokenCommand,
                reason: format!(
                    "the power command printed {:?} for {WANTED}=status and not on or off; run `{}` by hand",
                    shortened(other),
                    self.command
                ),
            }),
        }
    }

    /// Calls the command; gives what it printed.
    async fn call(&self, wanted: &str) -> Result<String, InfraFailure> {
        let files = tempfile::tempdir().map_err(|error| not_started(&error))?;
        let (out, err) = (files.path().join("out"), files.path().join("err"));
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command);
        command.envs(self.env.iter().map(|(name, value)| (name, value))).env(WANTED, wanted);
        let ended = run_to_files(&mut command, &self.owner, self.deadline, &out, &err).await;
        let ended = ended.map_err(|error| not_started(&error))?;
        let printed = read(&out);
        match self.sort(wanted, ended, &last_line(&read(&err)).or_else(|| last_line(&printed))) {
            None => Ok(printed),
            Some(failure) => Err(failure),
        }
    }

    fn sort(&self, wanted: &str, ended: Ended, said: &Option<String>) -> Option<InfraFailure> {
        let said = said.as_ref().map(|line| format!(": {line}")).unwrap_or_default();
        let (kind, what) = match ended {
            Ended::Exit(0) => return None,
            Ended::Exit(75) => (InfraKind::TryAgain, "asks to be tried again (exit 75)".to_owned()),
            Ended::Exit(1) => (InfraKind::BrokenCommand, "is refused (exit 1)".to_owned()),
            Ended::Exit(127) => (InfraKind::Missing, "lacks a tool (exit 127)".to_owned()),
            Ended::Exit(126) => (InfraKind::BrokenCommand, "cannot be executed (exit 126)".to_owned()),
            // How a shell reports that its child died of a signal.
            Ended::Exit(code @ 129..=192) => {
                (InfraKind::Killed, format!("was killed by signal {}", code - 128))
            }
            Ended::Exit(code) => (InfraKind::Other, format!("failed with exit {code}")),
            Ended::Signal(signal) => (InfraKind::Killed, format!("was killed by signal {signal}")),
            Ended::Deadline => {
                (InfraKind::Timeout, format!("did not end within its {} s", self.deadline.as_secs()))
            }
        };
        let reason = format!("the power command ({WANTED}={wanted}) {what}{said}");
        Some(InfraFailure { kind, reason })
    }
}

fn not_started(error: &io::Error) -> InfraFailure {
    InfraFailure { kind: InfraKind::Other, reason: format!("failed to start the power command: {error}") }
}

fn read(path: &std::path::Path) -> String {
    // What cannot be read was not said.
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn last_line(text: &str) -> Option<String> {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(shortened)
}

fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(WORDS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power(command: &str) -> PowerCommand {
        PowerCommand {
            command: command.to_owned(),
            env: vec![("SB_POWER_HOST".to_owned(), "bmc 'a' $b".to_owned())],
            owner: std::env::temp_dir(),
            deadline: Duration::from_secs(20),
        }
    }

    #[tokio::test]
    async fn a_command_finds_what_is_wanted_and_its_addresses_in_the_environment() {
        let told = power("[ \"$SB_POWER $SB_POWER_HOST\" = \"cycle bmc 'a' \\$b\" ] || exit 3");
        assert_eq!(told.switch(Switch::Cycle).await, Ok(()));
        assert_eq!(power("echo on").state().await, Ok(PowerState::On));
        assert_eq!(power("echo; echo ' off'").state().await, Ok(PowerState::Off));
    }

    #[tokio::test]
    async fn each_end_is_sorted_with_the_commands_last_words() {
        let cases = [
            ("echo no power >&2; exit 75", InfraKind::TryAgain, "no power"),
            ("echo wrong password; exit 1", InfraKind::BrokenCommand, "wrong password"),
            ("no-such-tool", InfraKind::Missing, "no-such-tool"),
            ("exit 3", InfraKind::Other, "exit 3"),
            ("kill -9 $$", InfraKind::Killed, "signal 9"),
            ("sh -c 'kill -9 $$'; exit $?", InfraKind::Killed, "signal 9"),
        ];
        for (command, kind, word) in cases {
            let failure = power(command).switch(Switch::Off).await.expect_err(command);
            assert_eq!(failure.kind, kind, "{command}: {}", failure.reason);
            assert!(
                failure.reason.contains(word) && failure.reason.contains("SB_POWER=off"),
                "{}",
                failure.reason
            );
        }
        let garbled = power("echo maybe").state().await.expect_err("no state");
        assert_eq!(garbled.kind, InfraKind::BrokenCommand);
        assert!(garbled.reason.contains("maybe"), "{}", garbled.reason);
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_ended_with_its_children() {
        let hung =
            PowerCommand { deadline: Duration::from_millis(200), ..power("sleep 300 & echo $!; wait") };
        let failure = hung.switch(Switch::On).await.expect_err("hangs");
        assert_eq!(failure.kind, InfraKind::Timeout);
        let pid = failure.reason.rsplit(' ').next().expect("the pid that it printed");
        // One that nobody has waited for yet is dead too.
        let lives = |stat: String| !stat.contains(") Z ");
        assert!(!std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(lives), "{}", failure.reason);
    }
}
