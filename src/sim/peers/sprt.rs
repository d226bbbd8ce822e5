//! `git bisect` with a sequential test at each commit.

use super::super::{Found, Kind, Lab, MAX_RUNS, World};
use super::{ends, mean, middle, range};

/// Boots of each end that fix both levels and the noise.
const BOOTS: u32 = 10;

/// Error allowed to the whole search, shared equally by its steps.
const DELTA: f64 = 0.01;

/// Boots of one commit after which the likelier side is taken.
const MAX_BOOTS: u32 = 600;

/// Source of the rule: Wald, Sequential Tests of Statistical Hypotheses (1945): fresh boots until the likelihood ratio
/// between the two levels leaves `((a / (1 - a)), ((1 - a) / a))`, with levels and variance as estimated from ten boots
/// of each end, and `a` the error of one step.
pub fn search(world: &World) -> Found {
    let mut lab = Lab::new(world);
    let (good, bad) = ends(world, &mut lab, BOOTS);
    let variance = f64::midpoint(variance(&good), variance(&bad));
    let difference = mean(&bad) - mean(&good);
    let (middle, _) = middle(&good, &bad);
    let steps = (world.graph().candidates().len().max(2) as f64).log2().ceil();
    let error = DELTA / steps;
    let bound = ((1.0 - error) / error).ln();
    let suspects = range::halve(world, &mut lab, |lab, node| {
        let (mut ratio, mut boots) = (0.0_f64, 0);
        while ratio.abs() < bound && boots < MAX_BOOTS {
            ratio += difference / variance * (lab.measure(node) - middle);
            boots += 1;
        }
        (lab.runs() <= MAX_RUNS).then_some(ratio > 0.0)
    });
    match suspects {
        Some(suspects) => Found::culprits(&lab, vec![suspects], 1.0 - DELTA),
        None => Found::without(&lab, Kind::GaveUp, f64::NAN),
    }
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}
