//! What others do, by the rules that they state, on the same machine.
//!
//! They are told which end is slow and get some boots of both ends first. Rules, not code: each file names its source.

pub mod bayesect;
mod compare;
pub mod halving;
pub mod pinpoint;
mod range;
pub mod sprt;

use super::{Lab, World};

/// Boots of each end that fix the middle.
const END_BOOTS: u32 = 5;

/// Interleaved boots of both ends, one run each: good, bad.
fn ends(world: &World, lab: &mut Lab, boots: u32) -> (Vec<f64>, Vec<f64>) {
    let graph = world.graph();
    (0..boots).map(|_| (lab.measure(graph.good()), lab.measure(graph.tip()))).unzip()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The middle between the ends, and whether bad is the higher side.
fn middle(good: &[f64], bad: &[f64]) -> (f64, bool) {
    let (good, bad) = (mean(good), mean(bad));
    (f64::midpoint(good, bad), bad > good)
}

/// The node nearest to `near`, strictly between `low` and `high` on a line, that builds: later before earlier at the
/// same distance.
pub(super) fn nearest(lab: &mut Lab, near: usize, low: usize, high: usize) -> Option<usize> {
    for distance in 0..high - low {
        let around = [Some(near + distance), near.checked_sub(distance)];
        for node in around.into_iter().flatten() {
            if low < node && node < high && lab.build(node) {
                return Some(node);
            }
        }
    }
    None
}
