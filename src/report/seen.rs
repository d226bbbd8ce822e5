//! What else the endpoints' runs measured, beside the judged metric.
//!
//! Medians and their change, for a reader who wants to know whether latency moved with throughput. Nothing is judged:
//! there is no interval, and nothing of the search or of a verdict rests on it.

use crate::model::{CommitId, Direction};
use crate::session::State;
use crate::stats::median;
use crate::workload::declared_of;
use serde::Serialize;
use std::collections::BTreeSet;

/// A metric that was recorded and not judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeenFacts {
    /// Its name.
    pub metric: String,
    /// Its unit, as far as parser or profile say; else empty.
    pub unit: String,
    /// Which way is better, likewise.
    pub direction: Option<Direction>,
    /// Median of good's counted runs.
    pub good: f64,
    /// Median of bad's.
    pub bad: f64,
    /// bad / good - 1, a plain fraction: positive = more, which need not be worse. `null` where good is 0.
    pub change: Option<f64>,
    /// Counted runs of both that had it.
    pub runs: usize,
}

impl SeenFacts {
    /// "latency_avg_ms 1.2 to 1.4 ms (+16.7 %), lower is better".
    pub fn words(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let change = self.change.map_or(String::new(), |change| format!(" ({:+.1} %)", change * 100.0));
        let better = self.direction.map_or(String::new(), |direction| format!(", {direction}"));
        format!("{} {} to {}{unit}{change}{better}", self.metric, figure(self.good), figure(self.bad))
    }
}

/// Some five digits: more would be noise.
fn figure(value: f64) -> String {
    let decimals = if value.abs() >= 1000.0 { 0 } else { 3 };
    let text = format!("{value:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// All of them that both endpoints had, the largest change first.
pub(super) fn seen(state: &State) -> Vec<SeenFacts> {
    let plan = &state.plan;
    let judged = plan.recipe.metric.name.as_str();
    let (good, bad) = (&plan.good.commit, &plan.bad.commit);
    let names: BTreeSet<&String> =
        state.searched().flat_map(|b| &b.runs).flat_map(|run| run.metrics.keys()).collect();
    let mut seen = Vec::new();
    for name in names.into_iter().filter(|name| *name != judged) {
        let (at_good, at_bad) = (values(state, good, name), values(state, bad, name));
        if at_good.is_empty() || at_bad.is_empty() {
            continue;
        }
        let runs = at_good.len() + at_bad.len();
        let (good, bad) = (median(&at_good), median(&at_bad));
        let change = Some(bad / good - 1.0).filter(|change| change.is_finite());
        let (unit, direction) = declared_of(&plan.recipe.reading, &plan.recipe.machine, name);
        seen.push(SeenFacts { metric: name.clone(), unit, direction, good, bad, change, runs });
    }
    let size = |facts: &SeenFacts| facts.change.map_or(0.0, f64::abs);
    seen.sort_by(|a, b| size(b).total_cmp(&size(a)));
    seen
}

/// Counted runs only: warm-up is not measured.
pub(super) fn values(state: &State, commit: &CommitId, name: &str) -> Vec<f64> {
    let boots = state.searched().filter(|b| b.commit == *commit);
    let runs = boots.flat_map(|b| b.runs.iter().skip(state.warmup(b)));
    runs.filter_map(|run| run.metrics.get(name)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_with_its_sign_and_what_is_better() {
        let facts = SeenFacts {
            metric: "latency_avg_ms".to_owned(),
            unit: "ms".to_owned(),
            direction: Some(Direction::Lower),
            good: 1.2,
            bad: 1.4,
            change: Some(1.4 / 1.2 - 1.0),
            runs: 12,
        };
        assert_eq!(facts.words(), "latency_avg_ms 1.2 to 1.4 ms (+16.7 %), lower is better");
        let plain = SeenFacts {
            unit: String::new(),
            direction: None,
            good: 0.0,
            bad: 12345.6,
            change: None,
            ..facts
        };
        assert_eq!(plain.words(), "latency_avg_ms 0 to 12346");
    }
}
