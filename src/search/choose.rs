//! Halving the suspects, away from what cannot be measured.
//!
//! A candidate's worth is the information its verdict carries, `H(w / n)` bits for a commit with `w` of `n` suspects
//! among itself and its ancestors (every suspect equally likely), times the chance that it can be measured at all.
//! That chance is learnt from the neighbourhood: commits near untestable ones are likely to be untestable too.

use super::{Dag, Knowledge, Known, Remaining};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Suspects whose ancestors are counted at once for the weights; more are sampled at even steps.
const SAMPLES: usize = 4096;

/// A priori, how many of a hundred kernels build and boot: one pseudo-observation with this chance.
const TESTABLE_PRIOR: f64 = 0.9;

/// The smallest chance given to a candidate, so that among hopeless ones the halving still decides.
const TESTABLE_FLOOR: f64 = 0.01;

/// Length of a step across a fork or a merge, in steps along a line.
const FORK: usize = 64;

/// Untestable suspects after which a stretch may be given up as a set ...
const GIVE_UP_AFTER: usize = 6;

/// ... if no open suspect has at least this chance of being measurable.
const GIVE_UP_BELOW: f64 = 0.15;

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Measure this node: it halves the suspects.
    Measure(usize),
    /// The only suspect that can be measured is the tip; these parents of it were never measured themselves.
    MeasureParents(Vec<usize>),
    /// The tip is the culprit and each parent is measured good.
    Culprit(usize),
    /// These are left and none of the others can be measured; the tip is among them.
    Set(Vec<usize>),
    /// A parent of the tip is bad although a descendant of that parent is good: the tip only inherits the change, and
    /// no single step explains what was measured.
    Contradiction,
}

/// The choice. `limited`: only nodes on the path limits are halved among (the parents of what is found are still
/// measured, whatever they touch).
pub fn next(dag: &Dag, knowledge: &Knowledge, remaining: &Remaining, limited: bool) -> Next {
    let tip = remaining.tip;
    let counts = |at: usize| !limited || dag.nodes()[at].on_path || at == tip;
    let halved: Vec<usize> = remaining.iter().filter(|&at| counts(at)).collect();
    let open: Vec<usize> = halved.iter().copied().filter(|&at| knowledge.0[at] == Known::Nothing).collect();
    let failed = halved.iter().filter(|&&at| knowledge.0[at] == Known::Untestable).count();
    let chance = testable(dag, knowledge);
    let hopeless = failed >= GIVE_UP_AFTER && open.iter().all(|&at| chance[at] < GIVE_UP_BELOW);
    if !open.is_empty() && !hopeless {
        return Next::Measure(best(dag, &chance, &halved, &open));
    }
    if halved.len() > 1 {
        return Next::Set(remaining.iter().collect());
    }
    let parents = &dag.nodes()[tip].parents;
    let unmeasured: Vec<usize> = parents
        .iter()
        .copied()
        .filter(|&p| matches!(knowledge.0[p], Known::Nothing | Known::Assumed))
        .collect();
    if !unmeasured.is_empty() {
        return Next::MeasureParents(unmeasured);
    }
    if parents.iter().all(|&p| knowledge.0[p] == Known::Good) {
        return Next::Culprit(tip);
    }
    // A bad parent would be a suspect itself, had no good commit cleared it.
    if parents.iter().any(|&p| knowledge.0[p] == Known::Bad) {
        return Next::Contradiction;
    }
    Next::Set(remaining.iter().chain(parents.iter().copied().filter(|&p| !remaining.suspects[p])).collect())
}

fn best(dag: &Dag, chance: &[f64], halved: &[usize], open: &[usize]) -> usize {
    let share = shares(dag, halved);
    let worth = |at: usize| entropy(share[at]) * chance[at];
    // The first of the best: ties go to the older commit, so that the choice is the same everywhere.
    open.iter().copied().fold(open[0], |best, at| if worth(at) > worth(best) { at } else { best })
}

/// For each node, the share of the suspects `halved` among itself and its ancestors; in `[0, 1]`, exact up to
/// [`SAMPLES`] suspects.
fn shares(dag: &Dag, halved: &[usize]) -> Vec<f64> {
    let samples = halved.len().min(SAMPLES);
    let words = samples.div_ceil(64);
    let mut bits = vec![0u64; words * dag.len()];
    for sample in 0..samples {
        let at = halved[sample * halved.len() / samples];
        bits[at * words + sample / 64] |= 1 << (sample % 64);
    }
    let mut share = vec![0.0; dag.len()];
    for at in 0..dag.len() {
        for &parent in &dag.nodes()[at].parents {
            let (earlier, own) = bits.split_at_mut(at * words);
            for (word, inherited) in own[..words].iter_mut().zip(&earlier[parent * words..][..words]) {
                *word |= inherited;
            }
        }
        let count: u32 = bits[at * words..][..words].iter().map(|w| w.count_ones()).sum();
        share[at] = f64::from(count) / samples as f64;
    }
    share
}

/// Entropy of a yes-or-no answer, in bits; 0 at p = 0 and 1.
fn entropy(p: f64) -> f64 {
    let term = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
    term(p) + term(1.0 - p)
}

/// For each node the chance that it can be measured: observations (measured or untestable) weighted by their
/// nearness, `1 / (1 + log2(1 + distance))`, with one prior observation. The logarithm, since breakage comes in
/// stretches of unknown length: failures must be left in growing strides.
fn testable(dag: &Dag, knowledge: &Knowledge) -> Vec<f64> {
    let failures = knowledge.0.iter().filter(|&&k| k == Known::Untestable).count();
    if failures == 0 {
        return vec![1.0; dag.len()];
    }
    let children = dag.children();
    let mut good = vec![TESTABLE_PRIOR; dag.len()];
    let mut all = vec![1.0; dag.len()];
    for observed in
        (0..dag.len()).filter(|&at| knowledge.0[at] != Known::Nothing && !dag.nodes()[at].boundary)
    {
        let failed = knowledge.0[observed] == Known::Untestable;
        // A failure says the more, the more there were.
        let weight = if failed { 2.0 * failures as f64 } else { 1.0 };
        for (at, distance) in distances(dag, &children, observed).into_iter().enumerate() {
            let nearness = weight / (1.0 + (1.0 + distance as f64).log2());
            all[at] += nearness;
            good[at] += if failed { 0.0 } else { nearness };
        }
    }
    good.iter().zip(&all).map(|(g, a)| (g / a).max(TESTABLE_FLOOR)).collect()
}

/// Length of the way from `from` to each node along parents and children (`usize::MAX` where there is none). A step
/// within one line of development is 1; a step across a fork or a merge is [`FORK`], since what is broken on a branch
/// says little of what is beside it.
fn distances(dag: &Dag, children: &[Vec<usize>], from: usize) -> Vec<usize> {
    let edge = |parent: usize, child: usize| {
        let straight = children[parent].len() == 1 && dag.nodes()[child].parents.len() == 1;
        if straight { 1 } else { FORK }
    };
    let mut distance = vec![usize::MAX; dag.len()];
    distance[from] = 0;
    let mut queue = BinaryHeap::from([Reverse((0, from))]);
    while let Some(Reverse((so_far, at))) = queue.pop() {
        if so_far > distance[at] {
            continue;
        }
        let up = dag.nodes()[at].parents.iter().map(|&parent| (parent, edge(parent, at)));
        let down = children[at].iter().map(|&child| (child, edge(at, child)));
        for (near, length) in up.chain(down) {
            if so_far + length < distance[near] {
                distance[near] = so_far + length;
                queue.push(Reverse((so_far + length, near)));
            }
        }
    }
    distance
}

#[cfg(test)]
mod tests;
