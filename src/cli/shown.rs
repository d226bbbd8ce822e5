//! How an error is shown: `error:` what failed, `caused by:` why, `hint:` what to do, each on a line of its own where they
//! are known apart. Tested in tests/it/messages.rs.

use super::CliError;
use crate::driver::DriverError;
use crate::journal::{FORMAT_VERSION, Holder, JournalError, next_step};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// An error in its parts.
struct Parts {
    what: String,
    cause: Option<String>,
    hint: Option<String>,
}

/// The error as a person reads it.
pub(super) fn shown(error: &CliError) -> String {
    let Parts { what, cause, hint } = parts(error);
    let mut text = format!("error: failed to {what}");
    for (head, words) in [("caused by", cause), ("hint", hint)] {
        if let Some(words) = words {
            let _ = write!(text, "\n{head}: {words}");
        }
    }
    text
}

fn parts(error: &CliError) -> Parts {
    match error {
        CliError::Driver(error) => of_driver(error),
        CliError::Io { what, source } => of_system(what.clone(), source),
        // Their words have the reason and the next step in one sentence.
        CliError::Usage(_) | CliError::History(_) | CliError::Profile(_) | CliError::Lab(_) => whole(error),
    }
}

fn whole(error: &impl ToString) -> Parts {
    Parts { what: error.to_string(), cause: None, hint: None }
}

fn of_system(what: String, source: &io::Error) -> Parts {
    let hint = next_step(source).trim_start_matches("; ");
    Parts { what, cause: Some(source.to_string()), hint: (!hint.is_empty()).then(|| hint.to_owned()) }
}

fn of_driver(error: &DriverError) -> Parts {
    match error {
        DriverError::Journal(error) => of_journal(error),
        DriverError::Io { path, source } => of_system(format!("use {}", path.display()), source),
        DriverError::Exists { name, path } => known(
            format!("start session {name}"),
            format!("it exists already ({})", path.display()),
            &format!("`sched-bisect resume {name}` goes on with it, --session NAME starts another"),
        ),
        DriverError::Missing { name, path } => known(
            format!("find session {name} in {}", path.display()),
            "there is none".to_owned(),
            "`sched-bisect list` shows what there is",
        ),
        DriverError::Range { path, reason } => {
            known(format!("read {}", path.display()), reason.clone(), RESTORE)
        }
        DriverError::Imported { name } => known(
            format!("go on with session {name}"),
            "it was imported, and can only be read".to_owned(),
            "to measure here, start a session: its report tells the command",
        ),
        DriverError::Bundle { path, reason } => known(
            format!("import {}", path.display()),
            reason.clone(),
            "a file that `sched-bisect export` wrote is taken in whole or not at all",
        ),
        DriverError::State { .. } | DriverError::Bug(_) => whole(error),
    }
}

/// What is left where a session's own files cannot be read.
const RESTORE: &str = "restore it from a copy, or start a new session";

fn of_journal(error: &JournalError) -> Parts {
    let read = |path: &Path| format!("read the journal {}", path.display());
    match error {
        JournalError::Io { path, source } => of_system(format!("write or read {}", path.display()), source),
        JournalError::Locked { path } => {
            let who = match Holder::of(path) {
                Holder::Process(pid) => format!(" (process {pid})"),
                Holder::Nobody | Holder::Unknown => String::new(),
            };
            known(
                format!("lock the session {}", path.display()),
                format!("another sched-bisect works on it{who}"),
                "wait for it or end it; `sched-bisect status --watch` follows it",
            )
        }
        JournalError::Damaged { path, offset, reason } => known(
            read(path),
            format!("the record at byte {offset} is damaged ({reason}); the journal is kept as it is"),
            RESTORE,
        ),
        JournalError::Empty { path, bytes } => known(
            read(path),
            format!("it holds no whole record ({bytes} bytes); nothing was changed"),
            RESTORE,
        ),
        JournalError::Version { path, offset, found } => known(
            read(path),
            format!(
                "the record at byte {offset} has format version {found}, this program knows version {FORMAT_VERSION}"
            ),
            "use the version of sched-bisect that wrote it",
        ),
    }
}

fn known(what: String, cause: String, hint: &str) -> Parts {
    Parts { what, cause: Some(cause), hint: Some(hint.to_owned()) }
}
