//! The journal for people, and as a log for `git bisect replay`.

use crate::journal::Record;
use crate::lab::shell::quoted;
use crate::model::{BootNo, BootResult, BuildResult, CommitId, Effect, RunResult, StepId, Verdict};
use crate::search::Dag;
use crate::session::{EndpointOutcome, Event, Halt, Narrowing, Purpose, State, knowledge};
use std::collections::HashMap;
use std::fmt::Write;

/// One line a record: number, time (UTC), what happened.
pub fn people_log(records: &[Record]) -> String {
    let mut out = String::new();
    let mut teller = Teller::default();
    for record in records {
        let at = jiff::Timestamp::from_millisecond(record.at)
            .map_or_else(|_| record.at.to_string(), |t| t.strftime("%Y-%m-%d %H:%M:%S").to_string());
        let _ = writeln!(out, "{:>5}  {at}  {}", record.seq, teller.tell(&record.event));
    }
    out
}

/// Tells events one by one; remembers what a step was begun for, since its end names the step alone.
#[derive(Debug, Default)]
pub struct Teller {
    steps: HashMap<StepId, String>,
    boots: HashMap<BootNo, String>,
}

impl Teller {
    /// An event in one line.
    pub fn tell(&mut self, event: &Event) -> String {
        match event {
            Event::BuildStarted { step, commit } => self.begin(*step, format!("build {}", commit.short())),
            Event::BootStarted { step, boot, commit, variant, .. } => {
                let under = if variant.is_empty() { String::new() } else { format!(" under {variant}") };
                let what = format!("{}{under}", commit.short());
                let words = self.begin(*step, format!("boot {boot} of {what}"));
                self.boots.insert(*boot, what);
                words
            }
            Event::RunStarted { step, boot, repetition } => {
                let of = self.boots.get(boot).map_or_else(String::new, |what| format!(" of {what}"));
                self.begin(*step, format!("run {repetition} in boot {boot}{of}"))
            }
            Event::BuildFinished { step, result } => self.end(*step, &build_words(result)),
            Event::BootFinished { step, result, .. } => self.end(*step, &boot_words(result)),
            Event::RunFinished { step, result, .. } => self.end(*step, &run_words(result)),
            Event::StepInterrupted { step } => self.end(*step, "was interrupted; it does not count"),
            Event::Planned { .. }
            | Event::Opened { .. }
            | Event::TailCut { .. }
            | Event::BootEnded { .. }
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
            | Event::Concluded { .. } => describe(event),
        }
    }

    fn begin(&mut self, step: StepId, what: String) -> String {
        let words = format!("{what} ...");
        self.steps.insert(step, what);
        words
    }

    fn end(&mut self, step: StepId, how: &str) -> String {
        // A process that took the session up did not see the start.
        let what = self.steps.remove(&step).unwrap_or_else(|| format!("step {step}"));
        format!("{what}: {how}")
    }
}

/// An event that is no step, in one line.
pub(super) fn describe(event: &Event) -> String {
    match event {
        Event::Planned { plan } if matches!(plan.purpose, Purpose::Survey(_)) => {
            format!("plan: a survey against {}, profile {}", plan.good.rev, plan.recipe.profile)
        }
        Event::Planned { plan } => {
            format!("plan: {} .. {}, profile {}", plan.good.rev, plan.bad.rev, plan.recipe.profile)
        }
        Event::Opened { tool_version, .. } => format!("taken up by sched-bisect {tool_version}"),
        Event::TailCut { bytes } => format!("a torn last record was cut off ({bytes} bytes)"),
        Event::BootEnded { boot } => format!("boot {boot} ended"),
        Event::EndpointsJudged { outcome, evidence } => {
            let words = match outcome {
                EndpointOutcome::Change(sense) => format!("{sense}:"),
                EndpointOutcome::NoDifference => "no difference:".to_owned(),
                EndpointOutcome::OppositeSign => "opposite sign:".to_owned(),
                EndpointOutcome::Undecided => "undecided, more boots are needed:".to_owned(),
            };
            format!("endpoints: {words} bad is {} than good", sized(evidence.effect))
        }
        Event::Judged { commit, verdict, evidence } => {
            let words = sized(evidence.effect);
            format!("{}: {verdict}, {words} than good, {} boots", commit.short(), evidence.boots)
        }
        Event::Narrowed { good, bad, why } => {
            let from = good.as_ref().map_or("good", |g| g.short());
            format!("the search goes on between {from} and {}: {}", bad.short(), narrowing_words(why))
        }
        Event::Voided { boots, reason } => {
            let numbers: Vec<String> = boots.iter().map(ToString::to_string).collect();
            format!("boots {} do not count: {reason}", numbers.join(", "))
        }
        Event::ConfirmationAbandoned { culprit, reason } => {
            format!("{}: back to the search: {reason}", culprit.short())
        }
        Event::VerdictRetracted { commit, reason } => {
            format!("{}: verdict retracted: {reason}", commit.short())
        }
        Event::PathsDropped { commit } => {
            format!("path limits dropped: {} is outside them and has the change", commit.short())
        }
        Event::ConfirmationStarted { culprit, parents } => {
            format!("confirming {} against {} parent(s) with fresh boots", culprit.short(), parents.len())
        }
        Event::ConfirmationFinished { culprit, confirmed, evidence } => {
            let word = if *confirmed { "confirmed" } else { "not confirmed" };
            format!("{} {word}: {} than its parent", culprit.short(), sized(evidence.effect))
        }
        Event::Surveyed { cells, steps } => {
            let n = cells.iter().filter(|cell| cell.boots > 0).count();
            format!("surveyed: {n} of {} cells measured, {} neighbours differ", cells.len(), steps.len())
        }
        Event::Halted { halt } => match halt {
            Halt::Infra(failure) => format!("halted: {}", failure.reason),
            Halt::Budget { spent_s } => format!("halted: budget used up after {spent_s} s"),
        },
        Event::Concluded { conclusion } => format!("concluded: {}", conclusion.reason),
        Event::BuildStarted { .. }
        | Event::BuildFinished { .. }
        | Event::BootStarted { .. }
        | Event::BootFinished { .. }
        | Event::RunStarted { .. }
        | Event::RunFinished { .. }
        | Event::StepInterrupted { .. } => String::new(),
    }
}

/// Why the search was narrowed.
pub(super) fn narrowing_words(why: &Narrowing) -> String {
    match why {
        Narrowing::ThreeLevels { middle } => {
            format!("there are three levels, {} is on the middle one", middle.short())
        }
        Narrowing::NotMonotonic { bad, good } => {
            format!("{} is bad and its descendant {} good", bad.short(), good.short())
        }
        Narrowing::Rest => "a culprit explains only part of the difference".to_owned(),
    }
}

/// "7.40 % worse". An event knows no metric, so this is the effect and not the metric's own change.
fn sized(effect: Effect) -> String {
    let percent = effect.relative * 100.0;
    format!("{:.2} % {}", percent.abs(), if percent >= 0.0 { "worse" } else { "better" })
}

fn build_words(result: &BuildResult) -> String {
    match result {
        BuildResult::Built { artifact } if artifact.cached => "built before (cache)".to_owned(),
        BuildResult::Built { .. } => "built".to_owned(),
        BuildResult::Untestable(u) => format!("untestable ({}): {}", u.kind, u.reason),
        BuildResult::Infra(f) => format!("infrastructure failure: {}", f.reason),
    }
}

fn boot_words(result: &BootResult) -> String {
    match result {
        BootResult::Booted(record) => {
            format!("up {} (boot id {})", record.release, record.boot_id).replace("up  (", "up (")
        }
        BootResult::Untestable(u) => format!("not up ({}): {}", u.kind, u.reason),
        BootResult::Infra(f) => format!("infrastructure failure: {}", f.reason),
    }
}

fn run_words(result: &RunResult) -> String {
    match result {
        RunResult::Measured { metrics, .. } => {
            let each: Vec<String> = metrics.iter().map(|(name, value)| format!("{name} {value}")).collect();
            format!("measured {}", each.join(", "))
        }
        RunResult::Invalid { reason } => format!("invalid: {reason}"),
        RunResult::Failed { reason } => format!("failed: {reason}"),
        RunResult::Untestable(u) => format!("untestable ({}): {}", u.kind, u.reason),
        RunResult::Infra(f) => format!("infrastructure failure: {}", f.reason),
    }
}

/// A log that `git bisect replay` accepts: endpoints first, then the verdicts that stand, in the order they came.
pub fn git_log(dag: &Dag, state: &State, records: &[Record]) -> String {
    let mut out = String::new();
    let plan = &state.plan;
    let _ = writeln!(out, "# sched-bisect session {}, for git bisect replay", plan.session);
    let paths: Vec<String> = plan.paths.iter().map(|p| quoted(p)).collect();
    let limits = if paths.is_empty() || state.paths_dropped.is_some() {
        String::new()
    } else {
        format!(" '--' {}", paths.join(" "))
    };
    let _ = writeln!(out, "git bisect start{limits}");
    let mut say = |word: &str, commit: &CommitId, why: &str| {
        let subject = super::facts::subject(dag, state, commit).unwrap_or_default();
        let _ = writeln!(out, "# {word}: [{commit}] {subject}{why}");
        let _ = writeln!(out, "git bisect {word} {commit}");
    };
    say("bad", &plan.bad.commit, "");
    say("good", &plan.good.commit, "");
    let in_range = |commit: &CommitId| dag.index(commit).is_some_and(|at| !dag.nodes()[at].boundary);
    // git takes no bad commit that is an ancestor of a good one.
    let contradicted: Vec<usize> =
        knowledge(dag, state).contradictions(dag).into_iter().map(|(bad, _)| bad).collect();
    let fits = |commit: &CommitId| {
        in_range(commit) && dag.index(commit).is_some_and(|at| !contradicted.contains(&at))
    };
    let mut told = vec![plan.bad.commit.clone(), plan.good.commit.clone()];
    for record in records {
        let Event::Judged { commit, .. } = &record.event else { continue };
        let stands = state.commit(commit).filter(|known| known.untestable.is_none());
        let Some((verdict, _)) = stands.and_then(|known| known.verdict.as_ref()) else { continue };
        if told.contains(commit) || dag.index(commit).is_none() {
            continue;
        }
        match verdict {
            Verdict::Baseline => say("good", commit, ""),
            Verdict::Regressed if fits(commit) => say("bad", commit, ""),
            Verdict::Undecided if in_range(commit) => say("skip", commit, " (undecided)"),
            Verdict::Regressed | Verdict::Undecided => {}
        }
        told.push(commit.clone());
    }
    for (commit, known) in state.commits.iter().filter(|(commit, _)| in_range(commit)) {
        if let Some(why) = &known.untestable {
            say("skip", commit, &format!(" ({}: {})", why.kind, why.reason.replace('\n', " ")));
        }
    }
    out
}
