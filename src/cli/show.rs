//! Commands that only read: status, list, log, audit. None takes the lock; a running session can be looked at.

use super::args::Place;
use super::{CliError, exit, print, root, session};
use crate::driver::{self, SessionDir};
use crate::journal::Record;
use crate::report;
use crate::search::Dag;
use crate::session::{Event, Planner, State, outcome, recompute};

fn load(place: &Place, name: Option<&str>) -> Result<(Dag, State, Vec<Record>), CliError> {
    Ok(driver::load(&session(&root(place)?, name)?)?)
}

/// `status`.
pub(super) fn status(place: &Place, name: Option<&str>) -> Result<u8, CliError> {
    let (dag, state, _) = load(place, name)?;
    print(&report::status(&dag, &state))?;
    Ok(exit::DONE)
}

/// `list`.
pub(super) fn list(place: &Place) -> Result<u8, CliError> {
    let mut out = String::new();
    for dir in root(place)?.sessions()? {
        out.push_str(&listed(&dir));
        out.push('\n');
    }
    print(&out)?;
    Ok(exit::DONE)
}

fn listed(dir: &SessionDir) -> String {
    match driver::load(dir) {
        Ok((dag, state, _)) => {
            let end = outcome(&dag, &state);
            let from = if dir.imported().exists() { "imported: " } else { "" };
            format!("{:<32} {from}{}", dir.name(), first_sentence(&end.reason))
        }
        Err(error) => format!("{:<32} unreadable: failed to {error}", dir.name()),
    }
}

fn first_sentence(text: &str) -> &str {
    text.split("; ").next().unwrap_or(text)
}

/// `log`.
pub(super) fn log(place: &Place, name: Option<&str>, git: bool) -> Result<u8, CliError> {
    let (dag, state, records) = load(place, name)?;
    if git && state.survey().is_some() {
        return Err(CliError::Usage(format!(
            "log {} --git: it is a survey, in which no commit is good or bad; leave --git out",
            state.plan.session
        )));
    }
    print(&if git { report::git_log(&dag, &state, &records) } else { report::people_log(&records) })?;
    Ok(exit::DONE)
}

/// `audit`: folds the journal anew and computes every verdict again from the samples that stood before it.
pub(super) fn audit(place: &Place, name: Option<&str>) -> Result<u8, CliError> {
    let (dag, folded, records) = load(place, name)?;
    let mut state = State::new(folded.plan.clone());
    let mut planner = Planner::new(&dag, &folded.plan);
    // Another version's numbers may be computed another way; its verdicts must be the same.
    let is_own = folded.plan.tool_version == env!("CARGO_PKG_VERSION");
    let (mut checked, mut different) = (0, 0);
    let mut out = String::new();
    for record in &records[1..] {
        if let Some(again) = recompute(&mut planner, &state, &record.event) {
            checked += 1;
            if !again.agrees(is_own) {
                different += 1;
                out.push_str(&difference(record, &again.computed));
            }
        }
        // Loading has applied each of them once already.
        let applied = state.apply(record.at, &record.event);
        applied.map_err(driver::DriverError::Bug)?;
    }
    out.push_str(&format!("{checked} verdicts recomputed, {different} differ\n"));
    print(&out)?;
    Ok(if different == 0 { exit::DONE } else { exit::JOURNAL })
}

fn difference(record: &Record, computed: &Result<Event, String>) -> String {
    let json = |event: &Event| serde_json::to_string(event).unwrap_or_default();
    let now = match computed {
        Ok(event) => json(event),
        Err(reason) => reason.clone(),
    };
    format!("record {}:\n  recorded {}\n  computed {now}\n", record.seq, json(&record.event))
}
