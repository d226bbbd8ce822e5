//! Where a session at work stands, in a few lines: what happens now, what is believed, what is to come, the last verdicts.
//!
//! The same lines for who works on the session (`start`, `resume`) and who looks at it from elsewhere (`status --watch`).
//! Tested in tests/it/live.rs.

use super::ahead::Ahead;
use super::log::Teller;
use super::search::{SearchFacts, facts};
use super::text::{expense, open_step};
use super::{SpentFacts, outlook_words};
use crate::journal::Record;
use crate::model::StepId;
use crate::search::Dag;
use crate::session::{Event, Planner, State, duration};
use std::collections::{HashMap, VecDeque};

/// Verdicts that are shown.
const VERDICTS: usize = 3;

/// What is shown, as far as it is not in the state.
#[derive(Debug, Default)]
pub struct Live {
    teller: Teller,
    /// When the open steps began, Unix time in milliseconds.
    began: HashMap<StepId, i64>,
    verdicts: VecDeque<String>,
    search: Option<SearchFacts>,
    remaining: Option<String>,
    ahead: Ahead,
}

impl Live {
    /// Takes an event in, in the order of the journal; gives it in words.
    pub fn see(&mut self, record: &Record) -> String {
        let words = self.teller.tell(&record.event);
        let (event, at) = (&record.event, record.at);
        if let Event::BuildStarted { step, .. }
        | Event::BootStarted { step, .. }
        | Event::RunStarted { step, .. } = event
        {
            self.began.insert(*step, at);
        }
        if is_verdict(event) {
            self.verdicts.push_front(words.clone());
            self.verdicts.truncate(VERDICTS);
        }
        words
    }

    /// Works out what is believed, and, by playing the search on for a moment, what is to come. To be called after verdicts.
    pub fn look_ahead(&mut self, dag: &Dag, state: &State) {
        let mut planner = Planner::of(dag, state);
        self.search = facts(dag, state, &mut planner);
        self.remaining = match &self.search {
            Some(_) if state.conclusion.is_none() => {
                self.ahead.again(state, &planner).and_then(|outlook| outlook_words(state, &outlook))
            }
            Some(_) | None => None,
        };
    }

    /// What is to come, as of the last look.
    pub fn to_come(&self) -> Option<&str> {
        self.remaining.as_deref()
    }

    /// What is believed, as of the last look.
    pub fn believed(&self) -> Option<&SearchFacts> {
        self.search.as_ref()
    }

    /// The lines. With the time it is now (Unix, milliseconds), the first tells how long the open steps have taken.
    pub fn lines(&self, state: &State, now_ms: Option<i64>) -> Vec<String> {
        let mut lines = vec![self.now(state, now_ms)];
        let mut tell = |head: &str, words: &str| lines.push(format!("{head:<10}{words}"));
        if let Some(search) = &self.search {
            for (at, leader) in search.leaders.iter().enumerate() {
                let head = if at == 0 { "believed" } else { "" };
                let percent = leader.probability * 100.0;
                tell(head, &format!("{percent:>3.0} %  {} {}", leader.commit.short(), leader.subject));
            }
            tell("", &format!("{} of {} commits hold 95 %", search.credible, state.plan.candidates));
        }
        if let Some(remaining) = &self.remaining {
            tell("to come", remaining.strip_prefix("expected: ").unwrap_or(remaining));
        }
        let allowed = state
            .plan
            .recipe
            .budget_s
            .map_or_else(String::new, |s| format!("; {} allowed", duration(s as f64)));
        tell("spent", &format!("{}{allowed}", expense(&SpentFacts::of(state, None))));
        for (at, verdict) in self.verdicts.iter().enumerate() {
            tell(if at == 0 { "last" } else { "" }, verdict);
        }
        lines
    }

    fn now(&self, state: &State, now_ms: Option<i64>) -> String {
        let since = |step: &StepId| {
            let took = now_ms? - self.began.get(step)?;
            Some(format!(" ({})", duration(took as f64 / 1000.0)))
        };
        let each = state
            .open
            .iter()
            .map(|(step, open)| format!("{}{}", open_step(state, open), since(step).unwrap_or_default()));
        let words: Vec<String> = each.collect();
        if words.is_empty() { "between two steps".to_owned() } else { words.join("; ") }
    }
}

/// Whether an event tells something of a kernel or of the endpoints, so that what is believed changes.
pub fn is_verdict(event: &Event) -> bool {
    match event {
        Event::EndpointsJudged { .. }
        | Event::Judged { .. }
        | Event::VerdictRetracted { .. }
        | Event::ConfirmationFinished { .. }
        | Event::ConfirmationAbandoned { .. }
        | Event::Narrowed { .. }
        | Event::Voided { .. } => true,
        Event::Planned { .. }
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
        | Event::PathsDropped { .. }
        | Event::ConfirmationStarted { .. }
        | Event::Surveyed { .. }
        | Event::Halted { .. }
        | Event::Concluded { .. } => false,
    }
}
