//! `git bisect`: the range that is left, and which commit halves it.

use super::super::{Lab, World};
use super::nearest;

/// Suspects counted for the weights; more are sampled.
const SAMPLES: usize = 1024;

/// Halves until nothing more can be separated. `slow` tells the side of a node that builds, or `None` to give up. On a
/// line the middle, or the nearest to it that builds; on a graph the commit with the largest `min(w, n - w)`, `w` the
/// suspects among itself and its ancestors (git's rule). Gives the suspects that are left.
pub(super) fn halve(
    world: &World,
    lab: &mut Lab,
    mut slow: impl FnMut(&mut Lab, usize) -> Option<bool>,
) -> Option<Vec<usize>> {
    if world.graph().is_line() { line(world, lab, &mut slow) } else { graph(world, lab, &mut slow) }
}

type Test<'t> = &'t mut dyn FnMut(&mut Lab, usize) -> Option<bool>;

fn line(world: &World, lab: &mut Lab, slow: Test) -> Option<Vec<usize>> {
    let (mut good, mut bad) = (world.graph().good(), world.graph().tip());
    while bad - good > 1 {
        let Some(node) = nearest(lab, usize::midpoint(good, bad), good, bad) else { break };
        if slow(lab, node)? {
            bad = node;
        } else {
            good = node;
        }
    }
    Some((good + 1..=bad).collect())
}

fn graph(world: &World, lab: &mut Lab, slow: Test) -> Option<Vec<usize>> {
    let graph = world.graph();
    let mut suspects = graph.candidates().to_vec();
    while suspects.len() > 1 {
        let Some(node) = best_that_builds(world, lab, &suspects) else { break };
        let inside = graph.ancestors(node);
        let keep = slow(lab, node)?;
        suspects.retain(|&suspect| inside[suspect as usize] == keep);
    }
    Some(suspects.into_iter().map(|node| node as usize).collect())
}

fn best_that_builds(world: &World, lab: &mut Lab, suspects: &[u32]) -> Option<usize> {
    let ones = vec![1.0; suspects.len()];
    let shares = world.graph().shares(suspects, &ones, suspects.len().min(SAMPLES));
    // The last suspect is known to be bad.
    let mut order: Vec<usize> = (0..suspects.len() - 1).collect();
    let balance = |at: usize| shares[at].min(1.0 - shares[at]);
    order.sort_by(|&a, &b| balance(b).total_cmp(&balance(a)).then(a.cmp(&b)));
    order.into_iter().map(|at| suspects[at] as usize).find(|&node| lab.build(node))
}
