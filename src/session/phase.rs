//! Where a session stands: a function of plan, graph and state.

use super::event::EndpointOutcome;
use super::plan::Purpose;
use super::state::State;
use crate::model::{CommitId, Verdict};
use crate::search::{self, Dag, Knowledge, Known, Next, Remaining};

/// What is going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Good and bad are measured against each other.
    Endpoints,
    /// The merge bases of good and bad are measured: the search needs them to be like good.
    MergeBases(Vec<CommitId>),
    /// One candidate is measured.
    Candidate(CommitId),
    /// A suspected culprit's parents are measured.
    Parents {
        /// The suspected culprit.
        of: CommitId,
        /// The parents without a measurement of their own.
        parents: Vec<CommitId>,
    },
    /// A parent outside the path limits shows the change: the limits must go.
    DropPaths(CommitId),
    /// Culprit and parents are measured afresh.
    Confirm {
        /// The suspected culprit.
        culprit: CommitId,
        /// Its parents.
        parents: Vec<CommitId>,
    },
    /// Good, bad and the reverted kernel are measured in blocks.
    Revert,
    /// Nothing is left to measure: the end can be told.
    Over(Over),
}

/// How the measuring ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    /// No difference between the endpoints.
    NoDifference,
    /// The other sign.
    OppositeSign,
    /// This merge base shows the change itself.
    MergeBaseChanged(CommitId),
    /// This merge base cannot be judged.
    MergeBaseUnknown(CommitId),
    /// Confirmed culprit.
    Culprit(CommitId),
    /// These cannot be told apart.
    Set(Vec<CommitId>),
    /// Confirmation failed again and again.
    Unconfirmed(Vec<CommitId>),
    /// A bad ancestor of a good commit leaves no edge to name.
    NotMonotonic,
    /// The revert conflicts, or changes nothing (see the plan).
    RevertUnmade,
    /// The reverted kernel cannot be measured.
    RevertUntestable,
    /// The blocks are complete.
    RevertMeasured,
}

/// Failed confirmations after which a set is reported instead of searching on.
pub(super) const MAX_CONFIRMATIONS: u32 = 3;

/// What is known of each node of the graph.
pub fn knowledge(dag: &Dag, state: &State) -> Knowledge {
    let mut knowledge = Knowledge::of_endpoints(dag);
    let mut set = |commit: &CommitId, known: Known| {
        if let Some(at) = dag.index(commit) {
            knowledge.0[at] = known;
        }
    };
    for commit in &state.plan.skipped {
        set(commit, Known::LeftOut);
    }
    for (commit, known) in &state.commits {
        if known.untestable.is_some() {
            set(commit, Known::Untestable);
        } else if let Some((verdict, _)) = &known.verdict {
            match verdict {
                Verdict::Baseline => set(commit, Known::Good),
                Verdict::Regressed => set(commit, Known::Bad),
                Verdict::Undecided if is_given_up(state, known.looks) => set(commit, Known::Untestable),
                Verdict::Undecided => {}
            }
        }
    }
    set(&state.plan.good.commit, Known::Good);
    set(&state.plan.bad.commit, Known::Bad);
    knowledge
}

/// Whether a kernel has had all the boots that an undecided one gets.
pub(super) fn is_given_up(state: &State, looks: u32) -> bool {
    let judging = &state.plan.recipe.judging;
    looks * judging.boots >= judging.max_boots
}

/// The phase.
pub fn phase(dag: &Dag, state: &State) -> Phase {
    match &state.plan.purpose {
        Purpose::RevertTest { .. } => revert_phase(state),
        Purpose::Bisect => match state.endpoints.as_ref().map(|e| e.outcome) {
            None | Some(EndpointOutcome::Undecided) => Phase::Endpoints,
            Some(EndpointOutcome::NoDifference) => Phase::Over(Over::NoDifference),
            Some(EndpointOutcome::OppositeSign) => Phase::Over(Over::OppositeSign),
            Some(EndpointOutcome::Change(_)) => {
                merge_base_phase(state).unwrap_or_else(|| search_phase(dag, state))
            }
        },
    }
}

fn revert_phase(state: &State) -> Phase {
    let Some(reverted) = state.reverted() else { return Phase::Over(Over::RevertUnmade) };
    if state.commit(reverted).is_some_and(|c| c.untestable.is_some()) {
        return Phase::Over(Over::RevertUntestable);
    }
    match state.endpoints.as_ref().map(|e| e.outcome) {
        None | Some(EndpointOutcome::Undecided) => Phase::Revert,
        Some(EndpointOutcome::NoDifference) => Phase::Over(Over::NoDifference),
        Some(EndpointOutcome::OppositeSign) => Phase::Over(Over::OppositeSign),
        Some(EndpointOutcome::Change(_)) => Phase::Over(Over::RevertMeasured),
    }
}

fn merge_base_phase(state: &State) -> Option<Phase> {
    let mut waiting = Vec::new();
    for base in &state.plan.merge_bases {
        let known = state.commit(base);
        match known.and_then(|k| k.verdict.as_ref()).map(|(verdict, _)| *verdict) {
            Some(Verdict::Baseline) => {}
            Some(Verdict::Regressed) => return Some(Phase::Over(Over::MergeBaseChanged(base.clone()))),
            Some(Verdict::Undecided) if is_given_up(state, known.map_or(0, |k| k.looks)) => {
                return Some(Phase::Over(Over::MergeBaseUnknown(base.clone())));
            }
            Some(Verdict::Undecided) | None => waiting.push(base.clone()),
        }
    }
    if waiting.is_empty() { None } else { Some(Phase::MergeBases(waiting)) }
}

fn search_phase(dag: &Dag, state: &State) -> Phase {
    let id = |at: usize| dag.nodes()[at].commit.clone();
    let ids = |nodes: Vec<usize>| nodes.into_iter().map(id).collect::<Vec<_>>();
    let knowledge = knowledge(dag, state);
    let Some(remaining) = knowledge.remaining(dag) else { return Phase::Over(Over::NotMonotonic) };
    let limited = !state.plan.paths.is_empty() && state.paths_dropped.is_none();
    if limited && let Some(at) = beside_the_paths(dag, &knowledge, &remaining) {
        return Phase::DropPaths(id(at));
    }
    match search::next(dag, &knowledge, &remaining, limited) {
        Next::Measure(at) => Phase::Candidate(id(at)),
        Next::MeasureParents(parents) => Phase::Parents { of: id(remaining.tip), parents: ids(parents) },
        Next::Set(nodes) => Phase::Over(Over::Set(ids(nodes))),
        Next::Contradiction => Phase::Over(Over::NotMonotonic),
        Next::Culprit(at) => {
            let (culprit, parents) = (id(at), ids(dag.nodes()[at].parents.clone()));
            match &state.confirmation {
                Some(done) if done.culprit == culprit && matches!(done.result, Some((true, _))) => {
                    Phase::Over(Over::Culprit(culprit))
                }
                Some(failed) if failed.stage >= MAX_CONFIRMATIONS && failed.result.is_some() => {
                    Phase::Over(Over::Unconfirmed(std::iter::once(culprit).chain(parents).collect()))
                }
                Some(_) | None => Phase::Confirm { culprit, parents },
            }
        }
    }
}

/// The tip, when it was measured bad although the path limits leave it out: the culprit need not touch them.
fn beside_the_paths(dag: &Dag, knowledge: &Knowledge, remaining: &Remaining) -> Option<usize> {
    let tip = remaining.tip;
    let is_endpoint = tip + 1 == dag.len();
    (!is_endpoint && !dag.nodes()[tip].on_path && knowledge.0[tip] == Known::Bad).then_some(tip)
}
