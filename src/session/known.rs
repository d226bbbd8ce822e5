//! What the verdicts of a session say of the graph.

use super::state::State;
use crate::model::{CommitId, Verdict};
use crate::search::{Dag, Knowledge, Known};

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
                Verdict::Undecided => {}
            }
        }
    }
    set(&state.plan.good.commit, Known::Good);
    set(&state.plan.bad.commit, Known::Bad);
    knowledge
}
