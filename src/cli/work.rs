//! Running a session to its end, from `start`, `revert-test`, `survey` or `resume`.

use super::args::{Options, Place, TableFormat, Telling};
use super::notify::News;
use super::survey::print_table;
use super::telling::Told;
use super::{CliError, assemble, exit, leaving, print, root, session, signals};
use crate::driver::{self, Driver, End, SystemClock};
use crate::journal::{FileStorage, Lock};
use crate::profile::parse_duration;
use crate::report::{Lines, ProgressLine, Report, SurveyReport, View, say, text};
use crate::session::outcome;
use std::io::IsTerminal;

/// What is asked for once a session has come to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct After<'a> {
    /// Form of a survey's table.
    pub format: TableFormat,
    /// Whether a machine's kernels of ours are removed.
    pub cleanup: bool,
    /// Who else is told.
    pub telling: &'a Telling,
}

impl<'a> After<'a> {
    /// As the options say.
    pub fn of(format: TableFormat, options: &'a Options) -> Self {
        Self { format, cleanup: options.cleanup, telling: &options.telling }
    }
}

/// `resume [SESSION]`.
pub(super) fn resume(
    place: &Place,
    name: Option<&str>,
    budget: Option<&str>,
    cleanup: bool,
    telling: &Telling,
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
    run(driver, lock, After { format: TableFormat::Text, cleanup, telling })
}

/// The first session without a conclusion. One that cannot be read is left to be named explicitly.
fn unfinished(sessions: &[driver::SessionDir]) -> Option<driver::SessionDir> {
    let open =
        |dir: &&driver::SessionDir| driver::load(dir).is_ok_and(|(_, state, _)| state.conclusion.is_none());
    sessions.iter().filter(|dir| !dir.imported().exists()).find(open).cloned()
}

/// Works on the session until it concludes or stops, prints the report, tells who else is to know, and gives the exit
/// status.
pub(super) fn run(mut driver: Driver<FileStorage>, lock: Lock, after: After<'_>) -> Result<u8, CliError> {
    trace_to(&driver)?;
    let told = Told::start(after.telling, &mut driver)?;
    let is_open = driver.state.conclusion.is_none();
    let worked = if is_open { work(&mut driver) } else { Ok(false) };
    driver.stop_reporting();
    drop(lock);
    let is_concluded = driver.state.conclusion.is_some();
    let mut news = News::of(&outcome(&driver.dag, &driver.state), is_concluded);
    let shown = match worked {
        Ok(false) if told.has_events() => Ok(()),
        Ok(false) => show(&driver, after.format),
        Ok(true) => {
            say(&format!("interrupted; `sched-bisect resume {}` goes on", driver.state.plan.session));
            news.exit = exit::INTERRUPTED;
            Ok(())
        }
        Err(error) => Err(error),
    };
    if let Err(error) = &shown {
        news = News::failed(error.exit(), &error.to_string());
    }
    told.end(&driver.dir, &news, is_open);
    shown?;
    if is_concluded {
        assemble::clean_up(&driver.state.plan, &driver.dir);
        if after.cleanup {
            leaving::remove_kernels(&driver.state.plan, &driver.dir);
        } else if is_open {
            leaving::tell_kernels(&driver.state.plan, &driver.dir);
        }
    }
    Ok(news.exit)
}

fn show(driver: &Driver<FileStorage>, format: TableFormat) -> Result<(), CliError> {
    match SurveyReport::of(&driver.dag, &driver.state, &View::default()) {
        Some(table) => print_table(&table, format),
        None => print(&text(&facts(driver)?, super::report::look())),
    }
}

/// The report of a session that was just worked on; its way stands in the journal alone.
fn facts(driver: &Driver<FileStorage>) -> Result<Report, CliError> {
    let (dag, state, records) = driver::load(&driver.dir)?;
    Ok(Report::of(&dag, &state, &records))
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
        if end == End::Interrupted {
            leaving::end_jobs(&driver.state, &driver.dir).await?;
        }
        Ok::<End, CliError>(end)
    })?;
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
