//! The command line: arguments, one file a subcommand, and how errors are shown.
//!
//! Owns: what is printed (standard output is data, standard error is talk) and the exit status. Must not do: anything a
//! library user could not. Exit statuses are those of [`exit`]. Tested in tests/it/cli.rs with the real binary.

mod args;
mod assemble;
mod bundle;
mod cleanup;
mod command_line;
mod doctor;
mod examples;
pub mod exit;
mod leaving;
mod manual;
mod notify;
mod parse;
mod profile;
mod report;
mod show;
mod shown;
mod signals;
mod simulate;
mod start;
mod survey;
mod telling;
mod watch;
mod work;

use crate::driver::{DriverError, SessionDir, StateRoot, is_plain};
use crate::history::{self, History};
use crate::journal::JournalError;
use crate::profile::ProfileError;
use crate::report::{View, say};
use args::{Cli, Command};
use clap::FromArgMatches;
use std::process::ExitCode;
use thiserror::Error;

/// What a command can fail with.
#[derive(Debug, Error)]
pub enum CliError {
    /// Arguments that clap cannot judge.
    #[error("{0}")]
    Usage(String),
    /// Repository.
    #[error(transparent)]
    History(#[from] history::Error),
    /// Profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// Session.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// Lab.
    #[error("{0}")]
    Lab(String),
    /// Operating system.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl CliError {
    fn exit(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::History(_) | Self::Profile(_) => exit::USAGE,
            Self::Driver(error) => match error {
                DriverError::Journal(journal) => match journal {
                    JournalError::Damaged { .. }
                    | JournalError::Empty { .. }
                    | JournalError::Version { .. } => exit::JOURNAL,
                    JournalError::Locked { .. } => exit::USAGE,
                    JournalError::Io { .. } => exit::INFRASTRUCTURE,
                },
                DriverError::State { .. } | DriverError::Range { .. } => exit::JOURNAL,
                DriverError::Bug(_) => exit::BUG,
                DriverError::Exists { .. }
                | DriverError::Missing { .. }
                | DriverError::Imported { .. }
                | DriverError::Bundle { .. } => exit::USAGE,
                DriverError::Io { .. } => exit::INFRASTRUCTURE,
            },
            Self::Lab(_) | Self::Io { .. } => exit::INFRASTRUCTURE,
        }
    }
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let parsed = examples::command().try_get_matches().and_then(|found| Cli::from_arg_matches(&found));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors; both are printed where they belong.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::DONE });
        }
    };
    match dispatch(cli) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say(&shown::shown(&error));
            ExitCode::from(error.exit())
        }
    }
}

fn dispatch(cli: Cli) -> Result<u8, CliError> {
    let place = &cli.place;
    match cli.command {
        Command::Start(start) => start::bisect(place, start),
        Command::RevertTest(test) => start::revert_test(place, test),
        Command::Resume { session, budget, cleanup, telling } => {
            work::resume(place, session.as_deref(), budget.as_deref(), cleanup, &telling)
        }
        Command::Status { session, watch: true, interval } => {
            watch::run(place, session.as_deref(), &interval)
        }
        Command::Status { session, .. } => show::status(place, session.as_deref()),
        Command::List => show::list(place),
        Command::Report { session, format, out, own_baseline, also } => {
            report::run(place, session.as_deref(), format, out.as_deref(), &View { own_baseline, also })
        }
        Command::Export { session, out } => bundle::export(place, session.as_deref(), out.as_deref()),
        Command::Import { file, session } => bundle::import(place, &file, session.as_deref()),
        Command::Survey(asked) => survey::run(place, &asked),
        Command::Log { session, git } => show::log(place, session.as_deref(), git),
        Command::Audit { session } => show::audit(place, session.as_deref()),
        Command::Simulate(wanted) => simulate::run(&wanted),
        Command::Profile { what } => profile::run(what),
        Command::Parse(wanted) => parse::run(&wanted),
        Command::Cleanup { session, profile } => cleanup::run(place, session.as_deref(), profile.as_deref()),
        Command::Doctor { profile, rehearse } => doctor::run(place, &profile, rehearse),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { dir } => manual::pages(&dir),
    }
}

/// Prints data; a reader that went away is no error of ours.
fn print(text: &str) -> Result<(), CliError> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CliError::Io { what: "write to standard output".to_owned(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The directory of sessions that the arguments name.
fn root(place: &args::Place) -> Result<StateRoot, CliError> {
    if let Some(state_dir) = &place.state_dir {
        let absolute = std::path::absolute(state_dir)
            .map_err(|source| CliError::Io { what: format!("find {}", state_dir.display()), source })?;
        return Ok(StateRoot::of(&absolute, Some(&absolute)));
    }
    let history = History::open(&place.repo)?;
    Ok(StateRoot::of(history.common_dir(), None))
}

/// The session of that name, or the newest one for which `wanted` holds.
fn session(root: &StateRoot, name: Option<&str>) -> Result<SessionDir, CliError> {
    let missing = |name: &str| DriverError::Missing { name: name.to_owned(), path: root.path().to_owned() };
    match name {
        Some(name) => {
            let dir = root.session(name);
            if is_plain(name) && dir.journal().exists() { Ok(dir) } else { Err(missing(name).into()) }
        }
        None => Ok(root.sessions()?.into_iter().next().ok_or_else(|| missing("(any)"))?),
    }
}
