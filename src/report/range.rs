//! The range as a whole: its commits, and the machine's level over the time of the session.

use crate::model::CommitId;
use crate::search::Dag;
use crate::session::{Planner, Purpose, State};
use serde::Serialize;

/// Commits that are listed.
const LISTED: usize = 2000;

/// A commit of the range.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RangeCommit {
    /// It.
    pub commit: CommitId,
    /// Its subject.
    pub subject: String,
    /// Its place in the order of the history, from 0.
    pub position: usize,
    /// Probability of being the culprit, in [0, 1]; of a session that is over, after all that was measured.
    pub probability: f64,
}

/// How the machine's level moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriftFacts {
    /// At each counted run in the order they were taken: by how much all kernels were then worse than in the middle of the
    /// session, as a fraction.
    pub path: Vec<f64>,
}

/// The commits of a bisection.
pub(super) fn range_commits(dag: &Dag, state: &State, planner: &Planner) -> Vec<RangeCommit> {
    if state.plan.purpose != Purpose::Bisect {
        return Vec::new();
    }
    let mass = planner.engine().belief().by_node();
    let mut nodes: Vec<usize> = (0..dag.len()).collect();
    if nodes.len() > LISTED {
        let looked = |at: usize| state.commit(&dag.nodes()[at].commit).is_some();
        nodes.sort_by(|&a, &b| looked(b).cmp(&looked(a)).then(mass[b].total_cmp(&mass[a])).then(a.cmp(&b)));
        nodes.truncate(LISTED);
        nodes.sort_unstable();
    }
    let told = |position: usize| {
        let node = &dag.nodes()[position];
        RangeCommit {
            commit: node.commit.clone(),
            subject: node.subject.clone(),
            position,
            probability: mass[position],
        }
    };
    nodes.into_iter().map(told).collect()
}

/// The drift that was taken out; `None` where there was none.
pub(super) fn drift(planner: &Planner) -> Option<DriftFacts> {
    let engine = planner.engine();
    engine.belief().grid()?;
    let drift = engine.drift();
    (drift.step > 0.0).then(|| DriftFacts { path: drift.path.iter().map(|log| log.exp_m1()).collect() })
}
