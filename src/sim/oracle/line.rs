//! Belief on a line: between measured commits all are alike.

use super::{Belief, CONFIDENCE, SHARES, Site};
use crate::sim::Lab;
use std::collections::{BTreeMap, BTreeSet};

/// Log likelihood ratios of measured commits; the ends count as measured.
pub(super) struct Line {
    ratio: BTreeMap<usize, f64>,
    /// Stretches (after, up to) in which nothing builds.
    closed: BTreeSet<(usize, usize)>,
    /// Kept in step with `ratio`.
    stretches: Vec<Stretch>,
}

/// The culprit is after `low` and at most `high`, both measured and neighbours.
struct Stretch {
    low: usize,
    high: usize,
    mass: f64,
    /// Probability that the culprit is at or before `low`.
    before: f64,
}

impl Line {
    pub fn new(tip: usize) -> Self {
        let ratio = BTreeMap::from([(0, 0.0), (tip, 0.0)]);
        let mut line = Self { ratio, closed: BTreeSet::new(), stretches: Vec::new() };
        line.weigh();
        line
    }

    fn weigh(&mut self) {
        let nodes: Vec<(usize, f64)> = self.ratio.iter().map(|(&node, &ratio)| (node, ratio)).collect();
        // For the culprit in stretch j, the commits after j are bad: a sum from the right.
        let mut bad = 0.0;
        let mut logs: Vec<f64> = nodes
            .iter()
            .rev()
            .map(|(_, ratio)| {
                bad += ratio;
                bad
            })
            .collect();
        logs.pop();
        logs.reverse();
        let mut masses: Vec<f64> = logs;
        for (pair, log) in nodes.windows(2).zip(&mut masses) {
            *log += ((pair[1].0 - pair[0].0) as f64).ln();
        }
        let highest = masses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        masses.iter_mut().for_each(|log| *log = (*log - highest).exp());
        let whole: f64 = masses.iter().sum();
        let mut before = 0.0;
        self.stretches.clear();
        for (pair, mass) in nodes.windows(2).zip(masses) {
            self.stretches.push(Stretch { low: pair[0].0, high: pair[1].0, mass: mass / whole, before });
            before += mass / whole;
        }
    }
}

impl Belief for Line {
    fn learn(&mut self, node: usize, log_ratio: f64) {
        *self.ratio.entry(node).or_insert(0.0) += log_ratio;
        self.weigh();
    }

    fn measured(&self) -> Vec<Site> {
        self.stretches.iter().skip(1).map(|s| Site { node: s.low, bad: s.before }).collect()
    }

    fn sites(&self) -> Vec<Site> {
        let mut sites: Vec<Site> = Vec::new();
        for share in SHARES {
            let within = self.stretches.iter().find(|s| s.before + s.mass >= share);
            let Some(s) = within.or(self.stretches.last()) else { continue };
            let length = s.high - s.low;
            if length < 2 || self.closed.contains(&(s.low, s.high)) {
                continue;
            }
            let steps = ((share - s.before) / s.mass.max(1e-12) * length as f64).round();
            let node = (s.low + steps.max(0.0) as usize).clamp(s.low + 1, s.high - 1);
            let bad = s.before + s.mass * (node - s.low) as f64 / length as f64;
            if sites.iter().all(|site| site.node != node) {
                sites.push(Site { node, bad });
            }
        }
        sites
    }

    fn build(&mut self, lab: &mut Lab, site: Site) -> Option<usize> {
        let s = self.stretches.iter().find(|s| s.low < site.node && site.node < s.high)?;
        let node = super::super::peers::nearest(lab, site.node, s.low, s.high);
        if node.is_none() {
            self.closed.insert((s.low, s.high));
        }
        node
    }

    fn answer(&self) -> Option<(Vec<usize>, f64)> {
        let s = self.stretches.iter().max_by(|a, b| a.mass.total_cmp(&b.mass))?;
        let settled = s.high - s.low == 1 || self.closed.contains(&(s.low, s.high));
        (s.mass >= CONFIDENCE && settled).then(|| ((s.low + 1..=s.high).collect(), s.mass))
    }
}
