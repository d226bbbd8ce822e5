//! The facts of a report, and its JSON form: stable, `"schema": 1`.
//!
//! Keys are only added within a schema. Relative effects are fractions, positive = worse. Absent facts are `null`.

use super::culprit::{ParentFacts, config_change, headline, parents};
use super::environment::EnvironmentFacts;
use super::expense::SpentFacts;
use super::moved::MovedFacts;
use super::path::{PathFacts, path};
use super::range::{DriftFacts, RangeCommit, drift, range_commits};
use super::read_back::{self, ReadBackFacts};
use super::search::{GuardFacts, SearchFacts, facts as search_facts, guards, more_time};
use super::seen::{SeenFacts, seen};
use crate::journal::Record;
use crate::model::{
    BootNo, Check, CommitId, ConclusionKind, Culprit, Effect, Explained, Metric, Suspect, Verdict,
};
use crate::model::{Conclusion, Sense};
use crate::search::{self, Dag};
use crate::session::{
    CommitState, EndpointOutcome, Further, Planner, Purpose, State, against_good, further, knowledge, outcome,
};
use serde::Serialize;

/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// Everything a report says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Version of this form.
    pub schema: u32,
    /// Name of the session.
    pub session: String,
    /// "bisect" or "revert_test".
    pub purpose: &'static str,
    /// Good endpoint.
    pub good: EndpointFacts,
    /// Bad endpoint.
    pub bad: EndpointFacts,
    /// What is judged.
    pub metric: Metric,
    /// Profile used.
    pub profile: String,
    /// Variant measured under.
    pub variant: String,
    /// What its knobs read; left out where it has none, and before the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_back: Option<ReadBackFacts>,
    /// Confidence asked, in (0.5, 1).
    pub confidence: f64,
    /// Smallest change worth finding, as a fraction.
    pub minimum_effect: f64,
    /// Commits in the range.
    pub range: u64,
    /// Bad against good.
    pub endpoints: EndpointsFacts,
    /// What else their runs measured, not judged; left out where it is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_seen: Vec<SeenFacts>,
    /// The end in one sentence, with its numbers.
    pub headline: String,
    /// The end, or where it stands.
    pub conclusion: ConclusionFacts,
    /// Kernels before the named commit, each measured.
    pub parents: Vec<ParentFacts>,
    /// Configuration of the named commit against its first parent: "+CONFIG_A=y", "-CONFIG_B=m".
    pub config_change: Vec<String>,
    /// What was done to check a named culprit.
    pub checks: ChecksFacts,
    /// The revert test of the named commit that was concluded last; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverted: Option<RevertedFacts>,
    /// Culprit against parent under the further variants, beside the verdict; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<FurtherFacts>,
    /// All commits that were built or measured, parents before children.
    pub candidates: Vec<CandidateFacts>,
    /// Lines of development that may be left out as a whole.
    pub broken_stretches: Vec<StretchFacts>,
    /// Where the search stands; absent before the endpoints are measured and in a revert test.
    pub search: Option<SearchFacts>,
    /// Guards on the data that acted.
    pub guards: Vec<GuardFacts>,
    /// Verdicts that did not stand, with reasons.
    pub retracted: Vec<(CommitId, String)>,
    /// What the machines were like; left out where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentFacts>,
    /// What was counted beside the runs, not judged; left out where it is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<MovedFacts>,
    /// The way of the search.
    pub path: Vec<PathFacts>,
    /// How the machine's level moved, where it did.
    pub drift: Option<DriftFacts>,
    /// The range; of a long one the likeliest commits and those that were looked at, in the order of the history.
    pub commits: Vec<RangeCommit>,
    /// What it cost.
    pub spent: SpentFacts,
    /// The command that starts such a session again; empty where the plan has none.
    pub command: String,
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndpointFacts {
    /// As given.
    pub rev: String,
    /// As resolved.
    pub commit: CommitId,
}

/// Bad against good.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndpointsFacts {
    /// Effect; `null` until measured.
    pub effect: Option<Effect>,
    /// Boots of both together.
    pub boots: usize,
    /// Counted runs of both together.
    pub runs: usize,
}

/// The end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConclusionFacts {
    /// Kind.
    pub kind: ConclusionKind,
    /// Commit named.
    pub commit: Option<CommitId>,
    /// Its subject.
    pub subject: Option<String>,
    /// "regression" or "improvement", once the endpoints told.
    pub sense: Option<Sense>,
    /// Lower bound of the probability of being right.
    pub probability: Option<f64>,
    /// Whether fresh boots agreed.
    pub confirmed: bool,
    /// Effect of the commit against its parent (revert test: reverted against bad).
    pub effect: Option<Effect>,
    /// All kernels with the change against all without it, where one step was found.
    pub sides: Option<Effect>,
    /// Share of the endpoint difference it explains.
    pub explained: Option<Explained>,
    /// Share that the revert brought back.
    pub restored: Option<Explained>,
    /// Every step that was found, in the order of the history.
    pub culprits: Vec<Culprit>,
    /// What remains possible.
    pub suspects: Vec<Suspect>,
    /// Pairs (bad ancestor, good descendant).
    pub not_monotonic: Vec<(CommitId, CommitId)>,
    /// Whether the commit is outside the path limits.
    pub outside_paths: bool,
    /// In words.
    pub reason: String,
    /// What to do next.
    pub next_step: String,
    /// Exit status that goes with it.
    pub exit: u8,
}

/// Checks of a culprit: "pass", "fail" or "not_run" each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChecksFacts {
    /// Fresh, interleaved boots of it and each parent.
    pub verify: Check,
    /// Its revert on top of bad (a session of its own: `revert-test`).
    pub revert: Check,
    /// Culprit and parent built again with functions forced to 32-byte alignment: whether code layout alone does it.
    pub alignment: Check,
}

/// What reverting the named commit came to, by a session of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RevertedFacts {
    /// The session.
    pub session: String,
    /// Share of the endpoint difference that came back.
    pub restored: Option<Explained>,
    /// In words.
    pub words: String,
}

/// A culprit against a parent under a further variant. Not judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FurtherFacts {
    /// The variant.
    pub variant: String,
    /// The culprit.
    pub commit: CommitId,
    /// The parent.
    pub parent: CommitId,
    /// Effect under it; `null` where one of them is not measured twice.
    pub effect: Option<Effect>,
    /// Boots of the culprit under it.
    pub boots: usize,
    /// Boots of the parent.
    pub parent_boots: usize,
    /// Why one of them cannot be measured under it: "knob: ..."; else `null`.
    pub reason: Option<String>,
}

impl FurtherFacts {
    fn of(further: Further) -> Self {
        Self {
            variant: further.variant,
            commit: further.culprit,
            parent: further.parent,
            effect: further.effect,
            boots: further.boots.0,
            parent_boots: further.boots.1,
            reason: further.untestable.map(|u| format!("{}: {}", u.kind, u.reason)),
        }
    }
}

/// One commit that was built or measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateFacts {
    /// It.
    pub commit: CommitId,
    /// Its subject.
    pub subject: String,
    /// Its place in the order of the history, from 0 (the good endpoint's side); `null` outside the range.
    pub position: Option<usize>,
    /// "good endpoint", "bad endpoint", "reverted" or "candidate".
    pub role: &'static str,
    /// "baseline", "regressed", "improved", "undecided", "untestable" or "none".
    pub verdict: &'static str,
    /// Why, for untestable ones: "build: ..."; else `null`.
    pub reason: Option<String>,
    /// Effect against good.
    pub effect: Option<Effect>,
    /// Configuration symbols that differ from the base.
    pub config_delta: Vec<String>,
    /// Its boots that have runs.
    pub boots: Vec<BootFacts>,
}

impl CandidateFacts {
    /// Its verdict in a word, or what else it is.
    pub fn standing(&self) -> &'static str {
        match (self.verdict, self.role) {
            ("none", "good endpoint") => "good",
            ("none", "bad endpoint") => "bad",
            ("none", "reverted") => "reverted",
            ("none", _) => "-",
            (verdict, _) => verdict,
        }
    }

    /// Boots with counted runs.
    pub fn counted_boots(&self) -> usize {
        self.boots.iter().filter(|b| !b.counted().is_empty()).count()
    }

    /// Counted runs of all its boots.
    pub fn counted_runs(&self) -> usize {
        self.boots.iter().map(|b| b.counted().len()).sum()
    }
}

/// One boot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BootFacts {
    /// Its number in the session.
    pub boot: BootNo,
    /// 0 in the search; n in the n-th confirmation.
    pub stage: u32,
    /// The machine's id of it.
    pub boot_id: String,
    /// Judged metric, run by run, warm-up included.
    pub runs: Vec<f64>,
    /// How many runs at the start are warm-up and not counted.
    pub warmup: u32,
    /// Reasons of runs that were lost in it.
    pub lost: Vec<String>,
}

impl BootFacts {
    /// Runs without the warm-up.
    pub fn counted(&self) -> &[f64] {
        &self.runs[self.runs.len().min(self.warmup as usize)..]
    }
}

/// A line of commits of which several were tried and none could be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StretchFacts {
    /// The range as `--skip` takes it.
    pub range: String,
    /// Its commits.
    pub commits: usize,
    /// How many were tried.
    pub tried: usize,
}

impl Report {
    /// Gathers the facts.
    pub fn of(dag: &Dag, state: &State, records: &[Record]) -> Self {
        let plan = &state.plan;
        let mut planner = Planner::of(dag, state);
        let candidates = candidates(dag, state, &planner);
        let conclusion = conclusion(dag, state);
        let endpoint =
            |e: &crate::session::Endpoint| EndpointFacts { rev: e.rev.clone(), commit: e.commit.clone() };
        Self {
            schema: SCHEMA,
            session: plan.session.clone(),
            purpose: match plan.purpose {
                Purpose::Bisect => "bisect",
                Purpose::RevertTest { .. } => "revert_test",
                Purpose::Survey(_) => "survey",
            },
            good: endpoint(&plan.good),
            bad: endpoint(&plan.bad),
            metric: plan.recipe.metric.clone(),
            profile: plan.recipe.profile.clone(),
            variant: plan.recipe.variant.clone(),
            confidence: plan.recipe.confidence,
            minimum_effect: plan.recipe.minimum_effect.0,
            range: plan.candidates,
            endpoints: endpoints(state),
            also_seen: seen(state),
            read_back: read_back::facts(state),
            headline: headline(&conclusion, &plan.recipe.metric),
            parents: parents(dag, state, &conclusion, &candidates),
            config_change: config_change(&conclusion, &candidates),
            conclusion,
            checks: checks(state),
            reverted: None,
            further: further(state).into_iter().map(FurtherFacts::of).collect(),
            commits: range_commits(dag, state, &planner),
            candidates,
            broken_stretches: broken_stretches(dag, state),
            search: search_facts(dag, state, &mut planner),
            guards: guards(state, &planner),
            retracted: state.retracted.clone(),
            environment: super::environment::facts(state),
            moved: super::moved::facts(state),
            path: path(dag, plan, records),
            drift: drift(&planner),
            spent: SpentFacts::of(state, Some(&planner)),
            command: plan.command.clone(),
        }
    }

    /// Takes in the end of a revert test of the named commit: what cannot be reverted or measured is no check.
    pub fn checked_by(&mut self, session: &str, end: &Conclusion) {
        self.checks.revert = match end.kind {
            ConclusionKind::Restored | ConclusionKind::Partial => Check::Pass,
            ConclusionKind::NoEffect => Check::Fail,
            ConclusionKind::Culprit
            | ConclusionKind::CulpritSet
            | ConclusionKind::NoDifference
            | ConclusionKind::OppositeSign
            | ConclusionKind::NoopChange
            | ConclusionKind::NotMonotonic
            | ConclusionKind::Stopped
            | ConclusionKind::CannotRevert
            | ConclusionKind::AlreadyReverted
            | ConclusionKind::NotMeasurable
            | ConclusionKind::Surveyed => Check::NotRun,
        };
        let words = match end.restored {
            Some(part) => format!("{part} of the difference came back (session {session})"),
            None => format!("{} (session {session})", end.reason),
        };
        self.reverted = Some(RevertedFacts { session: session.to_owned(), restored: end.restored, words });
    }

    /// The JSON form, indented, with a line end.
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("facts are plain data with finite numbers");
        text.push('\n');
        text
    }
}

fn sense(state: &State) -> Option<Sense> {
    match state.endpoints.as_ref()?.outcome {
        EndpointOutcome::Change(sense) => Some(sense),
        EndpointOutcome::NoDifference | EndpointOutcome::OppositeSign | EndpointOutcome::Undecided => None,
    }
}

fn endpoints(state: &State) -> EndpointsFacts {
    let plan = &state.plan;
    let counted = |b: &crate::session::Boot| b.runs.len().saturating_sub(state.warmup(b));
    let ends = state
        .searched()
        .filter(|b| b.stage == 0 && (b.commit == plan.good.commit || b.commit == plan.bad.commit))
        .filter(|b| counted(b) > 0);
    let (boots, runs) = ends.fold((0, 0), |(boots, runs), b| (boots + 1, runs + counted(b)));
    EndpointsFacts { effect: state.endpoints.as_ref().map(|e| e.evidence.effect), boots, runs }
}

fn broken_stretches(dag: &Dag, state: &State) -> Vec<StretchFacts> {
    let name = |at: usize| dag.nodes()[at].commit.short();
    search::broken_stretches(dag, &knowledge(dag, state))
        .into_iter()
        .map(|stretch| StretchFacts {
            range: format!(
                "{}..{}",
                stretch.after.map_or(state.plan.good.commit.short(), name),
                name(stretch.last)
            ),
            commits: stretch.commits,
            tried: stretch.tried,
        })
        .collect()
}

fn checks(state: &State) -> ChecksFacts {
    let verify = match state.confirmation.as_ref().and_then(|c| c.result.as_ref()) {
        Some((true, _)) => Check::Pass,
        Some((false, _)) => Check::Fail,
        None => Check::NotRun,
    };
    ChecksFacts { verify, revert: Check::NotRun, alignment: Check::NotRun }
}

fn conclusion(dag: &Dag, state: &State) -> ConclusionFacts {
    let end = outcome(dag, state);
    ConclusionFacts {
        kind: end.kind,
        subject: end.commit.as_ref().and_then(|c| subject(dag, state, c)),
        commit: end.commit,
        sense: sense(state),
        probability: end.probability,
        confirmed: end.confirmed,
        effect: end.effect,
        sides: end.sides,
        explained: end.explained,
        restored: end.restored,
        culprits: end.culprits,
        suspects: end.suspects,
        not_monotonic: end.not_monotonic,
        outside_paths: end.outside_paths,
        reason: end.reason,
        next_step: match more_time(dag, state) {
            Some(offer) => format!("{}; {offer}", end.next_step),
            None => end.next_step,
        },
        exit: end.exit,
    }
}

/// Subject of a commit, if the session knows it.
pub(super) fn subject(dag: &Dag, state: &State, commit: &CommitId) -> Option<String> {
    if let Some(at) = dag.index(commit) {
        return Some(dag.nodes()[at].subject.clone());
    }
    match &state.plan.purpose {
        Purpose::RevertTest { subject, .. } if state.reverted() == Some(commit) => {
            Some(format!("Revert \"{subject}\""))
        }
        Purpose::RevertTest { commit: tested, subject, .. } if tested == commit => Some(subject.clone()),
        Purpose::RevertTest { .. } | Purpose::Bisect | Purpose::Survey(_) => None,
    }
}

fn candidates(dag: &Dag, state: &State, planner: &Planner) -> Vec<CandidateFacts> {
    let mut known: Vec<_> = state.commits.iter().collect();
    known.sort_by_key(|(commit, _)| (dag.index(commit).unwrap_or(usize::MAX), (*commit).clone()));
    known.into_iter().map(|(commit, known)| candidate(dag, state, planner, commit, known)).collect()
}

fn candidate(
    dag: &Dag,
    state: &State,
    planner: &Planner,
    commit: &CommitId,
    known: &CommitState,
) -> CandidateFacts {
    let plan = &state.plan;
    let metric = &plan.recipe.metric.name;
    let boot = |b: &crate::session::Boot| BootFacts {
        boot: b.boot,
        stage: b.stage,
        boot_id: b.record.as_ref().map_or_else(String::new, |r| r.boot_id.clone()),
        runs: b.runs.iter().filter_map(|r| r.metrics.get(metric)).copied().collect(),
        warmup: u32::try_from(state.warmup(b).min(b.runs.len())).unwrap_or(u32::MAX),
        lost: b.lost.clone(),
    };
    let role = if *commit == plan.good.commit {
        "good endpoint"
    } else if *commit == plan.bad.commit {
        "bad endpoint"
    } else if state.reverted() == Some(commit) {
        "reverted"
    } else {
        "candidate"
    };
    CandidateFacts {
        commit: commit.clone(),
        subject: subject(dag, state, commit).unwrap_or_default(),
        position: dag.index(commit),
        role,
        verdict: verdict(state, known),
        reason: known.untestable.as_ref().map(|u| format!("{}: {}", u.kind, u.reason)),
        effect: if *commit == plan.good.commit { None } else { against_good(state, planner, commit) },
        config_delta: match &known.build {
            crate::session::Build::Built(artifact) => artifact.config_delta.clone(),
            crate::session::Build::None | crate::session::Build::Started => Vec::new(),
        },
        boots: state.searched().filter(|b| b.commit == *commit && b.record.is_some()).map(boot).collect(),
    }
}

fn verdict(state: &State, known: &CommitState) -> &'static str {
    if known.untestable.is_some() {
        return "untestable";
    }
    known.verdict.as_ref().map_or("none", |(verdict, _)| verdict_word(state, *verdict))
}

/// A verdict in a word; the change that is looked for may be an improvement.
pub(super) fn verdict_word(state: &State, verdict: Verdict) -> &'static str {
    match (verdict, sense(state)) {
        (Verdict::Baseline, _) => "baseline",
        (Verdict::Regressed, Some(Sense::Improvement)) => "improved",
        (Verdict::Regressed, Some(Sense::Regression) | None) => "regressed",
        (Verdict::Undecided, _) => "undecided",
    }
}
