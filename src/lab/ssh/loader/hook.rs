//! The user's command, on this machine, that chooses the next boot: a PXE server's, a board farm's. Its contract stands in
//! hooks/README.md.

use crate::lab::process::{Ended, run_to_files};
use crate::lab::ssh::kernels::Error;
use crate::model::InfraKind;
use std::path::PathBuf;
use std::time::Duration;
use tokio::process::Command;

/// Exit status by which a command asks to be tried again.
const TRY_AGAIN: i32 = 75;

/// The command.
#[derive(Debug, Clone)]
pub struct Hook {
    /// Run by `sh -c`.
    pub command: String,
    /// Directory of the session, which owns its processes.
    pub session: PathBuf,
    /// Takes its output.
    pub log: PathBuf,
    /// When it is ended.
    pub deadline: Duration,
}

impl Hook {
    /// Runs it for the release; "" where none of ours shall boot any more.
    pub(super) async fn set_once(&self, host: &str, release: &str, words: &[String]) -> Result<(), Error> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command);
        command.env("SB_BOOT_ONCE", release).env("SB_CMDLINE", words.join(" ")).env("SB_HOST", host);
        let ended = run_to_files(&mut command, &self.session, self.deadline, &self.log, &self.log).await;
        let log = self.log.display();
        let (kind, reason) = match ended {
            Ok(Ended::Exit(0)) => return Ok(()),
            Ok(Ended::Exit(TRY_AGAIN)) => {
                (InfraKind::TryAgain, format!("it asks to be tried again; see {log}"))
            }
            Ok(Ended::Exit(status @ (126 | 127))) => {
                (InfraKind::BrokenCommand, format!("exit {status}: it cannot be run; see {log}"))
            }
            Ok(Ended::Exit(status)) => (InfraKind::Other, format!("exit {status}; see {log}")),
            Ok(Ended::Signal(signal)) => (InfraKind::Killed, format!("ended by signal {signal}; see {log}")),
            Ok(Ended::Deadline) => {
                (InfraKind::Timeout, format!("not done within {:?}; see {log}", self.deadline))
            }
            Err(error) => (InfraKind::Other, error.to_string()),
        };
        Err(Error::Hook { host: host.to_owned(), kind, reason })
    }
}
