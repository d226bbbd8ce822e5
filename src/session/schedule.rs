//! Which boots a phase asks for, and in what order.

use super::phase::{Phase, is_given_up};
use super::state::{Boot, BootStatus, Build, State};
use crate::model::CommitId;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Boots asked for of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub commit: CommitId,
    /// Stage of these boots (0 = search).
    pub stage: u32,
    /// How many slots are to be full.
    pub slots: u32,
}

/// The boots the phase needs; commits that cannot be measured are left out.
pub(super) fn targets(phase: &Phase, state: &State) -> Vec<Target> {
    let judging = &state.plan.recipe.judging;
    let gate = || more(state.endpoints.as_ref().map_or(0, |e| e.looks), judging.boots, judging.max_boots);
    let plan = &state.plan;
    let wanted: Vec<(CommitId, u32, u32)> = match phase {
        Phase::Endpoints => [&plan.good.commit, &plan.bad.commit].map(|c| (c.clone(), 0, gate())).into(),
        Phase::Revert => [Some(&plan.good.commit), Some(&plan.bad.commit), state.reverted()]
            .into_iter()
            .flatten()
            .map(|c| (c.clone(), 0, gate()))
            .collect(),
        Phase::MergeBases(commits) | Phase::Parents { parents: commits, .. } => {
            commits.iter().map(|c| (c.clone(), 0, slots(state, c))).collect()
        }
        Phase::Candidate(commit) => vec![(commit.clone(), 0, slots(state, commit))],
        Phase::Confirm { culprit, parents } => {
            let going = state.confirmation.as_ref().filter(|c| c.culprit == *culprit && c.result.is_none());
            let stage = going.map_or(0, |c| c.stage);
            let all = std::iter::once(culprit).chain(parents);
            if stage == 0 {
                Vec::new()
            } else {
                all.map(|c| (c.clone(), stage, judging.confirm_boots)).collect()
            }
        }
        Phase::DropPaths(_) | Phase::Over(_) => Vec::new(),
    };
    wanted
        .into_iter()
        .filter(|(commit, _, _)| state.commit(commit).is_none_or(|c| c.untestable.is_none()))
        .map(|(commit, stage, slots)| Target { commit, stage, slots })
        .collect()
}

fn slots(state: &State, commit: &CommitId) -> u32 {
    let judging = &state.plan.recipe.judging;
    let looks = state.commit(commit).map_or(0, |c| c.looks);
    if is_given_up(state, looks) { judging.max_boots } else { more(looks, judging.boots, judging.max_boots) }
}

fn more(looks: u32, boots: u32, max_boots: u32) -> u32 {
    (boots * (looks + 1)).min(max_boots)
}

/// Counted runs that a slot has, over all its boots.
fn counted(state: &State, target: &Target, slot: u32) -> u32 {
    let warmup = state.plan.recipe.judging.warmup_runs as usize;
    let of_slot = state.boots.iter().filter(|b| fills(b, target, slot));
    let runs: usize = of_slot.map(|b| b.runs.len().saturating_sub(warmup)).sum();
    u32::try_from(runs).unwrap_or(u32::MAX)
}

fn fills(boot: &Boot, target: &Target, slot: u32) -> bool {
    boot.commit == target.commit && boot.stage == target.stage && boot.slot == slot
}

/// Whether the slot has all its runs.
fn is_full(state: &State, target: &Target, slot: u32) -> bool {
    counted(state, target, slot) >= state.plan.recipe.judging.runs
}

/// Whether every slot of every target has all its runs.
pub(super) fn is_complete(state: &State, targets: &[Target]) -> bool {
    targets.iter().all(|t| (0..t.slots).all(|slot| is_full(state, t, slot)))
}

/// Whether a live boot has more runs to take.
pub(super) fn wants_run(state: &State, boot: &Boot, targets: &[Target]) -> bool {
    targets.iter().any(|t| {
        boot.commit == t.commit
            && boot.stage == t.stage
            && boot.slot < t.slots
            && !is_full(state, t, boot.slot)
    })
}

/// The next build a target needs, in the targets' order.
pub(super) fn next_build(state: &State, targets: &[Target]) -> Option<CommitId> {
    let unbuilt = |t: &&Target| state.commit(&t.commit).is_none_or(|c| c.build == Build::None);
    targets.iter().find(unbuilt).map(|t| t.commit.clone())
}

/// The next slot to boot: block by block, each block a random order of the targets, so that no kernel is always
/// first and drift meets all alike.
pub(super) fn next_slot<'a>(state: &State, targets: &'a [Target]) -> Option<(&'a Target, u32)> {
    let blocks = targets.iter().map(|t| t.slots).max().unwrap_or(0);
    (0..blocks).find_map(|slot| {
        let mut block: Vec<&Target> = targets.iter().filter(|t| slot < t.slots).collect();
        let mut rng = block_rng(state.plan.seed, block.first()?.stage, slot);
        block.shuffle(&mut rng);
        block.into_iter().find(|t| !is_full(state, t, slot) && !is_taken(state, t, slot)).map(|t| (t, slot))
    })
}

fn is_taken(state: &State, target: &Target, slot: u32) -> bool {
    state.boots.iter().any(|b| fills(b, target, slot) && b.status != BootStatus::Ended)
}

fn block_rng(seed: u64, stage: u32, slot: u32) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::from(stage) << 32 | u64::from(slot));
    rng
}
