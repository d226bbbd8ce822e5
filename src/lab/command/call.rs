//! One call of a user's command: started, ended, and its exit status sorted.

use super::reading::last_words;
use super::role::EXIT;
use crate::lab::process::{Ended, OWNER, end_marked, run_to_files};
use crate::model::{InfraFailure, InfraKind, StepId};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;

/// Environment variable with the step's number; it also marks what the step started.
const STEP: &str = "SB_STEP";

/// Environment variable that marks what one of a step's calls started.
pub(super) const CALL: &str = "SB_CALL";

/// Variables of the contract that not every command gets; one that is inherited from an outer session would lie.
const NOT_ALWAYS: [&str; 7] =
    ["SB_BOOT", "SB_BOOT_DIR", "SB_REPETITION", "SB_CMDLINE", "SB_ROLE", "SB_SUT_CPUS", "SB_LDG_CPUS"];

/// A command to call.
pub(super) struct Call<'a> {
    /// The step it belongs to.
    pub step: StepId,
    /// "build", "boot", "run": for messages.
    pub what: &'a str,
    /// Run by `sh -c`.
    pub script: &'a str,
    /// Working directory.
    pub dir: &'a Path,
    /// The contract's variables.
    pub env: Vec<(String, OsString)>,
    /// Session directory, the mark of its processes.
    pub owner: &'a Path,
    /// When to give up.
    pub deadline: Duration,
    /// File for standard output.
    pub out: &'a Path,
    /// File for standard error; may be `out`.
    pub err: &'a Path,
    /// Tells it from other calls of its step, whose processes are not ended with its own; `None`: the step has one call.
    pub mark: Option<String>,
    /// Whether what it left in the background may live on when it succeeds (a boot's virtual machine).
    pub leaves_processes: bool,
}

/// What a command said, by the contract's exit statuses.
pub(super) enum Answer {
    /// 0.
    Done,
    /// 125: the commit cannot be measured; with its last words.
    CannotMeasure(String),
    /// A status that the contract gives to the commit or the workload, in words.
    Failed(String),
    /// It outlived this deadline and was ended.
    Late(Duration),
    /// 75, 126, 127, a signal, or it could not be started.
    Infra(InfraFailure),
}

impl Call<'_> {
    /// Calls it and waits for its end.
    pub async fn answer(self) -> Answer {
        let mut command = Command::new("sh");
        command.arg("-c").arg(self.script).current_dir(self.dir);
        for name in NOT_ALWAYS {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.env(STEP, self.step.to_string());
        let mut left = match &self.mark {
            None => LeftBehind::of_step(self.owner, self.step),
            Some(mark) => {
                command.env(CALL, mark);
                LeftBehind::of_call(self.owner, mark)
            }
        };
        let ended = run_to_files(&mut command, self.owner, self.deadline, self.out, self.err).await;
        if self.leaves_processes && matches!(ended, Ok(Ended::Exit(0))) {
            left.keep();
        }
        drop(left);
        match ended {
            Ok(Ended::Exit(code)) => self.exited(code),
            Ok(Ended::Signal(signal)) => self.killed(signal),
            Ok(Ended::Deadline) => Answer::Late(self.deadline),
            Err(error) => Answer::Infra(self.not_started(&error)),
        }
    }

    fn exited(&self, code: i32) -> Answer {
        match code {
            0 => Answer::Done,
            75 => Answer::Infra(InfraFailure {
                kind: InfraKind::TryAgain,
                reason: format!("the {} command asked to be tried again (exit 75){}", self.what, self.said()),
            }),
            125 => Answer::CannotMeasure(format!(
                "the {} command says that this commit cannot be measured (exit 125){}",
                self.what,
                self.said()
            )),
            126 | 127 => Answer::Infra(InfraFailure {
                kind: InfraKind::BrokenCommand,
                reason: format!(
                    "the {} command is broken (exit {code}: {}){}; run `{}` by hand in {}",
                    self.what,
                    if code == 126 { "not executable" } else { "not found" },
                    self.said(),
                    self.script,
                    self.dir.display()
                ),
            }),
            // How a shell reports that its child died of a signal.
            129..=192 => self.killed(code - 128),
            code => {
                Answer::Failed(format!("the {} command failed with exit {code}{}", self.what, self.said()))
            }
        }
    }

    fn killed(&self, signal: i32) -> Answer {
        Answer::Infra(InfraFailure {
            kind: InfraKind::Killed,
            reason: format!("the {} command was killed by signal {signal}{}", self.what, self.said()),
        })
    }

    fn not_started(&self, error: &io::Error) -> InfraFailure {
        let broken = matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::ArgumentListTooLong);
        if broken {
            let reason =
                format!("the {} command cannot be started: {error}; shorten or correct it", self.what);
            return InfraFailure { kind: InfraKind::BrokenCommand, reason };
        }
        let doing = format!("start sh for the {} command in {}", self.what, self.dir.display());
        infra(&doing, error)
    }

    /// Its last words as a message's tail; standard error first, since standard output is data.
    fn said(&self) -> String {
        match last_words(self.err, EXIT).or_else(|| last_words(self.out, EXIT)) {
            Some(line) => format!(": {line}"),
            None => String::new(),
        }
    }
}

/// An operating system's error as a failure of ours; `doing` fits "failed to ...".
pub(super) fn infra(doing: &str, error: &io::Error) -> InfraFailure {
    let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let missing = error.kind() == io::ErrorKind::NotFound;
    let kind = if full {
        InfraKind::OutOfDisk
    } else if missing {
        InfraKind::Missing
    } else {
        InfraKind::Other
    };
    InfraFailure { kind, reason: format!("failed to {doing}: {error}") }
}

/// A path that stays right in another working directory.
pub(super) fn absolute(path: &Path) -> PathBuf {
    // Fails for an empty path or a lost working directory only; the later use of the path then says so.
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The processes that a step or a boot started and that left its process group. Dropping it ends them.
pub(super) struct LeftBehind {
    owner: PathBuf,
    mark: Option<(&'static str, OsString)>,
}

impl LeftBehind {
    /// Those of one step.
    pub fn of_step(owner: &Path, step: StepId) -> Self {
        Self { owner: owner.to_owned(), mark: Some((STEP, step.to_string().into())) }
    }

    /// Those of one of a step's calls.
    fn of_call(owner: &Path, mark: &str) -> Self {
        Self { owner: owner.to_owned(), mark: Some((CALL, mark.into())) }
    }

    /// Those of the boot with this directory.
    pub fn of_boot(owner: &Path, boot_dir: &OsStr) -> Self {
        Self { owner: owner.to_owned(), mark: Some(("SB_BOOT_DIR", boot_dir.to_owned())) }
    }

    fn keep(&mut self) {
        self.mark = None;
    }
}

impl Drop for LeftBehind {
    fn drop(&mut self) {
        if let Some((name, value)) = &self.mark {
            // Fails when /proc cannot be read; the process group was ended already.
            let _ = end_marked(&[(OWNER, self.owner.as_os_str()), (name, value)]);
        }
    }
}
