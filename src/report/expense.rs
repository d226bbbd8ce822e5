//! What a session spent, beside what halving with a fixed number of boots would have.

use crate::session::{Planner, Purpose, State};
use crate::stats::median;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

/// Expense.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpentFacts {
    /// Builds (no cache hits).
    pub builds: u64,
    /// Boots.
    pub boots: u64,
    /// Runs, warm-up included.
    pub runs: u64,
    /// Seconds of work.
    pub seconds: f64,
    /// Of these, seconds in which something was built.
    pub build_seconds: f64,
    /// Seconds of the SUTs in boots and runs that came to something; machines that work at once add up.
    pub sut_seconds: f64,
    /// What halving would have spent; `null` where nothing was searched.
    pub halving: Option<HalvingFacts>,
}

/// Halving as `git bisect run` does it, each kernel judged by a fixed number of boots against the middle between the
/// endpoints: as many as make every step right with the confidence that was asked, had the noise been known beforehand.
/// It confirms nothing, follows no drift and knows no untestable commit: the least that it would have cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HalvingFacts {
    /// Kernels: endpoints, and log2 of the range.
    pub kernels: u64,
    /// Boots of each.
    pub boots: u64,
    /// Runs of each boot: as many as this session took, by the median.
    pub runs: u64,
    /// Seconds, by what builds, boots and runs took here.
    pub seconds: f64,
}

impl SpentFacts {
    /// What a session spent.
    pub(super) fn of(state: &State, planner: Option<&Planner>) -> Self {
        let spent = &state.spent;
        let took = &state.took;
        Self {
            builds: spent.builds,
            boots: spent.boots,
            runs: spent.runs,
            seconds: spent.seconds,
            build_seconds: took.builds.iter().sum::<f64>() + 0.0,
            sut_seconds: took.boots.iter().chain(&took.runs).sum::<f64>() + 0.0,
            halving: planner.and_then(|planner| halving(state, planner)),
        }
    }
}

fn halving(state: &State, planner: &Planner) -> Option<HalvingFacts> {
    let belief = planner.engine().belief();
    belief.grid()?;
    if state.plan.purpose != Purpose::Bisect || state.endpoints.is_none() {
        return None;
    }
    let runs = state.searched().map(|b| b.runs.len().saturating_sub(state.warmup(b))).filter(|n| *n > 0);
    let runs = median(&runs.map(|n| n as f64).collect::<Vec<f64>>()).round().max(1.0);
    let levels = belief.levels(belief.leader());
    let steps = (state.plan.candidates.max(1) as f64).log2().ceil();
    let boots = boots_for(
        levels.boot + levels.build + levels.run_variance / runs,
        (levels.bad.mean - levels.good.mean).abs(),
        (1.0 - state.plan.recipe.confidence) / steps.max(1.0),
    )?;
    let costs = planner.costs(state);
    // The first build compiles everything, whoever asks for it.
    let first = state.took.builds.first().map_or(0.0, |first| (first - costs.build).max(0.0));
    let seconds = first + (steps + 2.0) * (costs.build + boots * (costs.boot + runs * costs.run));
    Some(HalvingFacts { kernels: steps as u64 + 2, boots: boots as u64, runs: runs as u64, seconds })
}

/// Boots whose mean falls on the right side of the middle between two levels that are `gap` apart, but for `error`:
/// `variance (2 z / gap)^2` with the normal quantile z. `None` where there is no gap.
fn boots_for(variance: f64, gap: f64, error: f64) -> Option<f64> {
    /// Nobody takes more; a noise that asks for it makes halving hopeless.
    const MOST: f64 = 1e4;
    let z = Normal::standard().inverse_cdf(1.0 - error.clamp(1e-12, 0.5));
    let boots = (variance * (2.0 * z / gap).powi(2)).ceil();
    boots.is_finite().then(|| boots.clamp(1.0, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boots_of_halving_grow_with_the_noise_and_the_certainty() {
        // z(0.999) = 3.09: a change of one sd asks for (2 z)^2 = 38.2 boots.
        assert_eq!(boots_for(1.0, 1.0, 1e-3), Some(39.0));
        assert_eq!(boots_for(1.0, 8.0, 1e-3), Some(1.0));
        assert_eq!(boots_for(4.0, 1.0, 1e-3), Some(153.0));
        assert_eq!(boots_for(1.0, 0.0, 1e-3), None);
    }
}
