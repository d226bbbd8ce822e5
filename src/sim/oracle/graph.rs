//! Belief on a graph: each candidate has its weight.

use super::{Belief, CONFIDENCE, SHARES, Site};
use crate::sim::{Graph, Lab, World};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Draws of the culprit by which the probability that a commit is bad is estimated for all commits at once.
const SAMPLES: usize = 512;

/// A measured commit this unlikely to be on its other side is settled: the culprit is sought on its side only.
const SETTLED: f64 = 1e-6;

/// Two groups of suspects are told apart by a commit that is bad with a probability this far from 0 and 1.
const APART: f64 = 0.005;

/// Commits near a wanted probability by the sample that are weighed exactly.
const EXACT: usize = 4;

pub(super) struct Net {
    graph: Arc<Graph>,
    /// Suspects that are left, ascending; closed under "between".
    region: Vec<u32>,
    /// Their probabilities.
    weight: Vec<f64>,
    measured: BTreeMap<usize, Measured>,
    /// Commits that do not build.
    broken: Vec<bool>,
}

struct Measured {
    /// Marks of it and its ancestors.
    inside: Vec<bool>,
    bad: f64,
}

impl Net {
    pub fn new(world: &World) -> Self {
        let graph = Arc::clone(world.graph());
        let region = graph.candidates().to_vec();
        let weight = vec![1.0 / region.len() as f64; region.len()];
        let broken = vec![false; graph.len()];
        Self { graph, region, weight, measured: BTreeMap::new(), broken }
    }

    /// Leaves out suspects on the wrong side of a settled commit, and normalises.
    fn settle(&mut self) {
        let settled: Vec<(&Vec<bool>, bool)> = self
            .measured
            .values()
            .filter(|m| !(SETTLED..1.0 - SETTLED).contains(&m.bad))
            .map(|m| (&m.inside, m.bad > 0.5))
            .collect();
        let keeps = |node: u32| settled.iter().all(|(inside, bad)| inside[node as usize] == *bad);
        let (region, weight) = self.region.iter().zip(&self.weight).filter(|(node, _)| keeps(**node)).unzip();
        (self.region, self.weight) = (region, weight);
        let whole: f64 = self.weight.iter().sum();
        self.weight.iter_mut().for_each(|weight| *weight /= whole);
        for measured in self.measured.values_mut() {
            measured.bad = mass(&self.region, &self.weight, &measured.inside);
        }
    }

    /// For each suspect that could be built, its place in the region and about the probability that it is bad.
    fn open(&self) -> Vec<(usize, f64)> {
        if self.region.is_empty() {
            return Vec::new();
        }
        let shares = self.graph.shares(&self.region, &self.weight, SAMPLES);
        let tip = self.graph.tip();
        let open = |node: usize| node != tip && !self.broken[node] && !self.measured.contains_key(&node);
        shares.into_iter().enumerate().filter(|&(at, _)| open(self.region[at] as usize)).collect()
    }
}

/// Probability of the suspects that are marked.
fn mass(region: &[u32], weight: &[f64], inside: &[bool]) -> f64 {
    region.iter().zip(weight).filter(|(node, _)| inside[**node as usize]).map(|(_, weight)| weight).sum()
}

impl Belief for Net {
    fn learn(&mut self, node: usize, log_ratio: f64) {
        let graph = &self.graph;
        let measured =
            self.measured.entry(node).or_insert_with(|| Measured { inside: graph.ancestors(node), bad: 0.5 });
        // The larger side keeps its weight, so that nothing overflows.
        let (inside, outside) = (log_ratio.min(0.0).exp(), (-log_ratio).min(0.0).exp());
        for (&suspect, weight) in self.region.iter().zip(&mut self.weight) {
            *weight *= if measured.inside[suspect as usize] { inside } else { outside };
        }
        let whole: f64 = self.weight.iter().sum();
        self.weight.iter_mut().for_each(|weight| *weight /= whole);
        for measured in self.measured.values_mut() {
            measured.bad = mass(&self.region, &self.weight, &measured.inside);
        }
        self.settle();
    }

    fn measured(&self) -> Vec<Site> {
        self.measured.iter().map(|(&node, m)| Site { node, bad: m.bad }).collect()
    }

    fn sites(&self) -> Vec<Site> {
        let mut open = self.open();
        let mut sites: Vec<Site> = Vec::new();
        for share in SHARES {
            let off = |probability: f64| (probability - share).abs();
            let count = EXACT.min(open.len());
            if count == 0 {
                break;
            }
            open.select_nth_unstable_by(count - 1, |a, b| off(a.1).total_cmp(&off(b.1)).then(a.0.cmp(&b.0)));
            let exact = open[..count].iter().map(|&(at, _)| {
                let node = self.region[at] as usize;
                Site { node, bad: mass(&self.region, &self.weight, &self.graph.ancestors(node)) }
            });
            let best = exact.min_by(|a, b| off(a.bad).total_cmp(&off(b.bad)).then(a.node.cmp(&b.node)));
            sites.extend(best.filter(|best| sites.iter().all(|site| site.node != best.node)));
        }
        sites
    }

    fn build(&mut self, lab: &mut Lab, site: Site) -> Option<usize> {
        let built = lab.build(site.node);
        self.broken[site.node] = !built;
        built.then_some(site.node)
    }

    fn answer(&self) -> Option<(Vec<usize>, f64)> {
        let likeliest = (0..self.weight.len()).max_by(|&a, &b| self.weight[a].total_cmp(&self.weight[b]))?;
        if self.weight[likeliest] >= CONFIDENCE {
            return Some((vec![self.region[likeliest] as usize], self.weight[likeliest]));
        }
        // Suspects that every measurement puts on the same side.
        let alike = |at: usize| {
            let (one, other) = (self.region[at] as usize, self.region[likeliest] as usize);
            self.measured.values().all(|m| m.inside[one] == m.inside[other])
        };
        let group: Vec<usize> = (0..self.region.len()).filter(|&at| alike(at)).collect();
        let mass: f64 = group.iter().map(|&at| self.weight[at]).sum();
        if mass < CONFIDENCE || self.open().iter().any(|(_, bad)| (APART..1.0 - APART).contains(bad)) {
            return None;
        }
        Some((group.into_iter().map(|at| self.region[at] as usize).collect(), mass))
    }
}
