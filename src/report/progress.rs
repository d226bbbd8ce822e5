//! Progress while a session runs: a line that moves on a terminal, plain lines elsewhere. On standard error: standard
//! output is for data.

use super::Reporter;
use super::ahead::Ahead;
use super::area::{Area, On};
use super::live::{Live, is_verdict};
use super::search::outlook_words;
use crate::journal::Record;
use crate::model::BootResult;
use crate::search::Dag;
use crate::session::{EndpointOutcome, Event, MachineSpec, Planner, Purpose, State};
use std::io::Write;

/// Writes a line to standard error. Nobody may be there to read it: that must not stop a session.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Plain lines: one an event that a person wants to see.
#[derive(Debug, Default)]
pub struct Lines {
    live: Live,
}

impl Reporter for Lines {
    fn on_event(&mut self, record: &Record, state: &State, dag: &Dag) {
        if let Some(line) = news(&mut self.live, record, state, dag) {
            say(&line);
        }
    }
}

/// Lines that move under the plain ones.
#[derive(Debug)]
pub struct ProgressLine {
    area: Area,
    live: Live,
}

impl ProgressLine {
    /// Begins to draw on standard error.
    pub fn start() -> Self {
        Self { area: Area::start(On::Stderr, true), live: Live::default() }
    }
}

impl Reporter for ProgressLine {
    fn on_event(&mut self, record: &Record, state: &State, dag: &Dag) {
        if let Some(line) = news(&mut self.live, record, state, dag) {
            self.area.scroll(&line);
        }
        self.area.set(&self.live.lines(state, None));
    }
}

/// The line that tells an event, with what is believed and expected after it; `None` for what is no news.
fn news(live: &mut Live, record: &Record, state: &State, dag: &Dag) -> Option<String> {
    let words = live.see(record);
    if is_verdict(&record.event) {
        live.look_ahead(dag, state);
    }
    is_news(&record.event, state).then(|| format!("{words}{}", outlook(live, dag, state, &record.event)))
}

/// Starts are for the moving line; the rest is told, unless nothing is booted and a boot is but a name for a run.
fn is_news(event: &Event, state: &State) -> bool {
    match event {
        Event::BootFinished { result: BootResult::Booted(_), .. } => {
            !matches!(state.plan.recipe.machine, MachineSpec::Command { boot: None, .. })
        }
        Event::BootStarted { .. } | Event::RunStarted { .. } | Event::BootEnded { .. } => false,
        Event::Planned { .. }
        | Event::Opened { .. }
        | Event::TailCut { .. }
        | Event::BuildStarted { .. }
        | Event::BuildFinished { .. }
        | Event::BootFinished { .. }
        | Event::RunFinished { .. }
        | Event::StepInterrupted { .. }
        | Event::EndpointsJudged { .. }
        | Event::Judged { .. }
        | Event::VerdictRetracted { .. }
        | Event::PathsDropped { .. }
        | Event::ConfirmationStarted { .. }
        | Event::ConfirmationFinished { .. }
        | Event::ConfirmationAbandoned { .. }
        | Event::Narrowed { .. }
        | Event::Voided { .. }
        | Event::Surveyed { .. }
        | Event::Halted { .. }
        | Event::Concluded { .. } => true,
    }
}

/// What is expected of the search that begins.
fn forecast(dag: &Dag, state: &State) -> Option<String> {
    if state.plan.purpose != Purpose::Bisect || state.plan.candidates < 2 {
        return None;
    }
    let planner = Planner::of(dag, state);
    let outlook = Ahead::first(state, &planner);
    let found = planner
        .found_from(state)
        .map_or_else(String::new, |least| format!("changes from {:.1} % on can be found; ", least * 100.0));
    let expected = outlook_words(state, &outlook)?;
    let budget = state.plan.recipe.budget_s.map_or_else(String::new, |allowed| {
        let left = (allowed as f64 - state.spent.seconds).max(0.0);
        format!("; an answer within the budget: {:.0} %", outlook.answered_within(left) * 100.0)
    });
    let short = super::doubts::too_short(state).map_or_else(String::new, |words| format!("; {words}"));
    Some(format!("{found}{expected}{budget}{short}"))
}

/// After a verdict, what is believed; after the endpoints, what is to come.
fn outlook(live: &Live, dag: &Dag, state: &State, event: &Event) -> String {
    let words = match event {
        Event::EndpointsJudged { outcome: EndpointOutcome::Change(_), .. } => forecast(dag, state),
        Event::Judged { .. } | Event::ConfirmationFinished { confirmed: false, .. } => believed(live, state),
        Event::EndpointsJudged { .. }
        | Event::ConfirmationFinished { .. }
        | Event::Planned { .. }
        | Event::Opened { .. }
        | Event::TailCut { .. }
        | Event::BuildStarted { .. }
        | Event::BuildFinished { .. }
        | Event::BootStarted { .. }
        | Event::BootFinished { .. }
        | Event::RunStarted { .. }
        | Event::RunFinished { .. }
        | Event::BootEnded { .. }
        | Event::StepInterrupted { .. }
        | Event::VerdictRetracted { .. }
        | Event::PathsDropped { .. }
        | Event::ConfirmationStarted { .. }
        | Event::ConfirmationAbandoned { .. }
        | Event::Narrowed { .. }
        | Event::Voided { .. }
        | Event::Surveyed { .. }
        | Event::Halted { .. }
        | Event::Concluded { .. } => None,
    };
    words.map_or_else(String::new, |words| format!("; {words}"))
}

/// "4 of 30 commits hold 95 %, 724194001527 leads with 61 %; expected: ...".
fn believed(live: &Live, state: &State) -> Option<String> {
    let search = live.believed()?;
    let leader = search.leaders.first()?;
    let to_come = live.to_come().map_or_else(String::new, |words| format!("; {words}"));
    Some(format!(
        "{} of {} commits hold 95 %, {} leads with {:.0} %{to_come}",
        search.credible,
        state.plan.candidates,
        leader.commit.short(),
        leader.probability * 100.0
    ))
}
