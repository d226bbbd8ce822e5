//! Progress while a session runs: a line that moves on a terminal, plain lines elsewhere. On standard error: standard
//! output is for data.

use super::Reporter;
use super::log::Teller;
use super::search::{facts, outlook_words};
use super::text::open_step;
use crate::journal::Record;
use crate::model::BootResult;
use crate::search::Dag;
use crate::session::{EndpointOutcome, Event, MachineSpec, Outlook, Planner, Purpose, State};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::time::{Duration, Instant};

/// Plays of the search for its forecast: most, fewest, and the time after which no more begins.
const PLAYS: usize = 60;
const FEWEST_PLAYS: usize = 5;
const MOMENT: Duration = Duration::from_millis(700);

/// Writes a line to standard error. Nobody may be there to read it: that must not stop a session.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Plain lines: one an event that a person wants to see.
#[derive(Debug, Default)]
pub struct Lines {
    teller: Teller,
}

impl Reporter for Lines {
    fn on_event(&mut self, record: &Record, state: &State, dag: &Dag) {
        let words = self.teller.tell(&record.event);
        if is_news(&record.event, state) {
            say(&format!("{words}{}", outlook(dag, state, &record.event)));
        }
    }
}

/// A moving line under the plain ones.
#[derive(Debug)]
pub struct ProgressLine {
    bar: ProgressBar,
    teller: Teller,
}

impl ProgressLine {
    /// Begins to draw on standard error.
    pub fn start() -> Self {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}");
        bar.set_style(style.expect("the template is a constant that parses"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, teller: Teller::default() }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Reporter for ProgressLine {
    fn on_event(&mut self, record: &Record, state: &State, dag: &Dag) {
        let words = self.teller.tell(&record.event);
        if is_news(&record.event, state) {
            self.bar.println(format!("{words}{}", outlook(dag, state, &record.event)));
        }
        let parts: Vec<String> = state.open.values().map(|step| open_step(state, step)).collect();
        self.bar.set_message(parts.join("; "));
    }
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

/// What is expected of the search that begins, by playing it: as many plays as fit into a moment, since an hour of the
/// lab's waits for nobody.
fn forecast(dag: &Dag, state: &State) -> Option<String> {
    if state.plan.purpose != Purpose::Bisect || state.plan.candidates < 2 {
        return None;
    }
    let planner = Planner::of(dag, state);
    let began = Instant::now();
    let go_on = |played: usize| played < PLAYS && (played < FEWEST_PLAYS || began.elapsed() < MOMENT);
    let outlook = Outlook::of(planner.engine(), planner.costs(state), go_on);
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
fn outlook(dag: &Dag, state: &State, event: &Event) -> String {
    let words = match event {
        Event::EndpointsJudged { outcome: EndpointOutcome::Change(_), .. } => forecast(dag, state),
        Event::Judged { .. } | Event::ConfirmationFinished { confirmed: false, .. } => believed(dag, state),
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

/// "4 of 30 commits hold 95 %, 724194001527 leads with 61 %".
fn believed(dag: &Dag, state: &State) -> Option<String> {
    let search = facts(dag, state, &mut Planner::of(dag, state))?;
    let leader = search.leaders.first()?;
    Some(format!(
        "{} of {} commits hold 95 %, {} leads with {:.0} %",
        search.credible,
        state.plan.candidates,
        leader.commit.short(),
        leader.probability * 100.0
    ))
}
