//! Progress while a session runs: a line that moves on a terminal, plain lines elsewhere. On standard error: standard
//! output is for data.

use super::Reporter;
use super::log::Teller;
use super::text::open_step;
use crate::journal::Record;
use crate::model::BootResult;
use crate::search::Dag;
use crate::session::{EndpointOutcome, Event, MachineSpec, Purpose, State, duration, knowledge};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::time::Duration;

/// Kernels still to be measured after the halving: culprit and parents, afresh.
const CONFIRMATION_KERNELS: f64 = 2.0;

/// Writes a line to standard error. Nobody may be there to read it: that must not stop a session.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Plain lines: one an event that a person wants to see.
#[derive(Debug, Default)]
pub struct Lines {
    teller: Teller,
    pace: Pace,
}

impl Reporter for Lines {
    fn on_event(&mut self, record: &Record, state: &State, dag: &Dag) {
        let words = self.teller.tell(&record.event);
        self.pace.follow(record);
        if is_news(&record.event, state) {
            say(&format!("{words}{}", self.pace.outlook(dag, state, &record.event)));
        }
    }
}

/// A moving line under the plain ones.
#[derive(Debug)]
pub struct ProgressLine {
    bar: ProgressBar,
    teller: Teller,
    pace: Pace,
}

impl ProgressLine {
    /// Begins to draw on standard error.
    pub fn start() -> Self {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}");
        bar.set_style(style.expect("the template is a constant that parses"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, teller: Teller::default(), pace: Pace::default() }
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
        self.pace.follow(record);
        if is_news(&record.event, state) {
            self.bar.println(format!("{words}{}", self.pace.outlook(dag, state, &record.event)));
        }
        let mut parts: Vec<String> = state.open.values().map(|step| open_step(state, step)).collect();
        parts.extend(self.pace.remaining(dag, state));
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
        | Event::Halted { .. }
        | Event::Concluded { .. } => true,
    }
}

/// How long a kernel takes, from what this process saw: from one verdict to the next. The first build of all, which
/// compiles everything, is before the first verdict and so does not count.
#[derive(Debug, Default)]
struct Pace {
    last_verdict_ms: Option<i64>,
    kernels: u32,
    total_ms: i64,
}

impl Pace {
    fn follow(&mut self, record: &Record) {
        let is_candidates = matches!(record.event, Event::Judged { .. });
        if !is_candidates && !matches!(record.event, Event::EndpointsJudged { .. }) {
            return;
        }
        if let Some(before) = self.last_verdict_ms.filter(|_| is_candidates) {
            self.kernels += 1;
            self.total_ms += record.at.saturating_sub(before).max(0);
        }
        self.last_verdict_ms = Some(record.at);
    }

    /// After a verdict: what is left.
    fn outlook(&self, dag: &Dag, state: &State, event: &Event) -> String {
        let is_verdict = matches!(event, Event::EndpointsJudged { .. } | Event::Judged { .. });
        let left = self.remaining(dag, state).filter(|_| is_verdict);
        left.map_or_else(String::new, |left| format!("; {left}"))
    }

    /// "13 commits left, about 6 kernels, 12 min"; the time once a candidate was measured.
    fn remaining(&self, dag: &Dag, state: &State) -> Option<String> {
        let searching = state.plan.purpose == Purpose::Bisect
            && matches!(state.endpoints.as_ref().map(|e| e.outcome), Some(EndpointOutcome::Change(_)));
        let left = knowledge(dag, state).remaining(dag).map_or(0, |r| r.count());
        if !searching || left == 0 {
            return None;
        }
        let kernels = (left as f64).log2().ceil() + CONFIRMATION_KERNELS;
        let commits = if left == 1 { "commit" } else { "commits" };
        let time = (self.kernels > 0).then(|| {
            let each_s = self.total_ms as f64 / 1000.0 / f64::from(self.kernels);
            format!(", {}", duration(kernels * each_s))
        });
        Some(format!("{left} {commits} left, about {kernels:.0} kernels{}", time.unwrap_or_default()))
    }
}
