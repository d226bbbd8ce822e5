//! Further variants of a search: once culprits are confirmed, they and their parents are booted afresh under each.
//!
//! Told beside the verdict, never part of it: the boots carry their variant, so that neither the search nor a judgement sees
//! them, and a kernel that cannot be measured under one of them stays what it is.

use super::blocks::{self, Cell};
use super::plan::Purpose;
use super::planner::{Wish, counted};
use super::state::{Boot, Confirmation, State};
use super::survey::effect;
use crate::model::{CommitId, Effect, Untestable};

/// Fewest boots of a kernel under a variant.
const FEWEST: usize = 2;

/// A culprit against a parent under a further variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Further {
    /// The culprit.
    pub culprit: CommitId,
    /// The parent.
    pub parent: CommitId,
    /// The variant.
    pub variant: String,
    /// Culprit against parent, by their boots under it; absent where one of them is not measured twice.
    pub effect: Option<Effect>,
    /// Boots of culprit and parent that count.
    pub boots: (usize, usize),
    /// Why one of them cannot be measured under it.
    pub untestable: Option<Untestable>,
}

/// The next boot, if one is due.
pub(super) fn next(state: &State, pending: &[&Boot]) -> Option<Wish> {
    let plan = &state.plan;
    if plan.purpose != Purpose::Bisect || plan.recipe.setup.also.is_empty() {
        return None;
    }
    let cells = cells(state);
    let blocks = state.confirmed.iter().map(|c| fresh(state, c)).max()?;
    let cell = blocks::next(state, &cells, blocks, pending)?;
    Some(Wish { commit: cell.commit.clone(), stage: 0, runs: runs(state), variant: cell.variant.clone() })
}

/// Each culprit and parent under each further variant.
fn cells(state: &State) -> Vec<Cell> {
    let mut commits: Vec<&CommitId> = Vec::new();
    for commit in state.confirmed.iter().flat_map(|c| std::iter::once(&c.culprit).chain(&c.parents)) {
        if !commits.contains(&commit) {
            commits.push(commit);
        }
    }
    let also = &state.plan.recipe.setup.also;
    let of = |commit: &CommitId| {
        let commit = commit.clone();
        also.iter().map(move |v| Cell { commit: commit.clone(), variant: v.name.clone() })
    };
    commits.into_iter().flat_map(of).collect()
}

/// As many boots as the confirmation took of the culprit: what was enough to show the change under the search's variant.
fn fresh(state: &State, going: &Confirmation) -> usize {
    let stages = going.first_stage..=going.stage;
    let is_fresh =
        |b: &&Boot| b.commit == going.culprit && stages.contains(&b.stage) && counted(state, b) > 0;
    state.searched().filter(is_fresh).count().max(FEWEST)
}

/// As many runs as the last boot of the search was for.
fn runs(state: &State) -> u32 {
    state.searched().last().map_or(1, |boot| boot.wanted.max(1))
}

/// What the further variants show, as far as they are measured: culprit by culprit, parent by parent.
pub fn further(state: &State) -> Vec<Further> {
    let recipe = &state.plan.recipe;
    let mut found = Vec::new();
    for going in state.confirmed.iter().filter(|_| state.plan.purpose == Purpose::Bisect) {
        for parent in &going.parents {
            found.extend(recipe.setup.also.iter().map(|also| one(state, &going.culprit, parent, &also.name)));
        }
    }
    found
}

fn one(state: &State, culprit: &CommitId, parent: &CommitId, variant: &str) -> Further {
    let recipe = &state.plan.recipe;
    let cell = |commit: &CommitId| Cell { commit: commit.clone(), variant: variant.to_owned() };
    let (later, reference) = (cell(culprit), cell(parent));
    let change = blocks::change(state, &recipe.metric.name, &later, &reference);
    let untestable = [parent, culprit].into_iter().find_map(|c| blocks::untestable(state, c, variant));
    Further {
        culprit: culprit.clone(),
        parent: parent.clone(),
        variant: variant.to_owned(),
        effect: change.and_then(|change| effect(change, recipe.metric.direction.worse_sign())),
        boots: (later.boots(state).count(), reference.boots(state).count()),
        untestable: untestable.cloned(),
    }
}
