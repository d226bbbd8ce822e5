//! Running a session to its end, from `start`, `revert-test`, `survey` or `resume`.

use super::args::{Place, TableFormat};
use super::survey::print_table;
use super::{CliError, assemble, exit, leaving, print, root, session, signals};
use crate::driver::{self, Driver, End, SystemClock};
use crate::journal::{FileStorage, Lock};
use crate::profile::parse_duration;
use crate::report::{Lines, ProgressLine, Report, SurveyReport, View, say, text};
use crate::session::outcome;
use std::io::IsTerminal;

/// What is asked for once a session has come to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct After {
    /// Form of a survey's table.
    pub format: TableFormat,
    /// Whether a machine's kernels of ours are removed.
    pub cleanup: bool,
}

/// `resume [SESSION]`.
pub(super) fn resume(
    place: &Place,
    name: Option<&str>,
    budget: Option<&str>,
    cleanup: bool,
) -> Result<u8, CliError> {
    let more =
        budget.map(|text| parse_duration(text).map_err(|e| CliError::Usage(format!("use --budget: {e}"))));
    let more = more.transpose()?.unwrap_or_default();
    let root = root(place)?;
    let dir = match name {
        Some(_) => session(&root, name)?,
        None => unfinished(&root.sessions()?).map_or_else(|| session(&root, None), Ok)?,
    };
    let (driver, lock, cut) = driver::resume(dir, more, Box::new(SystemClock))?;
    if cut > 0 {
        say(&format!("note: a torn last record was cut off the journal ({cut} bytes); its step is repeated"));
    }
    run(driver, lock, After { format: TableFormat::Text, cleanup })
}

/// The first session without a conclusion. One that cannot be read is left to be named explicitly.
fn unfinished(sessions: &[driver::SessionDir]) -> Option<driver::SessionDir> {
    let open =
        |dir: &&driver::SessionDir| driver::load(dir).is_ok_and(|(_, state, _)| state.conclusion.is_none());
    sessions.iter().find(open).cloned()
}

/// Works on the session until it concludes or stops, prints the report, and gives the exit status.
pub(super) fn run(mut driver: Driver<FileStorage>, lock: Lock, after: After) -> Result<u8, CliError> {
    trace_to(&driver)?;
    let was_concluded = driver.state.conclusion.is_some();
    if driver.state.conclusion.is_none() {
        let interrupted = work(&mut driver)?;
        if interrupted {
            say(&format!("interrupted; `sched-bisect resume {}` goes on", driver.state.plan.session));
            return Ok(exit::INTERRUPTED);
        }
    }
    drop(lock);
    let conclusion = outcome(&driver.dag, &driver.state);
    match SurveyReport::of(&driver.dag, &driver.state, &View::default()) {
        Some(table) => print_table(&table, after.format)?,
        None => print(&text(&Report::of(&driver.dag, &driver.state)))?,
    }
    if driver.state.conclusion.is_some() {
        assemble::clean_up(&driver.state.plan, &driver.dir);
        if after.cleanup {
            leaving::remove_kernels(&driver.state.plan, &driver.dir);
        } else if !was_concluded {
            leaving::tell_kernels(&driver.state.plan, &driver.dir);
        }
    }
    Ok(conclusion.exit)
}

/// Gives whether it was interrupted.
fn work(driver: &mut Driver<FileStorage>) -> Result<bool, CliError> {
    if std::io::stderr().is_terminal() {
        driver.report_to(Box::new(ProgressLine::start()));
    } else {
        driver.report_to(Box::new(Lines::default()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| CliError::Io { what: "start the event loop".to_owned(), source })?;
    let end = runtime.block_on(async {
        let stop = signals::listen()
            .map_err(|source| CliError::Io { what: "listen for signals".to_owned(), source })?;
        let lab = assemble::lab(&driver.state, &driver.dir)?;
        let end = driver.run(lab, stop).await?;
        // A session that never booted anything has nothing running there.
        if end == End::Interrupted && !driver.state.boots.is_empty() {
            leaving::end_jobs(&driver.state.plan, &driver.dir).await?;
        }
        Ok::<End, CliError>(end)
    })?;
    driver.stop_reporting();
    Ok(end == End::Interrupted)
}

/// Sends the program's own trace to a file in the session directory (`SCHED_BISECT_LOG` sets the level).
fn trace_to(driver: &Driver<FileStorage>) -> Result<(), CliError> {
    let path = driver.dir.trace();
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(|source| CliError::Io { what: format!("open {}", path.display()), source })?;
    let filter = tracing_subscriber::EnvFilter::try_from_env("SCHED_BISECT_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(file).finish();
    // Set once a process; a second session in one process keeps the first file.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}
