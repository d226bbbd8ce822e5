//! The way of the search: each boot and each kernel that could not be built, why it was chosen, what it cost, what it told.
//!
//! Found by following the journal once more, with the planner beside it: what was chosen is recorded, why is not.

use super::search::{reason_words, sorted_mass};
use crate::journal::Record;
use crate::model::{BootNo, BootResult, BuildResult, CommitId};
use crate::search::{Dag, Why};
use crate::session::{Event, Plan, Planner, Purpose, State};
use serde::Serialize;
use std::collections::BTreeMap;

/// Commits of the posterior that are kept at each step, the likeliest.
const BELIEVED: usize = 16;

/// Parts of the range that the posterior is added up in, for pictures.
const BANDS: usize = 80;

/// Less likely ones are not.
const SHOWN: f64 = 5e-3;

/// What a measurement was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The endpoints are compared.
    Endpoints,
    /// A candidate, by what it tells for its time.
    Search,
    /// A kernel measured again, to follow the machine.
    Reference,
    /// Fresh boots of culprit and parents.
    Confirmation,
    /// Culprit and parents under a further variant.
    Variant,
    /// The reverted kernel beside the endpoints.
    Revert,
    /// A kernel of a survey.
    Survey,
}

impl Phase {
    /// As in the JSON form.
    pub fn word(self) -> &'static str {
        match self {
            Self::Endpoints => "endpoints",
            Self::Search => "search",
            Self::Reference => "reference",
            Self::Confirmation => "confirmation",
            Self::Variant => "variant",
            Self::Revert => "revert",
            Self::Survey => "survey",
        }
    }
}

/// A step of the way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathFacts {
    /// From 1.
    pub number: usize,
    /// When it was over: Unix time in milliseconds.
    pub at_ms: i64,
    /// What for.
    pub phase: Phase,
    /// The kernel.
    pub commit: CommitId,
    /// Its boot; `null` for a kernel that did not build.
    pub boot: Option<BootNo>,
    /// Whether it was built for this step (not from the cache).
    pub built: bool,
    /// Why it was chosen, in words.
    pub why: String,
    /// Judged metric in its counted runs.
    pub runs: Vec<f64>,
    /// Why nothing was measured; `null` where something was.
    pub lost: Option<String>,
    /// Seconds of work it took, build and runs among them.
    pub seconds: f64,
    /// Seconds of work that the session had taken by its end.
    pub spent_seconds: f64,
    /// Verdicts that came of it: kernel and verdict, in words.
    pub verdicts: Vec<String>,
    /// Entropy of the posterior over commits after it, bits; `null` before the endpoints are measured.
    pub entropy_bits: Option<f64>,
    /// Commits that then held 95 %.
    pub credible: Option<usize>,
    /// The likeliest commits then.
    pub believed: Vec<(CommitId, f64)>,
    /// All of the posterior then, over equal parts of the range in the order of the history: at most 80, each commit for
    /// itself in a shorter range. Empty before the endpoints are measured. For pictures, not in the JSON form.
    #[serde(skip)]
    pub bands: Vec<f64>,
}

/// A step that is under way.
struct Open {
    phase: Phase,
    commit: CommitId,
    why: String,
    built: bool,
    began: f64,
}

struct Walk {
    state: State,
    planner: Planner,
    builds: BTreeMap<CommitId, Open>,
    boots: BTreeMap<BootNo, Open>,
    path: Vec<PathFacts>,
}

/// The way of a session, step by step.
pub(super) fn path(dag: &Dag, plan: &Plan, records: &[Record]) -> Vec<PathFacts> {
    let mut walk = Walk {
        state: State::new(plan.clone()),
        planner: Planner::new(dag, plan),
        builds: BTreeMap::new(),
        boots: BTreeMap::new(),
        path: Vec::new(),
    };
    for record in records.iter().skip(1) {
        walk.before(&record.event);
        // Whoever loaded these records has applied each of them already.
        if walk.state.apply(record.at, &record.event).is_err() {
            break;
        }
        walk.after(record);
    }
    walk.path
}

impl Walk {
    /// Choices are made before their step begins.
    fn before(&mut self, event: &Event) {
        match event {
            Event::BuildStarted { commit, .. } => {
                let open = self.chosen(commit, 0, "");
                self.builds.insert(commit.clone(), open);
            }
            Event::BootStarted { boot, commit, stage, variant, .. } => {
                let built = self.builds.remove(commit);
                let open = built.unwrap_or_else(|| self.chosen(commit, *stage, variant));
                self.boots.insert(*boot, open);
            }
            Event::Planned { .. }
            | Event::Opened { .. }
            | Event::TailCut { .. }
            | Event::BuildFinished { .. }
            | Event::BootFinished { .. }
            | Event::RunStarted { .. }
            | Event::RunFinished { .. }
            | Event::BootEnded { .. }
            | Event::StepInterrupted { .. }
            | Event::EndpointsJudged { .. }
            | Event::Judged { .. }
            | Event::VerdictRetracted { .. }
            | Event::Narrowed { .. }
            | Event::Voided { .. }
            | Event::PathsDropped { .. }
            | Event::ConfirmationStarted { .. }
            | Event::ConfirmationFinished { .. }
            | Event::ConfirmationAbandoned { .. }
            | Event::Surveyed { .. }
            | Event::Halted { .. }
            | Event::Concluded { .. } => {}
        }
    }

    fn after(&mut self, record: &Record) {
        match &record.event {
            Event::BuildFinished { result, .. } => self.build_over(record.at, result),
            Event::BootFinished { boot, result: BootResult::Untestable(told), .. } => {
                self.boot_over(record.at, *boot, Some(format!("{}: {}", told.kind, told.reason)));
            }
            Event::BootFinished { boot, result: BootResult::Infra(failure), .. } => {
                self.boot_over(record.at, *boot, Some(format!("our side failed: {}", failure.reason)));
            }
            Event::BootEnded { boot } => self.boot_over(record.at, *boot, None),
            Event::EndpointsJudged { .. } => self.verdict(super::log::describe(&record.event)),
            Event::Judged { commit, verdict, .. } => {
                let word = super::facts::verdict_word(&self.state, *verdict);
                self.verdict(format!("{} is {word}", commit.short()));
            }
            Event::VerdictRetracted { commit, .. } => {
                self.verdict(format!("{}: verdict retracted", commit.short()));
            }
            Event::ConfirmationFinished { culprit, confirmed, .. } => {
                let word = if *confirmed { "confirmed" } else { "not confirmed" };
                self.verdict(format!("{} is {word}", culprit.short()));
            }
            Event::Narrowed { .. } | Event::ConfirmationAbandoned { .. } | Event::PathsDropped { .. } => {
                self.verdict(super::log::describe(&record.event));
            }
            Event::BootFinished { result: BootResult::Booted(_), .. }
            | Event::Planned { .. }
            | Event::Opened { .. }
            | Event::TailCut { .. }
            | Event::BuildStarted { .. }
            | Event::BootStarted { .. }
            | Event::RunStarted { .. }
            | Event::RunFinished { .. }
            | Event::StepInterrupted { .. }
            | Event::Voided { .. }
            | Event::ConfirmationStarted { .. }
            | Event::Surveyed { .. }
            | Event::Halted { .. }
            | Event::Concluded { .. } => {}
        }
    }

    fn chosen(&mut self, commit: &CommitId, stage: u32, variant: &str) -> Open {
        let (phase, why) = self.why(commit, stage, variant);
        Open { phase, commit: commit.clone(), why, built: false, began: self.state.spent.seconds }
    }

    fn why(&mut self, commit: &CommitId, stage: u32, variant: &str) -> (Phase, String) {
        if !variant.is_empty() {
            return (Phase::Variant, format!("what it does under {variant}"));
        }
        match self.state.plan.purpose {
            Purpose::Bisect => {}
            Purpose::RevertTest { .. } => return (Phase::Revert, "a block of the three kernels".to_owned()),
            Purpose::Survey(_) => return (Phase::Survey, "a block of the survey".to_owned()),
        }
        self.planner.follow(&self.state);
        let reason = self.planner.reason(&self.state);
        let fits = reason.filter(|(measure, _)| self.planner.commit(measure.node()) == commit);
        if let Some((_, why)) = fits {
            return (phase(&why), reason_words(&self.planner, &why));
        }
        let ends = [&self.state.plan.good.commit, &self.state.plan.bad.commit];
        let phase = match (stage, ends.contains(&commit)) {
            (0, true) if self.state.endpoints.is_none() => Phase::Endpoints,
            (0, _) => Phase::Search,
            (_, _) => Phase::Confirmation,
        };
        let base = self.state.plan.merge_bases.contains(commit);
        let words = if base {
            "a merge base must be like good"
        } else if self.boots.is_empty() {
            ""
        } else {
            "beside another machine's boot"
        };
        (phase, words.to_owned())
    }

    fn build_over(&mut self, at_ms: i64, result: &BuildResult) {
        let lost = match result {
            BuildResult::Built { artifact } => {
                let last = self.builds.values_mut().last();
                return last.into_iter().for_each(|open| open.built = !artifact.cached);
            }
            BuildResult::Untestable(told) => format!("{}: {}", told.kind, told.reason),
            BuildResult::Infra(failure) => format!("our side failed: {}", failure.reason),
        };
        // One build goes on at a time.
        if let Some((_, open)) = self.builds.pop_last() {
            self.step(at_ms, open, None, Some(lost));
        }
    }

    fn boot_over(&mut self, at_ms: i64, boot: BootNo, lost: Option<String>) {
        if let Some(open) = self.boots.remove(&boot) {
            self.step(at_ms, open, Some(boot), lost);
        }
    }

    fn step(&mut self, at_ms: i64, open: Open, boot: Option<BootNo>, lost: Option<String>) {
        self.planner.follow(&self.state);
        let metric = &self.state.plan.recipe.metric.name;
        let of = boot.and_then(|boot| self.state.boot(boot));
        let runs: Vec<f64> = of
            .iter()
            .flat_map(|b| b.runs.iter().skip(self.state.warmup(b)))
            .filter_map(|run| run.metrics.get(metric))
            .copied()
            .collect();
        let lost = lost.or_else(|| {
            let told = of.and_then(|b| b.lost.last().cloned());
            runs.is_empty().then(|| told.unwrap_or_else(|| "no run was measured".to_owned()))
        });
        let spent = self.state.spent.seconds;
        let mut facts = PathFacts {
            number: self.path.len() + 1,
            at_ms,
            phase: open.phase,
            commit: open.commit,
            boot,
            built: open.built,
            why: open.why,
            runs,
            lost,
            seconds: spent - open.began,
            spent_seconds: spent,
            verdicts: Vec::new(),
            entropy_bits: None,
            credible: None,
            believed: Vec::new(),
            bands: Vec::new(),
        };
        self.believe(&mut facts);
        self.path.push(facts);
    }

    fn believe(&self, facts: &mut PathFacts) {
        let belief = self.planner.engine().belief();
        if self.state.plan.purpose != Purpose::Bisect || belief.grid().is_none() {
            return;
        }
        let mass = sorted_mass(belief);
        facts.bands = bands(&belief.by_node());
        facts.entropy_bits = Some(mass.entropy_bits());
        facts.credible = Some(mass.credible());
        let likely = mass.0.iter().take(BELIEVED).filter(|(_, p)| *p >= SHOWN);
        facts.believed = likely.map(|&(node, p)| (self.planner.commit(node).clone(), p)).collect();
    }

    fn verdict(&mut self, words: String) {
        if let Some(last) = self.path.last_mut() {
            last.verdicts.push(words);
        }
    }
}

/// Adds up the probabilities of commits in [`BANDS`] parts.
fn bands(by_node: &[f64]) -> Vec<f64> {
    let count = by_node.len().min(BANDS);
    let mut bands = vec![0.0; count];
    for (node, p) in by_node.iter().enumerate() {
        bands[node * count / by_node.len()] += p;
    }
    bands
}

fn phase(why: &Why) -> Phase {
    match why {
        Why::Gate | Why::Doubt => Phase::Endpoints,
        Why::Worth(_) | Why::Neighbour => Phase::Search,
        Why::Reference => Phase::Reference,
        Why::Confirmation => Phase::Confirmation,
    }
}

/// A run of steps that a reader takes as one: all of a phase in a row, or of one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch<'a> {
    /// They.
    pub steps: &'a [PathFacts],
}

impl Stretch<'_> {
    /// The first, which says why.
    pub fn first(&self) -> &PathFacts {
        &self.steps[0]
    }

    /// The last, which says what is believed.
    pub fn last(&self) -> &PathFacts {
        &self.steps[self.steps.len() - 1]
    }

    /// Seconds of all.
    pub fn seconds(&self) -> f64 {
        self.last().spent_seconds - (self.first().spent_seconds - self.first().seconds)
    }
}

/// The way, with what belongs together taken together.
pub fn stretches(path: &[PathFacts]) -> impl Iterator<Item = Stretch<'_>> {
    let together = |a: &PathFacts, b: &PathFacts| {
        a.phase == b.phase
            && (a.phase != Phase::Search || a.commit == b.commit)
            && a.lost.is_none() == b.lost.is_none()
    };
    path.chunk_by(together).map(|steps| Stretch { steps })
}
