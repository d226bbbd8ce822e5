//! The processes of one step: environment, deadline, log.

use crate::history;
use crate::lab::BuildJob;
use crate::lab::process::{Ended, Group};
use crate::model::{InfraFailure, InfraKind, Untestable, UntestableKind};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::Instant;

/// What of the caller's environment reaches a build: what programs need to be found and to run. Everything else
/// (MAKEFLAGS, KBUILD_*, CC, CFLAGS, ARCH...) would make the product depend on who builds.
const KEPT: [&str; 7] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LD_LIBRARY_PATH"];

/// The kernel prints these; fixed, so that the same source gives the same image.
const FIXED: [(&str, &str); 6] = [
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("KBUILD_BUILD_TIMESTAMP", "Sat Jan  1 00:00:00 UTC 2000"),
    ("KBUILD_BUILD_USER", "sched-bisect"),
    ("KBUILD_BUILD_HOST", "localhost"),
    ("KBUILD_BUILD_VERSION", "1"),
];

/// Marks the processes of a builder; its value is the builder's directory.
pub(super) const BUILDER: &str = "SB_BUILDER_DIR";

/// Why a step has no artifact.
#[derive(Debug, PartialEq)]
pub(super) enum Stop {
    /// The commit's fault.
    Untestable(Untestable),
    /// Ours.
    Infra(InfraFailure),
}

pub(super) type Step<T> = Result<T, Stop>;

impl Stop {
    pub(super) fn untestable(kind: UntestableKind, reason: String) -> Self {
        Self::Untestable(Untestable { kind, reason })
    }

    pub(super) fn infra(kind: InfraKind, reason: String) -> Self {
        Self::Infra(InfraFailure { kind, reason })
    }
}

impl From<history::Error> for Stop {
    fn from(error: history::Error) -> Self {
        let text = error.to_string();
        let kind = if matches!(error, history::Error::NoGit) {
            InfraKind::Missing
        } else if super::failure::is_disk_full(&text) {
            InfraKind::OutOfDisk
        } else {
            InfraKind::Other
        };
        Self::infra(kind, format!("failed to {text}"))
    }
}

/// Turns an error of the operating system about `path` into a failure of ours.
pub(super) fn io_at(path: &Path) -> impl Fn(io::Error) -> Stop {
    move |error| {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
        let kind = if full { InfraKind::OutOfDisk } else { InfraKind::Other };
        Stop::infra(kind, format!("cannot use {}: {error}", path.display()))
    }
}

/// Starts the processes of one step.
pub(super) struct Runner<'a> {
    owner: &'a Path,
    builder: &'a Path,
    log: PathBuf,
    end: Instant,
    deadline: Duration,
}

impl<'a> Runner<'a> {
    /// Begins the step: an empty log, the clock runs.
    pub(super) fn start(owner: &'a Path, builder: &'a Path, job: &BuildJob) -> Step<Self> {
        File::create(&job.log).map_err(io_at(&job.log))?;
        let end = Instant::now() + job.deadline;
        Ok(Self { owner, builder, log: job.log.clone(), end, deadline: job.deadline })
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// A program with the environment of a build.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(FIXED);
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }

    /// Runs a command to its end, its output in the log; gives its exit status.
    pub(super) async fn execute(&self, command: Command) -> Step<i32> {
        let log = File::options().append(true).open(&self.log).map_err(io_at(&self.log))?;
        self.run(command, log).await
    }

    /// Runs a command to its end; gives its exit status and standard output.
    pub(super) async fn capture(&self, command: Command) -> Step<(i32, Vec<u8>)> {
        let mut file = tempfile::tempfile().map_err(io_at(&std::env::temp_dir()))?;
        let out = file.try_clone().map_err(io_at(&std::env::temp_dir()))?;
        let status = self.run(command, out).await?;
        let mut output = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut output)).map_err(io_at(&std::env::temp_dir()))?;
        Ok((status, output))
    }

    async fn run(&self, mut command: Command, out: File) -> Step<i32> {
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        self.note(&shown(&command));
        let err = File::options().append(true).open(&self.log).map_err(io_at(&self.log))?;
        command.env(BUILDER, self.builder).stdin(Stdio::null()).stdout(out).stderr(err);
        let mut group = Group::spawn(&mut command, self.owner).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                Stop::infra(InfraKind::Missing, super::failure::missing(&program))
            } else {
                Stop::infra(InfraKind::Other, format!("cannot start {program}: {error}"))
            }
        })?;
        match group.wait(self.left()).await.map_err(io_at(Path::new(&program)))? {
            Ended::Exit(status) => Ok(status),
            Ended::Deadline => Err(self.timeout()),
            Ended::Signal(signal) => {
                Err(Stop::infra(InfraKind::Killed, format!("{program} was killed by signal {signal}")))
            }
        }
    }

    /// Until the deadline.
    pub(super) fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Waits for work of git's inside the deadline.
    pub(super) async fn git(&self, work: impl Future<Output = Result<(), history::Error>>) -> Step<()> {
        match tokio::time::timeout_at(self.end, work).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(self.timeout()),
        }
    }

    pub(super) fn timeout(&self) -> Stop {
        let reason = format!(
            "the build did not end within its {} s; raise the build deadline or give it more jobs",
            self.deadline.as_secs()
        );
        Stop::infra(InfraKind::Timeout, reason)
    }

    /// Writes a line of our own into the log.
    pub(super) fn note(&self, text: &str) {
        let line = format!("+ {text}\n");
        let file = File::options().append(true).open(&self.log);
        if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
            tracing::warn!(log = %self.log.display(), %error, "cannot write to the build log");
        }
    }

    /// Puts output that came from elsewhere into the log.
    pub(super) fn append(&self, output: &[u8]) -> Step<()> {
        let file = File::options().append(true).open(&self.log);
        file.and_then(|mut file| file.write_all(output)).map_err(io_at(&self.log))
    }

    /// How long the log is by now.
    pub(super) fn log_size(&self) -> u64 {
        fs::metadata(&self.log).map_or(0, |log| log.len())
    }

    /// The log from a byte on.
    pub(super) fn log_from(&self, from: u64) -> Step<String> {
        let read = || {
            let mut file = File::open(&self.log)?;
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().map_err(io_at(&self.log))
    }
}

/// Whether a variable is one of the caller's, which means nothing on another machine.
pub(super) fn kept(name: &OsStr) -> bool {
    KEPT.iter().any(|kept| name == *kept)
}

pub(super) fn shown(command: &Command) -> String {
    let command = command.as_std();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
