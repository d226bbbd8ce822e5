//! The fold of a session's events.

mod steps;

use super::event::{EndpointOutcome, Event, Halt, Narrowing};
use super::plan::{Plan, Purpose, Revert, Survey};
use crate::model::{
    Artifact, BootNo, BootRecord, CommitId, Conclusion, Evidence, InfraFailure, StepId, SurveyCell,
    SurveyStep, SutId, Untestable, Verdict,
};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// An event that does not fit what was before it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("apply {event}: {reason}")]
pub struct StateError {
    /// The event, abridged.
    pub event: String,
    /// What it contradicts.
    pub reason: String,
}

/// What is known of a commit's build.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Build {
    /// Nothing.
    #[default]
    None,
    /// It goes on.
    Started,
    /// There is an artifact.
    Built(Box<Artifact>),
}

/// All that is known of one commit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CommitState {
    /// Build.
    pub build: Build,
    /// Set when it cannot be measured.
    pub untestable: Option<Untestable>,
    /// Failed boots since the last measured run, oldest first.
    pub failures: Vec<Untestable>,
    /// Failed boots in all.
    pub failures_in_all: usize,
    /// Newest verdict.
    pub verdict: Option<(Verdict, Evidence)>,
    /// Verdicts given so far: each look asks for more boots.
    pub looks: u32,
}

/// What went wrong with a kernel under a variant that is not the search's: it says nothing of the commit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CellState {
    /// Set when it cannot be measured.
    pub untestable: Option<Untestable>,
    /// Failed boots since the last measured run, oldest first.
    pub failures: Vec<Untestable>,
    /// Failed boots in all.
    pub failures_in_all: usize,
}

/// Where a boot stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootStatus {
    /// On its way up.
    Starting,
    /// Up.
    Live,
    /// Up or dead, of no more use: it must be ended.
    Broken,
    /// Over.
    Ended,
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Index in the boot, from 1.
    pub repetition: u32,
    /// Value by metric.
    pub metrics: BTreeMap<String, f64>,
    /// What it ran under, as read back.
    pub settings: BTreeMap<String, String>,
    /// What the kernel counted meanwhile; never judged.
    pub evidence: BTreeMap<String, f64>,
}

/// One boot.
#[derive(Debug, Clone, PartialEq)]
pub struct Boot {
    /// Number.
    pub boot: BootNo,
    /// Commit.
    pub commit: CommitId,
    /// Machine.
    pub sut: SutId,
    /// Stage (see [`Event::BootStarted`]).
    pub stage: u32,
    /// Slot.
    pub slot: u32,
    /// Counted runs it is for.
    pub wanted: u32,
    /// Variant, see [`Event::BootStarted`].
    pub variant: String,
    /// Status.
    pub status: BootStatus,
    /// Identity, once it was up.
    pub record: Option<BootRecord>,
    /// Measured runs in order.
    pub runs: Vec<Run>,
    /// Failed attempts at the run that is due.
    pub failed_attempts: u32,
    /// Reasons of invalid and failed runs, for the report.
    pub lost: Vec<String>,
}

/// A step that began and did not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenStep {
    /// Build of a commit.
    Build(CommitId),
    /// Start of a boot.
    Boot(BootNo),
    /// Run in a boot.
    Run(BootNo, u32),
}

/// What the endpoints showed last.
#[derive(Debug, Clone, PartialEq)]
pub struct EndpointVerdict {
    /// Outcome.
    pub outcome: EndpointOutcome,
    /// Numbers.
    pub evidence: Evidence,
    /// Times they were judged.
    pub looks: u32,
}

/// A confirmation, going on or over.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirmation {
    /// Suspected culprit.
    pub culprit: CommitId,
    /// Its parents.
    pub parents: Vec<CommitId>,
    /// Its stage number, from 1.
    pub stage: u32,
    /// The stage in which this culprit's confirmation began: it goes on with more boots while it is not confirmed.
    pub first_stage: u32,
    /// Result, once over.
    pub result: Option<(bool, Evidence)>,
}

/// What the search rests on, in the order in which it came: it is folded by the planner.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A run was measured, warm-up included.
    Run {
        /// Its boot.
        boot: BootNo,
        /// Its index in the boot, from 0.
        index: usize,
    },
    /// A boot is over.
    BootOver {
        /// It.
        boot: BootNo,
    },
    /// A commit cannot be measured.
    Untestable {
        /// It.
        commit: CommitId,
    },
    /// An endpoint that could not be measured may be again: a new process took the session up.
    Mended {
        /// It.
        commit: CommitId,
    },
    /// A decision was taken.
    Decided(Box<Event>),
}

/// How long steps took, in seconds, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Took {
    /// Builds that made something.
    pub builds: Vec<f64>,
    /// Boots that came up.
    pub boots: Vec<f64>,
    /// Measured runs.
    pub runs: Vec<f64>,
}

/// What was spent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// Builds that made something (no cache hits).
    pub builds: u64,
    /// Boots that came up.
    pub boots: u64,
    /// Runs that were measured, warm-up included.
    pub runs: u64,
    /// Seconds in which a process worked on the session.
    pub seconds: f64,
}

/// State of a session.
#[derive(Debug, Clone)]
pub struct State {
    /// The plan.
    pub plan: Plan,
    /// Last step number given out.
    pub last_step: u64,
    /// All boots; `BootNo(n)` stands at `n - 1`.
    pub boots: Vec<Boot>,
    /// Commits by id; absent = nothing known.
    pub commits: BTreeMap<CommitId, CommitState>,
    /// Kernels under variants of their own; absent = nothing went wrong.
    pub cells: BTreeMap<(CommitId, String), CellState>,
    /// Steps without an end.
    pub open: BTreeMap<StepId, OpenStep>,
    /// The endpoint gate.
    pub endpoints: Option<EndpointVerdict>,
    /// Whether the path limits were dropped, and for which commit.
    pub paths_dropped: Option<CommitId>,
    /// The newest confirmation.
    pub confirmation: Option<Confirmation>,
    /// The confirmations that agreed, in order: the culprits.
    pub confirmed: Vec<Confirmation>,
    /// Parts of the range in which the search went on: last commit before (absent: good), first after, why.
    pub narrowed: Vec<(Option<CommitId>, CommitId, Narrowing)>,
    /// What a survey came to.
    pub surveyed: Option<(Vec<SurveyCell>, Vec<SurveyStep>)>,
    /// Boots that do not count any more, with reasons.
    pub voided: Vec<(Vec<BootNo>, String)>,
    /// What the search rests on.
    pub facts: Vec<Fact>,
    /// How long steps took.
    pub took: Took,
    /// Verdicts that were retracted, with reasons.
    pub retracted: Vec<(CommitId, String)>,
    /// Infrastructure failures by machine (`None`: the builder), since it last taught something of a commit. That a
    /// boot succeeds clears none: a workload that is killed each time would be booted for ever. Nor does what another
    /// machine does: a broken one would be retried for ever.
    pub infra: BTreeMap<Option<SutId>, Vec<InfraFailure>>,
    /// Boots that were cut short because a machine was not what it was, with reasons.
    pub moved: Vec<(BootNo, String)>,
    /// Why it stands still.
    pub halted: Option<Halt>,
    /// The end.
    pub conclusion: Option<Conclusion>,
    /// Expense.
    pub spent: Spent,
    /// Seconds added to the budget at resumes.
    pub more_budget_s: u64,
    last_at_ms: Option<i64>,
    began_ms: BTreeMap<StepId, i64>,
}

impl State {
    /// The state after record 0.
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            last_step: 0,
            boots: Vec::new(),
            commits: BTreeMap::new(),
            cells: BTreeMap::new(),
            open: BTreeMap::new(),
            endpoints: None,
            paths_dropped: None,
            confirmation: None,
            confirmed: Vec::new(),
            narrowed: Vec::new(),
            surveyed: None,
            voided: Vec::new(),
            facts: Vec::new(),
            took: Took::default(),
            retracted: Vec::new(),
            infra: BTreeMap::new(),
            moved: Vec::new(),
            halted: None,
            conclusion: None,
            spent: Spent::default(),
            more_budget_s: 0,
            last_at_ms: None,
            began_ms: BTreeMap::new(),
        }
    }

    /// What is known of a commit.
    pub fn commit(&self, commit: &CommitId) -> Option<&CommitState> {
        self.commits.get(commit)
    }

    /// What went wrong with a commit under a variant, if anything.
    pub fn cell(&self, commit: &CommitId, variant: &str) -> Option<&CellState> {
        self.cells.get(&(commit.clone(), variant.to_owned()))
    }

    /// The boots that a search and its verdicts rest on: those under its own variant.
    pub fn searched(&self) -> impl Iterator<Item = &Boot> {
        self.boots.iter().filter(|boot| boot.variant.is_empty())
    }

    /// A boot by number.
    pub fn boot(&self, boot: BootNo) -> Option<&Boot> {
        usize::try_from(boot.0).ok().and_then(|n| n.checked_sub(1)).and_then(|at| self.boots.get(at))
    }

    /// Runs at the start of a boot that do not count; more than it has while it is not known where they end.
    pub fn warmup(&self, boot: &Boot) -> usize {
        let recipe = &self.plan.recipe;
        let judged = boot.runs.iter().filter_map(|run| run.metrics.get(&recipe.metric.name)).copied();
        recipe.setup.warmup(recipe.judging.warmup_runs as usize, &judged.collect::<Vec<f64>>())
    }

    /// The commits that must be measurable for the session to make sense: their failures stop it.
    pub fn essential(&self) -> BTreeSet<CommitId> {
        if self.survey().is_some() {
            return BTreeSet::from([self.plan.good.commit.clone()]);
        }
        let mut all = BTreeSet::from([self.plan.good.commit.clone(), self.plan.bad.commit.clone()]);
        all.extend(self.plan.merge_bases.iter().cloned());
        all
    }

    /// What a survey is to do.
    pub fn survey(&self) -> Option<&Survey> {
        match &self.plan.purpose {
            Purpose::Survey(survey) => Some(survey),
            Purpose::Bisect | Purpose::RevertTest { .. } => None,
        }
    }

    /// The reverted kernel of a revert test, if git could make it.
    pub fn reverted(&self) -> Option<&CommitId> {
        match &self.plan.purpose {
            Purpose::RevertTest { revert: Revert::Clean { commit }, .. } => Some(commit),
            Purpose::RevertTest { revert: Revert::Conflicts { .. } | Revert::AlreadyReverted, .. }
            | Purpose::Bisect
            | Purpose::Survey(_) => None,
        }
    }

    /// Applies one event that happened at `at_ms` (Unix time, milliseconds). On an error the state is unchanged but for
    /// the clock.
    pub fn apply(&mut self, at_ms: i64, event: &Event) -> Result<(), StateError> {
        self.tick(at_ms, event);
        self.fold(event).map_err(|reason| StateError { event: abridged(event), reason })?;
        if is_decision(event) {
            self.facts.push(Fact::Decided(Box::new(event.clone())));
        }
        Ok(())
    }

    /// Counts the time since the last event, unless nobody worked in it.
    fn tick(&mut self, at_ms: i64, event: &Event) {
        let idle = matches!(event, Event::Opened { .. } | Event::TailCut { .. } | Event::Planned { .. });
        if let Some(last) = self.last_at_ms
            && !idle
        {
            // A clock that was set back counts nothing.
            self.spent.seconds += at_ms.saturating_sub(last).max(0) as f64 / 1000.0;
        }
        self.last_at_ms = Some(at_ms);
    }

    fn fold(&mut self, event: &Event) -> Result<(), String> {
        if self.conclusion.is_some() && !may_follow_the_end(event) {
            return Err("the session is concluded".to_owned());
        }
        match event {
            Event::Planned { .. } => return Err("there is a plan already".to_owned()),
            Event::Opened { more_budget_s, .. } => self.reopen(*more_budget_s),
            Event::TailCut { .. } => {}
            Event::BuildStarted { step, commit } => self.build_started(*step, commit)?,
            Event::BuildFinished { step, result } => self.build_finished(*step, result)?,
            Event::BootStarted { step, boot, sut, commit, stage, slot, runs, variant } => {
                self.boot_started(*step, *boot, *sut, (commit, variant), (*stage, *slot, *runs))?;
            }
            Event::BootFinished { step, boot, result } => self.boot_finished(*step, *boot, result)?,
            Event::RunStarted { step, boot, repetition } => self.run_started(*step, *boot, *repetition)?,
            Event::RunFinished { step, boot, result } => self.run_finished(*step, *boot, result)?,
            Event::BootEnded { boot } => self.boot_ended(*boot)?,
            Event::StepInterrupted { step } => self.interrupted(*step)?,
            Event::EndpointsJudged { outcome, evidence } => {
                let looks = self.endpoints.as_ref().map_or(0, |e| e.looks) + 1;
                self.endpoints =
                    Some(EndpointVerdict { outcome: *outcome, evidence: evidence.clone(), looks });
            }
            Event::Judged { commit, verdict, evidence } => {
                let known = self.commits.entry(commit.clone()).or_default();
                known.verdict = Some((*verdict, evidence.clone()));
                known.looks += 1;
            }
            Event::VerdictRetracted { commit, reason } => self.retracted(commit, reason)?,
            Event::PathsDropped { commit } => self.paths_dropped = Some(commit.clone()),
            Event::ConfirmationStarted { culprit, parents } => self.confirmation_started(culprit, parents),
            Event::ConfirmationFinished { culprit, confirmed, evidence } => match &mut self.confirmation {
                Some(going) if going.culprit == *culprit && going.result.is_none() => {
                    going.result = Some((*confirmed, evidence.clone()));
                    if *confirmed {
                        self.confirmed.push(going.clone());
                    }
                }
                Some(_) | None => return Err(format!("no confirmation of {culprit} goes on")),
            },
            Event::ConfirmationAbandoned { culprit, .. } => {
                if self.confirmation.as_ref().is_none_or(|c| c.culprit != *culprit || c.result.is_some()) {
                    return Err(format!("no confirmation of {culprit} goes on"));
                }
            }
            Event::Narrowed { good, bad, why } => {
                self.narrowed.push((good.clone(), bad.clone(), why.clone()));
            }
            Event::Voided { boots, reason } => {
                if let Some(unknown) = boots.iter().find(|b| self.boot(**b).is_none()) {
                    return Err(format!("boot {unknown} is not known"));
                }
                self.voided.push((boots.clone(), reason.clone()));
            }
            Event::Surveyed { cells, steps } => self.surveyed = Some((cells.clone(), steps.clone())),
            Event::Halted { halt } => self.halted = Some(halt.clone()),
            Event::Concluded { conclusion } => self.conclusion = Some((**conclusion).clone()),
        }
        Ok(())
    }

    /// A new process: what stopped the last one may be mended.
    fn reopen(&mut self, more_budget_s: u64) {
        self.halted = None;
        self.infra.clear();
        self.more_budget_s = self.more_budget_s.saturating_add(more_budget_s);
        for commit in self.essential() {
            if let Some(known) = self.commits.get_mut(&commit) {
                if known.untestable.take().is_some() {
                    self.facts.push(Fact::Mended { commit: commit.clone() });
                }
                known.failures.clear();
                known.failures_in_all = 0;
            }
        }
        if self.survey().is_some() {
            let reference = (self.plan.good.commit.clone(), self.plan.recipe.variant.clone());
            self.cells.remove(&reference);
        }
    }

    fn retracted(&mut self, commit: &CommitId, reason: &str) -> Result<(), String> {
        match self.commits.get_mut(commit) {
            Some(known) if known.verdict.is_some() => {
                known.verdict = None;
                self.retracted.push((commit.clone(), reason.to_owned()));
                Ok(())
            }
            Some(_) | None => Err(format!("{commit} has no verdict")),
        }
    }

    fn confirmation_started(&mut self, culprit: &CommitId, parents: &[CommitId]) {
        let stage = self.confirmation.as_ref().map_or(0, |c| c.stage) + 1;
        // One that was left goes on with more boots; one that was refuted begins anew.
        let same = self
            .confirmation
            .as_ref()
            .filter(|c| c.culprit == *culprit && c.parents == parents && c.result.is_none());
        let first_stage = same.map_or(stage, |c| c.first_stage);
        self.confirmation = Some(Confirmation {
            culprit: culprit.clone(),
            parents: parents.to_vec(),
            stage,
            first_stage,
            result: None,
        });
    }
}

/// What the planner folds beside measurements.
fn is_decision(event: &Event) -> bool {
    match event {
        Event::EndpointsJudged { .. }
        | Event::Judged { .. }
        | Event::Narrowed { .. }
        | Event::Voided { .. }
        | Event::PathsDropped { .. }
        | Event::ConfirmationStarted { .. }
        | Event::ConfirmationFinished { .. }
        | Event::ConfirmationAbandoned { .. }
        | Event::Concluded { .. } => true,
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
        | Event::VerdictRetracted { .. }
        | Event::Surveyed { .. }
        | Event::Halted { .. } => false,
    }
}

fn may_follow_the_end(event: &Event) -> bool {
    matches!(event, Event::Opened { .. } | Event::TailCut { .. } | Event::BootEnded { .. })
}

/// The event's type and first fields, for messages.
fn abridged(event: &Event) -> String {
    let mut text = format!("{event:?}");
    if let Some((at, _)) = text.char_indices().nth(120) {
        text.truncate(at);
        text.push_str("...");
    }
    text
}
