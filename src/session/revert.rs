//! A revert test: good, bad and the reverted kernel in blocks, each block a random order of the three.

use super::event::EndpointOutcome;
use super::judge;
use super::planner::{Next, Planner, Wish, counted, is_void};
use super::state::State;
use crate::model::CommitId;
use crate::search::{Decision, Step};
use crate::stats::Share;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// A share is told when its interval is no wider than this ...
const NARROW: f64 = 0.3;

/// ... or lies wholly on one side of these: nothing came back, everything did.
const NOTHING: f64 = 0.25;
const EVERYTHING: f64 = 0.75;

/// Blocks after which it is told as it is, in units of what the endpoints may get.
const PATIENCE: usize = 2;

/// What to do next.
pub(super) fn next(planner: &Planner, state: &State) -> Next {
    let Some(reverted) = state.reverted() else { return Next::Over };
    if state.commit(reverted).is_some_and(|c| c.untestable.is_some()) {
        return Next::Over;
    }
    let kernels = [&state.plan.good.commit, &state.plan.bad.commit, reverted];
    let blocks = kernels.map(|commit| boots(state, commit));
    let complete = blocks.iter().copied().min().unwrap_or(0);
    let is_complete = blocks.iter().all(|&n| n == complete) && complete > 0;
    let outcome = state.endpoints.as_ref().map(|e| e.outcome);
    match outcome {
        Some(EndpointOutcome::NoDifference | EndpointOutcome::OppositeSign) => return Next::Over,
        Some(EndpointOutcome::Change(_)) if is_complete && is_settled(planner, state, complete) => {
            return Next::Over;
        }
        None | Some(EndpointOutcome::Undecided) if is_complete => {
            let mut engine = planner.engine().clone();
            if let Step::Decide(Decision::Gate(gate)) = engine.next(planner.costs(state), None) {
                return Next::Decide(judge::gate(state, planner, gate));
            }
        }
        Some(EndpointOutcome::Change(_) | EndpointOutcome::Undecided) | None => {}
    }
    let runs = planner.engine().runs_per_boot(planner.costs(state));
    Next::Boot(Wish::of_search(turn(state, &kernels).clone(), 0, runs))
}

/// Boots of a commit with counted runs.
fn boots(state: &State, commit: &CommitId) -> usize {
    let counts = |b: &&super::state::Boot| counted(state, b) > 0 && !is_void(state, b.boot);
    state.searched().filter(|b| b.commit == *commit).filter(counts).count()
}

/// Whose turn it is.
fn turn<'a>(state: &State, kernels: &[&'a CommitId]) -> &'a CommitId {
    let block = kernels.iter().map(|k| boots(state, k)).min().unwrap_or(0);
    let mut order = kernels.to_vec();
    let mut rng = ChaCha8Rng::seed_from_u64(state.plan.seed);
    rng.set_stream(block as u64);
    order.shuffle(&mut rng);
    order.iter().find(|k| boots(state, k) == block).copied().unwrap_or(kernels[0])
}

/// A kernel of the present block that is not under way.
pub(super) fn beside(state: &State, pending: &[&super::state::Boot]) -> Option<CommitId> {
    let kernels = [&state.plan.good.commit, &state.plan.bad.commit, state.reverted()?];
    let block = kernels.iter().map(|k| boots(state, k)).min()?;
    let is_pending = |commit: &CommitId| pending.iter().any(|b| b.commit == *commit);
    kernels.into_iter().find(|k| boots(state, k) == block && !is_pending(k)).cloned()
}

fn is_settled(planner: &Planner, state: &State, blocks: usize) -> bool {
    let cap = (PATIENCE * planner.engine().gate_cap()).max(3 * state.plan.recipe.judging.boots as usize);
    if blocks >= cap {
        return true;
    }
    let share = judge::restored(state, planner).and_then(|(share, _)| share);
    share.is_some_and(|Share { low, high, .. }| {
        high - low <= NARROW || high < NOTHING || (low > EVERYTHING && high > 1.0)
    })
}
