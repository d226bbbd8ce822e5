//! Kernels under variants, measured in randomised blocks and compared by their boots.
//!
//! What a survey and the further variants of a search share. Owns: whose boot is next, what makes a kernel under a variant
//! not measurable, the comparison of two of them. Each boot is of one kernel under one variant, never of several in turn:
//! what one variant leaves behind (a service's policy, a cgroup, warmed caches) would reach the next, a kernel command line
//! cannot be changed at all, and cells that share a boot share its luck, so that their intervals would be too narrow.
//! Within a block each kernel is booted under each variant once, in an order drawn from the plan's seed, so that slow drift
//! of the machine reaches all alike.

use super::planner::{counted, is_void};
use super::state::{Boot, State};
use crate::model::{Change, CommitId, Untestable, UntestableKind};
use crate::stats::{Contrast, Group};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// A kernel under a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The kernel.
    pub commit: CommitId,
    /// The variant, as boots have it: empty is that of a search.
    pub variant: String,
}

impl Cell {
    fn has(&self, boot: &Boot) -> bool {
        boot.commit == self.commit && boot.variant == self.variant
    }

    /// Its boots with runs that count.
    pub fn boots<'a>(&self, state: &'a State) -> impl Iterator<Item = &'a Boot> + use<'a> {
        let cell = self.clone();
        state.boots.iter().filter(move |b| cell.has(b) && counted(state, b) > 0 && !is_void(state, b.boot))
    }

    /// A metric in its counted runs, those that reported it.
    pub fn values(&self, state: &State, metric: &str) -> Vec<f64> {
        let runs = self.boots(state).flat_map(|boot| &boot.runs[boot.runs.len() - counted(state, boot)..]);
        runs.filter_map(|run| run.metrics.get(metric)).copied().collect()
    }
}

/// The cell to boot next, until each has so many boots; `pending`: boots under way on other machines.
pub(super) fn next<'a>(
    state: &State,
    cells: &'a [Cell],
    blocks: usize,
    pending: &[&Boot],
) -> Option<&'a Cell> {
    let done: Vec<Option<usize>> = cells
        .iter()
        .map(|c| untestable(state, &c.commit, &c.variant).is_none().then(|| c.boots(state).count()))
        .collect();
    let block = done.iter().flatten().min().copied().filter(|block| *block < blocks)?;
    // Drawn over all, so that one that drops out does not change the order of the others.
    let mut order: Vec<usize> = (0..cells.len()).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(state.plan.seed);
    rng.set_stream(block as u64);
    order.shuffle(&mut rng);
    let is_free = |at: usize| !pending.iter().any(|boot| cells[at].has(boot));
    order.into_iter().find(|&at| done[at] == Some(block) && is_free(at)).map(|at| &cells[at])
}

/// Why a kernel cannot be measured under a variant, if so: its build, this variant, or that it never came up under another
/// one that boots it in the same way.
pub fn untestable<'a>(state: &'a State, commit: &CommitId, variant: &str) -> Option<&'a Untestable> {
    let own = state.commit(commit).and_then(|known| known.untestable.as_ref());
    let own = own.or_else(|| state.cell(commit, variant).and_then(|cell| cell.untestable.as_ref()));
    own.or_else(|| if variant.is_empty() { None } else { never_up(state, commit, variant) })
}

fn never_up<'a>(state: &'a State, commit: &CommitId, variant: &str) -> Option<&'a Untestable> {
    let recipe = &state.plan.recipe;
    let cmdline = |name: &str| recipe.named(name).sets.cmdline;
    let is_up =
        |b: &Boot| b.commit == *commit && b.record.is_some() && cmdline(&b.variant) == cmdline(variant);
    if state.boots.iter().any(is_up) {
        return None;
    }
    let others =
        state.cells.iter().filter(|((of, name), _)| of == commit && cmdline(name) == cmdline(variant));
    others.filter_map(|(_, cell)| cell.untestable.as_ref()).find(|u| match u.kind {
        UntestableKind::Boot | UntestableKind::Panic | UntestableKind::Declared => true,
        UntestableKind::Build
        | UntestableKind::FixUp
        | UntestableKind::Config
        | UntestableKind::Run
        | UntestableKind::InvalidOutput
        | UntestableKind::Knob => false,
    })
}

/// Means of a cell's boots of a metric, in log units; `None` where one is not positive, which has no logarithm. A boot none
/// of whose counted runs reported it is left out.
fn means(state: &State, cell: &Cell, metric: &str) -> Option<Vec<f64>> {
    let mut means = Vec::new();
    for boot in cell.boots(state) {
        let runs = &boot.runs[boot.runs.len() - counted(state, boot)..];
        let values: Vec<f64> = runs.iter().filter_map(|run| run.metrics.get(metric)).copied().collect();
        if values.iter().any(|value| *value <= 0.0) {
            return None;
        }
        let logs: f64 = values.iter().map(|value| value.ln()).sum();
        if !values.is_empty() {
            means.push(logs / values.len() as f64);
        }
    }
    Some(means)
}

/// Change of a metric between two cells: the ratio of the geometric means of their boots, with the interval after Welch
/// (1947), since noise may differ between kernels and between variants. It counts boots, not runs. `None` where one of them
/// has no boot with the metric, or a value that is not positive.
pub fn change(state: &State, metric: &str, later: &Cell, reference: &Cell) -> Option<Change> {
    let (later, reference) = (means(state, later, metric)?, means(state, reference, metric)?);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    if later.is_empty() || reference.is_empty() {
        return None;
    }
    let relative = (mean(&later) - mean(&reference)).exp_m1();
    let groups = Group::of(&later).ok().zip(Group::of(&reference).ok());
    let interval = groups.map(|(later, reference)| {
        let alpha = 1.0 - state.plan.recipe.confidence;
        Contrast::of(&[(1.0, &later), (-1.0, &reference)]).interval(alpha)
    });
    Some(Change { relative, low: interval.map(|i| i.low.exp_m1()), high: interval.map(|i| i.high.exp_m1()) })
}
