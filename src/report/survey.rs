//! What a survey shows: its facts, and their forms as text for a mail, Markdown, CSV and JSON.
//!
//! Every form tells the same facts. Owns: which reference a cell is shown against, and the words of a cell. Must not do:
//! decide which neighbours differ (the session does, and journals it).

mod csv;
mod markdown;
mod text;

use super::environment::EnvironmentFacts;
use super::expense::SpentFacts;
use super::facts::{EndpointFacts, subject};
use super::moved::{self, MovedFacts};
use crate::lab::shell::quoted;
use crate::model::{
    Change, CommitId, ConclusionKind, Direction, Effect, Metric, Sense, SurveyStep, Untestable,
    UntestableKind,
};
use crate::search::Dag;
use crate::session::{
    Boot, Cell, State, Survey, change, follow, lost, outcome, reference, surveyed, untestable,
};
use crate::stats::median;
use crate::workload::declared_of;
use serde::Serialize;
use std::collections::BTreeSet;

/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// How the table is to be shown; what is not said is as the survey was started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// Whether each variant is compared with the baseline under the same one.
    pub own_baseline: bool,
    /// Further metrics as columns.
    pub also: Vec<String>,
}

/// Everything that is told of a survey.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurveyReport {
    /// Version of this form.
    pub schema: u32,
    /// Name of the session.
    pub session: String,
    /// "survey".
    pub purpose: &'static str,
    /// What is compared with.
    pub baseline: EndpointFacts,
    /// Whether each variant is compared with the baseline under the same one, and not under the first.
    pub own_baseline: bool,
    /// What is judged.
    pub metric: Metric,
    /// Profile used.
    pub profile: String,
    /// Variants, in order.
    pub variants: Vec<String>,
    /// Level of the intervals, in (0.5, 1).
    pub confidence: f64,
    /// Smallest change that is told as a step, as a fraction.
    pub minimum_effect: f64,
    /// Boots of each kernel under each variant that are asked for.
    pub boots: u32,
    /// Runs in each.
    pub runs: u32,
    /// Metrics beside the judged one that are columns.
    pub columns: Vec<String>,
    /// Kernels, in the order given.
    pub kernels: Vec<KernelFacts>,
    /// Neighbours that differ.
    pub steps: Vec<StepFacts>,
    /// The end, or where it stands.
    pub kind: ConclusionKind,
    /// In words.
    pub reason: String,
    /// What to do next.
    pub next_step: String,
    /// Exit status that goes with it.
    pub exit: u8,
    /// What the machines were like; `null`: it was not looked, or not booted.
    pub environment: Option<EnvironmentFacts>,
    /// What it cost.
    pub spent: SpentFacts,
}

/// A kernel's row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelFacts {
    /// As given.
    pub rev: String,
    /// As resolved.
    pub commit: CommitId,
    /// Its subject.
    pub subject: String,
    /// Why it cannot be measured at all ("build: ..."); else `null`.
    pub untestable: Option<String>,
    /// By variant.
    pub cells: Vec<CellFacts>,
}

/// What a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// The reference itself.
    Baseline,
    /// Measured.
    Measured,
    /// The kernel has not the tunable, or not the metric.
    NotAvailable,
    /// It cannot be measured for another reason.
    Untestable,
    /// No boot counts yet.
    NotMeasured,
}

/// A kernel under a variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellFacts {
    /// The variant.
    pub variant: String,
    /// What it is.
    pub state: CellState,
    /// Boots that count.
    pub boots: usize,
    /// Runs in them that count.
    pub runs: usize,
    /// Median of these runs, in the metric's unit.
    pub median: Option<f64>,
    /// Change against the reference: a fraction, positive = more of the metric.
    pub change: Option<Change>,
    /// "better", "worse" or "within the noise", by the interval.
    pub meaning: Option<&'static str>,
    /// Why it is not measured.
    pub reason: Option<String>,
    /// Every other metric that some run reported, by name.
    pub also: Vec<AlsoFacts>,
}

/// Another metric of a cell. Not judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlsoFacts {
    /// Its name.
    pub metric: String,
    /// Its unit, as far as parser or profile say; else empty.
    pub unit: String,
    /// Which way is better, likewise.
    pub direction: Option<Direction>,
    /// Median of the counted runs that reported it; `null`: none did.
    pub median: Option<f64>,
    /// Change against the reference.
    pub change: Option<Change>,
}

/// Neighbours that differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepFacts {
    /// The first, as given.
    pub from: String,
    /// The one after it.
    pub to: String,
    /// The first variant that shows it.
    pub variant: String,
    /// The second against the first; positive = worse.
    pub effect: Effect,
    /// "regression" or "improvement" from the first to the second.
    pub sense: Sense,
    /// How to search between them; `null` where no search can.
    pub command: Option<String>,
    /// What else moved, of what was counted beside their runs; `null` where nothing was.
    pub moved: Option<MovedFacts>,
}

impl SurveyReport {
    /// Gathers the facts; `None` of a session that is no survey.
    pub fn of(dag: &Dag, state: &State, view: &View) -> Option<Self> {
        let survey = state.survey()?;
        let plan = &state.plan;
        let own_baseline = survey.own_baseline || view.own_baseline;
        let end = outcome(dag, state);
        let mut columns = survey.also.clone();
        columns.extend(view.also.iter().filter(|name| !survey.also.contains(name)).cloned());
        Some(Self {
            schema: SCHEMA,
            session: plan.session.clone(),
            purpose: "survey",
            baseline: EndpointFacts { rev: plan.good.rev.clone(), commit: plan.good.commit.clone() },
            own_baseline,
            metric: plan.recipe.metric.clone(),
            profile: plan.recipe.profile.clone(),
            variants: plan.recipe.variants().map(str::to_owned).collect(),
            confidence: plan.recipe.confidence,
            minimum_effect: plan.recipe.minimum_effect.0,
            boots: survey.boots,
            runs: survey.runs,
            columns,
            kernels: kernels(dag, state, survey, own_baseline),
            steps: steps(state, survey),
            kind: end.kind,
            reason: end.reason,
            next_step: end.next_step,
            exit: end.exit,
            environment: super::environment::facts(state),
            spent: SpentFacts::of(state, None),
        })
    }

    /// The JSON form, indented, with a line end.
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("facts are plain data with finite numbers");
        text.push('\n');
        text
    }

    /// Whether a kernel differs from the one before it.
    fn is_step(&self, kernel: &KernelFacts) -> bool {
        self.steps.iter().any(|step| step.to == kernel.rev)
    }

    /// What the cells are compared with, in words.
    fn against(&self) -> String {
        let under = if self.own_baseline {
            "under the same variant".to_owned()
        } else {
            format!("under {}", self.variants.first().map_or("default", String::as_str))
        };
        format!("{} {under}", self.baseline.rev)
    }

    /// "time [s], lower is better".
    fn metric_words(&self) -> String {
        let Metric { name, unit, direction } = &self.metric;
        let unit = if unit.is_empty() { String::new() } else { format!(" [{unit}]") };
        format!("{name}{unit}, {direction}")
    }

    /// Why cells are not there, one line for each variant and reason.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
        let mut note = |rev, words: String| match notes.iter_mut().find(|(known, _)| *known == words) {
            Some((_, revs)) => revs.push(rev),
            None => notes.push((words, vec![rev])),
        };
        for kernel in self.kernels.iter().filter(|kernel| kernel.untestable.is_none()) {
            for cell in &kernel.cells {
                if let Some(reason) = &cell.reason {
                    note(&kernel.rev, format!("{} under {}: {reason}", cell_word(cell.state), cell.variant));
                }
            }
        }
        notes.into_iter().map(|(words, revs)| format!("{words} ({})", revs.join(", "))).collect()
    }
}

impl StepFacts {
    /// "c4 -> c5 was a regression: nopm -7.4 % (-7.8 to -7.0 %)".
    fn words(&self, report: &SurveyReport) -> String {
        let sign = report.metric.direction.worse_sign();
        let Effect { relative, low, high } = self.effect;
        let (a, b) = (sign * low, sign * high);
        let change = Change { relative: sign * relative, low: Some(a.min(b)), high: Some(a.max(b)) };
        let article = match self.sense {
            Sense::Regression => "a",
            Sense::Improvement => "an",
        };
        format!(
            "{} -> {} was {article} {}: {} {} under {}",
            self.from,
            self.to,
            self.sense,
            report.metric.name,
            whole(change),
            self.variant
        )
    }
}

fn kernels(dag: &Dag, state: &State, survey: &Survey, own_baseline: bool) -> Vec<KernelFacts> {
    let variants: Vec<&str> = state.plan.recipe.variants().collect();
    let others = other_metrics(state);
    let of = |kernel: &crate::session::Kernel| {
        let cell = |variant: &&str| {
            let cell = Cell { commit: kernel.commit.clone(), variant: (*variant).to_owned() };
            cell_facts(state, &cell, own_baseline, &others)
        };
        KernelFacts {
            rev: kernel.rev.clone(),
            commit: kernel.commit.clone(),
            subject: subject(dag, state, &kernel.commit).unwrap_or_default(),
            untestable: lost(state, &kernel.commit).map(why),
            cells: variants.iter().map(cell).collect(),
        }
    };
    survey.kernels.iter().map(of).collect()
}

/// Metrics beside the judged one that some run reported.
fn other_metrics(state: &State) -> BTreeSet<&String> {
    let judged = &state.plan.recipe.metric.name;
    let runs = state.boots.iter().flat_map(|boot| &boot.runs);
    runs.flat_map(|run| run.metrics.keys()).filter(|name| *name != judged).collect()
}

fn cell_facts(state: &State, cell: &Cell, own_baseline: bool, others: &BTreeSet<&String>) -> CellFacts {
    let metric = &state.plan.recipe.metric;
    let against = reference(state, own_baseline, cell);
    let is_reference = against == *cell;
    let boots: Vec<&Boot> = cell.boots(state).collect();
    let untestable = untestable(state, &cell.commit, &cell.variant);
    let changed = |name: &str| if is_reference { None } else { change(state, name, cell, &against) };
    let judged = changed(&metric.name);
    let (kind, runs) = (untestable.map(|u| u.kind), cell.values(state, &metric.name));
    CellFacts {
        variant: cell.variant.clone(),
        state: match kind {
            Some(UntestableKind::Knob | UntestableKind::Declared) => CellState::NotAvailable,
            Some(_) => CellState::Untestable,
            None if boots.is_empty() => CellState::NotMeasured,
            None if is_reference => CellState::Baseline,
            None => CellState::Measured,
        },
        boots: boots.len(),
        runs: runs.len(),
        median: (!runs.is_empty()).then(|| median(&runs)),
        change: judged,
        meaning: judged.and_then(|change| meaning(change, metric.direction)),
        reason: untestable.map(why),
        also: others.iter().map(|name| also(state, cell, name, changed(name))).collect(),
    }
}

/// "build: ..."; never "knob: knob not available".
fn why(untestable: &Untestable) -> String {
    let Untestable { kind, reason } = untestable;
    let kind = kind.to_string();
    if reason.starts_with(&kind) { reason.clone() } else { format!("{kind}: {reason}") }
}

fn also(state: &State, cell: &Cell, name: &str, change: Option<Change>) -> AlsoFacts {
    let plan = &state.plan;
    let (unit, direction) = declared_of(&plan.recipe.reading, &plan.recipe.machine, name);
    let values = cell.values(state, name);
    let median = (!values.is_empty()).then(|| median(&values));
    AlsoFacts { metric: name.to_owned(), unit, direction, median, change }
}

fn meaning(change: Change, direction: Direction) -> Option<&'static str> {
    let (low, high) = (change.low?, change.high?);
    let grows_better = direction == Direction::Higher;
    Some(if low > 0.0 {
        if grows_better { "better" } else { "worse" }
    } else if high < 0.0 {
        if grows_better { "worse" } else { "better" }
    } else {
        "within the noise"
    })
}

fn steps(state: &State, survey: &Survey) -> Vec<StepFacts> {
    let steps = state.surveyed.clone().unwrap_or_else(|| surveyed(state)).1;
    let rev = |commit: &CommitId| {
        survey.kernels.iter().find(|k| k.commit == *commit).map_or(String::new(), |k| k.rev.clone())
    };
    steps
        .iter()
        .map(|step| StepFacts {
            from: rev(&step.from),
            to: rev(&step.to),
            variant: step.variant.clone(),
            effect: step.effect,
            sense: if step.effect.relative > 0.0 { Sense::Regression } else { Sense::Improvement },
            command: command(state, survey, step),
            moved: moved::between(state, under(step, &step.to), under(step, &step.from)),
        })
        .collect()
}

fn under(step: &SurveyStep, commit: &CommitId) -> Cell {
    Cell { commit: commit.clone(), variant: step.variant.clone() }
}

/// The search that would follow a step.
fn command(state: &State, survey: &Survey, step: &SurveyStep) -> Option<String> {
    let search = follow(state, step)?;
    let (good, bad) = (word(&search.good.rev), word(&search.bad.rev));
    let mut command = format!("sched-bisect start {good} {bad} --find {}", search.find);
    if !state.plan.recipe.setup.also.is_empty() {
        command.push_str(&format!(" --variant {}", word(&step.variant)));
    }
    if !survey.arguments.is_empty() {
        command.push_str(&format!(" {}", survey.arguments));
    }
    Some(command)
}

/// A word for a shell, quoted only where it must be.
pub fn word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/+=:@%,".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { quoted(word) }
}

fn cell_word(state: CellState) -> &'static str {
    match state {
        CellState::Baseline => "baseline",
        CellState::Measured => "no baseline",
        CellState::NotAvailable => "N/A",
        CellState::Untestable => "untestable",
        CellState::NotMeasured => "",
    }
}

/// "+8.7 %"; never "-0.0 %".
fn percent(fraction: f64) -> String {
    format!("{} %", signed(fraction))
}

fn signed(fraction: f64) -> String {
    let shown = fraction * 100.0;
    format!("{:+.1}", if shown.abs() < 0.05 { 0.0 } else { shown })
}

/// "+7.4 to +10.3".
fn interval(change: Change) -> Option<String> {
    Some(format!("{} to {}", signed(change.low?), signed(change.high?)))
}

/// "+8.7 % (+7.4 to +10.3 %)".
fn whole(change: Change) -> String {
    let range = interval(change).map_or(String::new(), |range| format!(" ({range} %)"));
    format!("{}{range}", percent(change.relative))
}

/// A column of the table, beside the kernel's name.
enum Column {
    /// The judged metric under the variant of this index.
    Variant(usize),
    /// Another metric under the first variant.
    Also(String),
}

/// What stands in a cell of the table.
enum Shown {
    /// A word.
    Word(&'static str),
    /// A word of which so many boots tell.
    Counted(&'static str, usize),
    /// A change, by so many boots.
    Change(Change, usize),
}

impl SurveyReport {
    /// As in the reference thread: the judged metric, what was seen beside it, then the other variants.
    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![Column::Variant(0)];
        columns.extend(self.columns.iter().cloned().map(Column::Also));
        columns.extend((1..self.variants.len()).map(Column::Variant));
        columns
    }

    fn head(&self, column: &Column) -> String {
        match column {
            Column::Variant(0) => self.metric.name.clone(),
            Column::Variant(at) => self.variants[*at].clone(),
            Column::Also(metric) => metric.clone(),
        }
    }

    fn shown(&self, kernel: &KernelFacts, column: &Column) -> Shown {
        let cell = |at: usize| &kernel.cells[at];
        match column {
            Column::Variant(at) => {
                let cell = cell(*at);
                match (cell.state, cell.change) {
                    (CellState::Measured, Some(change)) => Shown::Change(change, cell.boots),
                    (state @ (CellState::Measured | CellState::Baseline), _) => {
                        Shown::Counted(cell_word(state), cell.boots)
                    }
                    (
                        state @ (CellState::NotAvailable | CellState::Untestable | CellState::NotMeasured),
                        _,
                    ) => Shown::Word(cell_word(state)),
                }
            }
            Column::Also(metric) => {
                let cell = cell(0);
                let also = cell.also.iter().find(|also| also.metric == *metric);
                match (cell.state, also.map(|also| (also.median, also.change))) {
                    (CellState::NotMeasured, _) => Shown::Word(""),
                    (CellState::NotAvailable | CellState::Untestable, _) => {
                        Shown::Word(cell_word(cell.state))
                    }
                    (CellState::Baseline, Some((Some(_), _))) => Shown::Counted("baseline", cell.boots),
                    (CellState::Measured, Some((Some(_), Some(change)))) => Shown::Change(change, cell.boots),
                    (CellState::Baseline | CellState::Measured, _) => Shown::Word("N/A"),
                }
            }
        }
    }
}
