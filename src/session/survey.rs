//! A survey: kernels under variants in blocks ([`super::blocks`]), each compared with the baseline.
//!
//! Nothing is searched and no verdict stops it early: an amount of boots that is fixed beforehand makes each interval what
//! it says. Owns: the amounts, the numbers of the table, which neighbours differ, and the search that would follow.

use super::blocks::{self, Cell};
use super::event::Event;
use super::plan::{Kernel, Lineage, MachineSpec, Recipe};
use super::planner::{Next, Wish, counted};
use super::state::{Boot, State};
use crate::model::{Change, CommitId, Effect, Sense, SurveyCell, SurveyStep, Untestable};

/// Boots of a cell that a profile's guesses may come to.
const FEWEST: f64 = 4.0;
const MOST: f64 = 30.0;

/// Runs of a boot, likewise.
const MOST_RUNS: f64 = 8.0;

/// Normal quantiles of an interval at 95 % and of a power of 80 %, together.
const QUANTILES: f64 = 1.96 + 0.84;

/// Boots of each cell and runs of each boot where nobody says: as many runs as make the most of a boot's cost
/// (`sqrt(C s^2 / (R b^2))`, Cochran, "Sampling Techniques", 10.6), and as many boots as show the minimum effect at 95 % with a power
/// of 80 %, by the costs and the noise that the profile guesses.
pub fn amounts(recipe: &Recipe) -> (u32, u32) {
    let guess = &recipe.costs;
    let boot_s = guess.boot_s + f64::from(recipe.judging.warmup_runs) * guess.run_s;
    let runs = match recipe.machine {
        // A second run costs what a boot does.
        MachineSpec::Command { boot: None, .. } => 1.0,
        MachineSpec::Command { .. } | MachineSpec::Qemu(_) | MachineSpec::Ssh(_) => {
            let best = (boot_s / guess.run_s).sqrt() * guess.run_noise / guess.boot_noise;
            if best.is_finite() { best.round().clamp(1.0, MOST_RUNS) } else { MOST_RUNS }
        }
    };
    let scale = (guess.boot_noise.powi(2) + guess.run_noise.powi(2) / runs).sqrt();
    let boots = 2.0 * (QUANTILES * scale / recipe.minimum_effect.0.ln_1p()).powi(2);
    // One more, since the spread itself is estimated from them.
    ((boots.ceil() + 1.0).clamp(FEWEST, MOST) as u32, runs as u32)
}

/// All cells, kernel by kernel in the order given, variant by variant.
pub fn cells(state: &State) -> Vec<Cell> {
    let Some(survey) = state.survey() else { return Vec::new() };
    let variants: Vec<&str> = state.plan.recipe.variants().collect();
    let of = |kernel: &Kernel| {
        let commit = kernel.commit.clone();
        let cell = move |variant: &&str| Cell { commit: commit.clone(), variant: (*variant).to_owned() };
        variants.iter().map(cell).collect::<Vec<Cell>>()
    };
    survey.kernels.iter().flat_map(of).collect()
}

/// What to do next.
pub(super) fn next(state: &State) -> Next {
    match (wish(state, &[]), &state.surveyed) {
        (Some(wish), _) => Next::Boot(wish),
        (None, Some(_)) => Next::Over,
        (None, None) => {
            let (cells, steps) = surveyed(state);
            Next::Decide(Event::Surveyed { cells, steps })
        }
    }
}

/// A cell of the present block that is not under way.
pub(super) fn beside(state: &State, pending: &[&Boot]) -> Option<Wish> {
    wish(state, pending)
}

fn wish(state: &State, pending: &[&Boot]) -> Option<Wish> {
    let survey = state.survey()?;
    let cells = cells(state);
    let cell = blocks::next(state, &cells, survey.boots as usize, pending)?;
    Some(Wish { commit: cell.commit.clone(), stage: 0, runs: survey.runs, variant: cell.variant.clone() })
}

/// What a cell is compared with: the baseline, under the first variant or (`own_baseline`) under the cell's.
pub fn reference(state: &State, own_baseline: bool, cell: &Cell) -> Cell {
    let variant = if own_baseline { &cell.variant } else { &state.plan.recipe.variant };
    Cell { commit: state.plan.good.commit.clone(), variant: variant.clone() }
}

/// The numbers of the table, as far as it is measured.
pub fn surveyed(state: &State) -> (Vec<SurveyCell>, Vec<SurveyStep>) {
    let Some(survey) = state.survey() else { return (Vec::new(), Vec::new()) };
    let metric = &state.plan.recipe.metric.name;
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let cell = |cell: Cell| {
        let reference = reference(state, survey.own_baseline, &cell);
        let is_reference = reference == cell;
        let boots: Vec<&Boot> = cell.boots(state).collect();
        SurveyCell {
            boots: count(boots.len()),
            runs: count(boots.iter().map(|b| counted(state, b)).sum()),
            change: if is_reference { None } else { blocks::change(state, metric, &cell, &reference) },
            untestable: blocks::untestable(state, &cell.commit, &cell.variant).cloned(),
            commit: cell.commit,
            variant: cell.variant,
        }
    };
    // What cannot be measured stands between no neighbours.
    let there: Vec<&Kernel> = survey.kernels.iter().filter(|k| lost(state, &k.commit).is_none()).collect();
    let steps = there.windows(2).filter_map(|pair| step(state, pair[0], pair[1])).collect();
    (cells(state).into_iter().map(cell).collect(), steps)
}

/// Why a kernel cannot be measured under any variant, if so.
pub fn lost<'a>(state: &'a State, commit: &CommitId) -> Option<&'a Untestable> {
    let variants = state.plan.recipe.variants();
    let all: Option<Vec<&Untestable>> = variants.map(|v| blocks::untestable(state, commit, v)).collect();
    all?.first().copied()
}

/// Whether two neighbours differ by the minimum effect, in an interval that does not hold zero, under the first variant that
/// shows it.
fn step(state: &State, from: &Kernel, to: &Kernel) -> Option<SurveyStep> {
    let recipe = &state.plan.recipe;
    let worse = recipe.metric.direction.worse_sign();
    recipe.variants().find_map(|variant| {
        let cell = |kernel: &Kernel| Cell { commit: kernel.commit.clone(), variant: variant.to_owned() };
        let effect = effect(blocks::change(state, &recipe.metric.name, &cell(to), &cell(from))?, worse)?;
        let is_clear = effect.low > 0.0 || effect.high < 0.0;
        (is_clear && effect.relative.abs() >= recipe.minimum_effect.0).then(|| SurveyStep {
            from: from.commit.clone(),
            to: to.commit.clone(),
            variant: variant.to_owned(),
            effect,
        })
    })
}

/// A change as an effect, positive = worse; `None` without an interval.
pub(super) fn effect(change: Change, worse: f64) -> Option<Effect> {
    let (a, b) = (worse * change.low?, worse * change.high?);
    Some(Effect { relative: worse * change.relative, low: a.min(b), high: a.max(b) })
}

/// A search that would follow a step: what `start` is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow<'a> {
    /// The good endpoint.
    pub good: &'a Kernel,
    /// The bad one.
    pub bad: &'a Kernel,
    /// What to look for: the change from good to bad.
    pub find: Sense,
}

/// The search between two neighbours. It wants the older kernel for its good endpoint, whichever is the faster, and looks for
/// the change from there on. `None` where their histories have nothing in common.
pub fn follow<'a>(state: &'a State, step: &SurveyStep) -> Option<Follow<'a>> {
    let kernels = &state.survey()?.kernels;
    let at = |commit: &CommitId| kernels.iter().position(|k| k.commit == *commit);
    let from_at = at(&step.from)?;
    let (from, to) = (&kernels[from_at], &kernels[at(&step.to)?]);
    let is_forward = match to.lineage.get(from_at)? {
        Lineage::Descendant | Lineage::Diverged => true,
        Lineage::Ancestor => false,
        Lineage::Unrelated => return None,
    };
    let (good, bad) = if is_forward { (from, to) } else { (to, from) };
    let is_regression = (step.effect.relative > 0.0) == is_forward;
    let find = if is_regression { Sense::Regression } else { Sense::Improvement };
    Some(Follow { good, bad, find })
}
