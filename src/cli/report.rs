//! `report`: what a session found, in the form that is asked for.

mod people;

use super::args::{Place, ReportFormat};
use super::{CliError, exit, print, root, session};
use crate::driver::{self, StateRoot};
use crate::report::{self, Look, Report, SurveyReport, View, say};
use crate::session::{Purpose, State};
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Its exit status is 0 whatever it tells; the JSON form carries the conclusion's own.
pub(super) fn run(
    place: &Place,
    name: Option<&str>,
    format: ReportFormat,
    out: Option<&Path>,
    view: &View,
) -> Result<u8, CliError> {
    let root = root(place)?;
    let (dag, state, records) = driver::load(&session(&root, name)?)?;
    let look = if out.is_some() { Look { unicode: look().unicode, colour: false } } else { look() };
    let form = match SurveyReport::of(&dag, &state, view) {
        Some(table) => of_survey(&table, format)?,
        None => {
            refuse_view(&state.plan.session, view)?;
            let mut facts = Report::of(&dag, &state, &records);
            check_by_revert(&root, &state, &mut facts)?;
            of_search(place, &facts, format, look)?
        }
    };
    match out {
        Some(path) => write(path, &form)?,
        None => print(&form)?,
    }
    Ok(exit::DONE)
}

/// The newest revert test of the named commit beside this session, measured in the same way, is a check of it.
fn check_by_revert(root: &StateRoot, state: &State, facts: &mut Report) -> Result<(), CliError> {
    let plan = &state.plan;
    let Some(named) = facts.conclusion.commit.clone().filter(|_| plan.purpose == Purpose::Bisect) else {
        return Ok(());
    };
    for dir in root.sessions()? {
        // One that cannot be read checks nothing.
        let Ok((_, other, _)) = driver::load(&dir) else { continue };
        let reverts = matches!(&other.plan.purpose, Purpose::RevertTest { commit, .. } if *commit == named);
        let same = other.plan.bad.commit == plan.bad.commit
            && other.plan.recipe.metric == plan.recipe.metric
            && other.plan.recipe.variant == plan.recipe.variant;
        if let (true, Some(end)) = (reverts && same, &other.conclusion) {
            facts.checked_by(&dir.name(), end);
            break;
        }
    }
    Ok(())
}

fn of_search(place: &Place, facts: &Report, format: ReportFormat, look: Look) -> Result<String, CliError> {
    Ok(match format {
        ReportFormat::Text => report::text(facts, look),
        ReportFormat::Json => facts.json(),
        ReportFormat::Markdown => report::markdown(facts),
        ReportFormat::Csv => report::csv(facts),
        ReportFormat::Html => report::html(facts),
        ReportFormat::Mail => report::mail(facts, &people::of(place, facts)).map_err(|reason| {
            CliError::Usage(format!("report {} as mail: {reason}; use --format text", facts.session))
        })?,
    })
}

fn of_survey(table: &SurveyReport, format: ReportFormat) -> Result<String, CliError> {
    Ok(match format {
        ReportFormat::Text => table.text(),
        ReportFormat::Json => table.json(),
        ReportFormat::Markdown => table.markdown(),
        ReportFormat::Csv => table.csv(),
        ReportFormat::Html => {
            return Err(CliError::Usage(format!(
                "report {} as html: a survey is one table; use --format markdown, which any tracker shows",
                table.session
            )));
        }
        ReportFormat::Mail => {
            return Err(CliError::Usage(format!(
                "report {} as mail: it is a survey, which accuses nobody; use --format text or markdown",
                table.session
            )));
        }
    })
}

fn refuse_view(session: &str, view: &View) -> Result<(), CliError> {
    if *view == View::default() {
        return Ok(());
    }
    let flag = if view.own_baseline { "--own-baseline" } else { "--also" };
    Err(CliError::Usage(format!(
        "report {session} with {flag}: it is no survey and has no table; leave it out"
    )))
}

/// What standard output shows: colours on a terminal that wants them, letters beyond ASCII where the locale has them.
pub(super) fn look() -> Look {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    Look {
        colour: std::io::stdout().is_terminal()
            && set("NO_COLOR").is_none()
            && set("TERM").is_none_or(|t| t != "dumb"),
        unicode: locale.contains("utf-8") || locale.contains("utf8"),
    }
}

/// Writes the file whole or not at all.
fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let io = |source| CliError::Io { what: format!("write {}", path.display()), source };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".report-").tempfile_in(dir).map_err(io)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(io)?;
    // What a temporary file is made with is for its owner alone; a report is for others.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666 & !umask());
    file.as_file().set_permissions(mode).map_err(io)?;
    file.persist(path).map_err(|error| io(error.error))?;
    say(&format!("wrote {}", path.display()));
    Ok(())
}

fn umask() -> u32 {
    let old = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    rustix::process::umask(old);
    old.as_raw_mode()
}
