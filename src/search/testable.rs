//! The chance that a commit can be measured at all, learnt from its neighbourhood: commits near untestable ones are
//! likely to be untestable too.

use super::graph::Graph;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A priori, how many of a hundred kernels build and boot: one pseudo-observation with this chance.
const PRIOR: f64 = 0.9;

/// The smallest chance given to a candidate, so that among hopeless ones the rest still decides.
const FLOOR: f64 = 0.01;

/// Length of a step across a fork or a merge, in steps along a line.
const FORK: usize = 64;

/// What was tried, by nearness to each node: `1 / (1 + log2(1 + distance))`. The logarithm, since breakage comes in
/// stretches of unknown length: failures must be left in growing strides.
#[derive(Debug, Clone, Default)]
pub struct Testable {
    tried: Vec<(usize, bool)>,
    /// Observations already in the sums; none until the first failure.
    summed: usize,
    failures: usize,
    near_good: Vec<f64>,
    near_failed: Vec<f64>,
}

impl Testable {
    /// Nothing tried.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in that a node could be measured, or not.
    pub fn observe(&mut self, node: usize, failed: bool) {
        self.tried.push((node, failed));
        self.failures += usize::from(failed);
    }

    /// How many nodes failed.
    pub fn failures(&self) -> usize {
        self.failures
    }

    /// Brings the sums up to date. As long as nothing failed there is nothing to sum.
    pub fn settle(&mut self, graph: &Graph) {
        if self.failures == 0 {
            return;
        }
        if self.near_good.is_empty() {
            self.near_good = vec![0.0; graph.len()];
            self.near_failed = vec![0.0; graph.len()];
        }
        while let Some(&(node, failed)) = self.tried.get(self.summed) {
            let sums = if failed { &mut self.near_failed } else { &mut self.near_good };
            for (sum, distance) in sums.iter_mut().zip(distances(graph, node)) {
                *sum += 1.0 / (1.0 + (1.0 + distance as f64).log2());
            }
            self.summed += 1;
        }
    }

    /// The chance of a node, in `[FLOOR, 1]`; after [`Testable::settle`]. A failure says the more, the more there were.
    pub fn chance(&self, node: usize) -> f64 {
        if self.failures == 0 {
            return 1.0;
        }
        let failed = 2.0 * self.failures as f64 * self.near_failed[node];
        let good = self.near_good[node];
        ((PRIOR + good) / (1.0 + good + failed)).max(FLOOR)
    }
}

/// Length of the way from `from` to each node along parents and children (`usize::MAX` where there is none). A step
/// within one line of development is 1; a step across a fork or a merge is [`FORK`], since what is broken on a branch
/// says little of what is beside it.
fn distances(graph: &Graph, from: usize) -> Vec<usize> {
    let edge = |parent: usize, child: usize| if graph.is_straight(parent, child) { 1 } else { FORK };
    let mut distance = vec![usize::MAX; graph.len()];
    distance[from] = 0;
    let mut queue = BinaryHeap::from([Reverse((0, from))]);
    while let Some(Reverse((so_far, at))) = queue.pop() {
        if so_far > distance[at] {
            continue;
        }
        let up = graph.parents(at).map(|parent| (parent, edge(parent, at)));
        let down = graph.children(at).map(|child| (child, edge(at, child)));
        for (near, length) in up.chain(down) {
            if so_far + length < distance[near] {
                distance[near] = so_far + length;
                queue.push(Reverse((so_far + length, near)));
            }
        }
    }
    distance
}
