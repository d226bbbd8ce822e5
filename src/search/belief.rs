//! The posterior over the culprits of a scope.
//!
//! Given the noise, the likelihood of a hypothesis "the culprit is c" depends on c only through its *pattern*: which
//! measured kernels contain it. Candidates with one pattern form a [`Class`]; for each class the log likelihoods of the
//! kernels that would be good and of those that would be bad are summed over the grid of levels and noise, and the two
//! levels, being separate, are integrated out. Measuring a new kernel splits classes; measuring a boot adds to one side of
//! each. Exact on any graph; the work is (classes) x (grid) a boot.
//!
//! Owns: samples of the scope, grid, classes, their weights. Must not do: decide what to measure. Tested against brute
//! force in tests/it/belief.rs.

mod change;
mod claim;
mod lay;
mod side;

use self::claim::agreement;
use self::side::Side;
use super::graph::Graph;
use crate::stats::{Grid, Noise, log_sum_exp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the culprit is looked for: commits reachable from `bad` and not from `good`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// Last node known to be before it; `None`: the boundary of the graph.
    pub good: Option<usize>,
    /// First node known to be after it.
    pub bad: usize,
}

/// One boot of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct BootRuns {
    /// Number of the boot in the session.
    pub boot: u64,
    /// 0 in gate and search; n in the n-th confirmation.
    pub stage: u32,
    /// Logarithm of the metric, positive = worse, and the run's place in the session's time.
    pub runs: Vec<(f64, u32)>,
}

/// A measured kernel.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Its commit.
    pub node: usize,
    /// Its boots in order.
    pub boots: Vec<BootRuns>,
    /// Log likelihood over the grid of all boots but the newest, the build effect apart, and how many boots that are.
    raw: Vec<f64>,
    settled: usize,
    /// Log likelihood over the grid of all boots, the build effect integrated out.
    likelihood: Vec<f64>,
}

/// Candidates that no measured kernel tells apart.
#[derive(Debug, Clone)]
pub struct Class {
    /// Bit per kernel: whether it contains the culprit if that is in this class.
    pattern: Vec<u64>,
    /// Its candidates, parents before children.
    pub members: Vec<u32>,
    /// Prior mass.
    pub prior: f64,
    good: Side,
    bad: Side,
    by_noise: Vec<f64>,
    evidence: f64,
}

/// A level of the metric with its uncertainty, log units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Posterior mean.
    pub mean: f64,
    /// Posterior variance.
    pub variance: f64,
}

/// Levels and noise if the leading class is right.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// Level before the culprit.
    pub good: Level,
    /// Level after it.
    pub bad: Level,
    /// Variance of the normal that tells as much as one run, boot effect apart.
    pub run: f64,
    /// Variance of one run, likewise.
    pub run_variance: f64,
    /// Variance of the boot effect, with what two modes of boots blur.
    pub boot: f64,
    /// Variance of the build effect.
    pub build: f64,
    /// Scale of one boot of one run.
    pub scale: f64,
    /// Posterior of the grid's noise hypotheses.
    pub noise: Vec<f64>,
}

/// The state of belief.
#[derive(Debug, Clone)]
pub struct Belief {
    graph: Arc<Graph>,
    scope: Scope,
    /// The kernel before the scope that is measured for its level.
    good: usize,
    /// Smallest effect worth finding or the one claimed, log units, signed (positive = worse).
    claim: f64,
    taus: Vec<(f64, f64)>,
    kernels: Vec<Kernel>,
    index: BTreeMap<usize, usize>,
    candidate: Vec<bool>,
    prior: Vec<f64>,
    classes: Vec<Class>,
    weights: Vec<f64>,
    grid: Option<Grid>,
    /// Drift by the runs' place in time; empty = none.
    drift: Vec<f64>,
    boots: usize,
    regrid_at: usize,
    several_runs: bool,
    prior_of_change: Vec<f64>,
    /// Whether the claim is about this scope, so that it says something of the difference of its levels.
    coupled: bool,
}

impl Belief {
    /// No data yet; `good`: the endpoint before the range; `prior` is the weight of each node (zero: no candidate). `taus`: build sds over run sd with their
    /// prior weights.
    pub fn new(
        graph: Arc<Graph>,
        (scope, good): (Scope, usize),
        claim: f64,
        taus: Vec<(f64, f64)>,
        prior: &[f64],
        coupled: bool,
    ) -> Self {
        let before = scope.good.map(|good| graph.ancestors(good));
        let inside = graph.ancestors(scope.bad);
        let is_candidate = |at: usize| {
            inside[at] && !graph.is_boundary(at) && prior[at] > 0.0 && before.as_ref().is_none_or(|b| !b[at])
        };
        let candidate: Vec<bool> = (0..graph.len()).map(is_candidate).collect();
        let members: Vec<u32> = (0..graph.len()).filter(|&at| candidate[at]).map(|at| at as u32).collect();
        let mass = members.iter().map(|&at| prior[at as usize]).sum();
        let all = Class {
            pattern: Vec::new(),
            members,
            prior: mass,
            good: Side::default(),
            bad: Side::default(),
            by_noise: Vec::new(),
            evidence: 0.0,
        };
        Self {
            graph,
            scope,
            good: scope.good.unwrap_or(good),
            claim,
            taus,
            kernels: Vec::new(),
            index: BTreeMap::new(),
            candidate,
            prior: prior.to_vec(),
            classes: vec![all],
            weights: vec![1.0],
            grid: None,
            drift: Vec::new(),
            boots: 0,
            regrid_at: 0,
            several_runs: false,
            prior_of_change: Vec::new(),
            coupled,
        }
    }

    /// Where the culprit is looked for.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Posterior probability of each node, by node.
    pub fn by_node(&self) -> Vec<f64> {
        self.live_mass(0.0)
    }

    /// Posterior mass by node, of classes above `least` only.
    pub fn live_mass(&self, least: f64) -> Vec<f64> {
        let mut mass = vec![0.0; self.graph.len()];
        for (class, weight) in self.classes.iter().zip(&self.weights).filter(|(_, w)| **w > least) {
            for &at in &class.members {
                mass[at as usize] = weight * self.prior[at as usize] / class.prior;
            }
        }
        mass
    }

    /// Prior mass of a class's members that satisfy `of`.
    pub fn mass(&self, class: &Class, of: impl Fn(usize) -> bool) -> f64 {
        let members = class.members.iter().map(|&at| at as usize);
        members.filter(|&at| of(at)).map(|at| self.prior[at]).sum()
    }

    /// Whether a node may be the culprit.
    pub fn is_candidate(&self, node: usize) -> bool {
        self.candidate[node]
    }

    /// Measured kernels in the order of their first boot.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// A kernel by node.
    pub fn kernel(&self, node: usize) -> Option<&Kernel> {
        self.index.get(&node).map(|&at| &self.kernels[at])
    }

    /// Classes and, in the same order, their posterior weights.
    pub fn classes(&self) -> (&[Class], &[f64]) {
        (&self.classes, &self.weights)
    }

    /// The grid, once the endpoints have boots.
    pub fn grid(&self) -> Option<&Grid> {
        self.grid.as_ref()
    }

    /// Boots taken in.
    pub fn boots(&self) -> usize {
        self.boots
    }

    /// Whether boots of several runs have been seen, so that boots and runs are weighed apart.
    pub fn tells_boots_from_runs(&self) -> bool {
        self.several_runs
    }

    /// The largest build sd that is weighed, log units; 0 without a grid.
    pub fn widest_build(&self) -> f64 {
        let noise = self.grid.as_ref().map_or(&[][..], |grid| &grid.noise);
        noise.iter().map(|n| n.tau * n.s).fold(0.0, f64::max)
    }

    /// The most probable class.
    pub fn leader(&self) -> usize {
        let better = |a: usize, b: usize| if self.weights[b] > self.weights[a] { b } else { a };
        (0..self.classes.len()).fold(0, better)
    }

    /// Posterior probability that a measured kernel contains the culprit.
    pub fn p_bad(&self, kernel: usize) -> f64 {
        let has = |class: &Class| bit(&class.pattern, kernel);
        self.classes.iter().zip(&self.weights).filter(|(class, _)| has(class)).map(|(_, w)| w).sum()
    }

    /// Whether a class makes a measured kernel bad.
    pub fn makes_bad(&self, class: usize, kernel: usize) -> bool {
        bit(&self.classes[class].pattern, kernel)
    }

    /// A run less the drift at its time.
    fn level_of(&self, run: &(f64, u32)) -> f64 {
        run.0 - self.drift.get(run.1 as usize).copied().unwrap_or(0.0)
    }

    /// Takes in runs of a boot, a new one or the kernel's newest.
    pub fn observe(&mut self, node: usize, boot: u64, stage: u32, runs: &[(f64, u32)]) {
        let kernel = self.kernel_at(node);
        let is_newest = self.kernels[kernel].boots.last().is_some_and(|b| b.boot == boot);
        if !is_newest {
            self.kernels[kernel].boots.push(BootRuns { boot, stage, runs: Vec::new() });
            self.boots += 1;
        }
        let newest = self.kernels[kernel].boots.last_mut().expect("it was pushed");
        newest.runs.extend_from_slice(runs);
        self.several_runs |= newest.runs.len() > 1;
        if self.grid.is_some() {
            self.reweigh(kernel);
        }
    }

    /// Computes a kernel's likelihood anew and what depends on it.
    fn reweigh(&mut self, kernel: usize) {
        let before = self.kernels[kernel].likelihood.clone();
        self.likelihood(kernel);
        let after = &self.kernels[kernel].likelihood;
        let change: Vec<f64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
        let grid = self.grid.as_ref().expect("likelihoods are over a grid");
        let claim = self.coupled.then_some(self.claim);
        for class in &mut self.classes {
            let side = if bit(&class.pattern, kernel) { &mut class.bad } else { &mut class.good };
            side.add(&change);
            side.refresh(grid);
            class.weigh(grid, claim);
        }
        self.normalise();
    }

    /// Brings a kernel's likelihood up to date. Of boots before the newest only what is not in the sum yet is computed: they
    /// do not change any more.
    fn likelihood(&mut self, at: usize) {
        let grid = self.grid.as_ref().expect("likelihoods are over a grid");
        let mut raw = std::mem::take(&mut self.kernels[at].raw);
        let kernel = &self.kernels[at];
        let add = |boot: &BootRuns, sum: &mut [f64]| {
            let runs: Vec<f64> = boot.runs.iter().map(|run| self.level_of(run)).collect();
            grid.add_boot(&runs, sum);
        };
        let newest = kernel.boots.len().saturating_sub(1);
        kernel.boots[kernel.settled..newest].iter().for_each(|boot| add(boot, &mut raw));
        let mut all = raw.clone();
        kernel.boots[newest..].iter().for_each(|boot| add(boot, &mut all));
        let mut likelihood = vec![0.0; all.len()];
        grid.with_build_effect(&all, &mut likelihood);
        let kernel = &mut self.kernels[at];
        (kernel.raw, kernel.settled, kernel.likelihood) = (raw, newest, likelihood);
    }

    /// The kernel of a node; a new one splits the classes.
    fn kernel_at(&mut self, node: usize) -> usize {
        if let Some(&at) = self.index.get(&node) {
            return at;
        }
        let at = self.kernels.len();
        let size = self.grid.as_ref().map_or(0, Grid::size);
        self.kernels.push(Kernel {
            node,
            boots: Vec::new(),
            raw: vec![0.0; size],
            settled: 0,
            likelihood: vec![0.0; size],
        });
        self.index.insert(node, at);
        self.split(node, at);
        at
    }

    fn split(&mut self, node: usize, kernel: usize) {
        let contained = self.graph.ancestors(node);
        let words = kernel / 64 + 1;
        let mut split = Vec::new();
        for class in &mut self.classes {
            class.pattern.resize(words, 0);
            let (inside, outside): (Vec<u32>, Vec<u32>) =
                class.members.iter().partition(|&&at| contained[at as usize]);
            if inside.is_empty() {
                continue;
            }
            if outside.is_empty() {
                set(&mut class.pattern, kernel);
                continue;
            }
            let mut other = class.clone();
            set(&mut other.pattern, kernel);
            let mass = |members: &[u32]| members.iter().map(|&at| self.prior[at as usize]).sum();
            other.prior = mass(&inside);
            class.prior = mass(&outside);
            class.members = outside;
            other.members = inside;
            split.push(other);
        }
        self.classes.extend(split);
        self.normalise();
    }

    fn normalise(&mut self) {
        let log: Vec<f64> = self.classes.iter().map(|c| c.evidence + c.prior.ln()).collect();
        let total = log_sum_exp(&log);
        self.weights = log.iter().map(|v| (v - total).exp()).collect();
    }

    /// Boots of the scope's ends.
    pub fn end_boots(&self) -> (usize, usize) {
        let (good, bad) = self.ends();
        let count = |node: usize| self.kernel(node).map_or(0, |k| k.boots.len());
        (count(good), count(bad))
    }

    /// Nodes of the scope's ends.
    pub fn ends(&self) -> (usize, usize) {
        (self.good, self.scope.bad)
    }

    /// Mean of each boot of a kernel, drift removed.
    pub fn boot_means(&self, node: usize) -> Vec<f64> {
        let mean = |b: &BootRuns| b.runs.iter().map(|r| self.level_of(r)).sum::<f64>() / b.runs.len() as f64;
        let boots = self.kernel(node).map_or(&[][..], |k| &k.boots);
        boots.iter().filter(|b| !b.runs.is_empty()).map(mean).collect()
    }

    /// Levels and noise if a class is right.
    pub fn levels(&self, class: usize) -> Levels {
        let grid = self.grid.as_ref().expect("levels are over a grid");
        let class = &self.classes[class];
        let noise = class.noise();
        let level = |side: &Side| {
            let Level { mean, variance } = side.level(&noise);
            Level { mean, variance: variance.max(0.09 * grid.step * grid.step) }
        };
        let over =
            |f: &dyn Fn(&Noise) -> f64| grid.noise.iter().zip(&noise).map(|(n, p)| p * f(n)).sum::<f64>();
        let run = over(&|n| n.s * n.s * n.tail.information());
        let boot = over(&|n| (n.s * n.rho).powi(2));
        Levels {
            good: level(&class.good),
            bad: level(&class.bad),
            run,
            run_variance: over(&|n| (n.s * n.tail.sd()).powi(2)),
            boot: boot + grid.modes.map_or(0.0, |modes| modes.blur(boot + run)),
            build: over(&|n| (n.s * n.tau).powi(2)),
            scale: over(&|n| n.total().ln()).exp(),
            noise,
        }
    }

    /// Both levels if a class is right, without the noise: cheap.
    pub fn level_pair(&self, class: usize) -> (Level, Level) {
        let class = &self.classes[class];
        let noise = class.noise();
        let floor = self.grid.as_ref().map_or(0.0, |g| 0.09 * g.step * g.step);
        let level = |side: &Side| {
            let Level { mean, variance } = side.level(&noise);
            Level { mean, variance: variance.max(floor) }
        };
        (level(&class.good), level(&class.bad))
    }

    /// Sum of the kernels' log likelihoods over the grid.
    pub fn pooled(&self, kernels: impl Iterator<Item = usize>) -> Vec<f64> {
        let mut sum = vec![0.0; self.grid.as_ref().map_or(0, Grid::size)];
        for kernel in kernels {
            for (sum, value) in sum.iter_mut().zip(&self.kernels[kernel].likelihood) {
                *sum += value;
            }
        }
        sum
    }

    /// Log likelihood by noise hypothesis of kernels that share one level.
    pub fn one_level(&self, sum: &[f64]) -> Vec<f64> {
        let width = self.grid.as_ref().map_or(1, |g| g.levels.len());
        sum.chunks_exact(width).map(log_sum_exp).collect()
    }

    /// Posterior of the level that a pooled sum speaks for.
    pub fn level_of_pool(&self, sum: &[f64]) -> Level {
        let grid = self.grid.as_ref().expect("levels are over a grid");
        let mut side = Side { sum: sum.to_vec(), ..Side::default() };
        side.refresh(grid);
        let log: Vec<f64> = side.log.iter().zip(&grid.log_prior).map(|(a, b)| a + b).collect();
        let total = log_sum_exp(&log);
        let noise: Vec<f64> = log.iter().map(|v| (v - total).exp()).collect();
        side.level(&noise)
    }

    /// All runs in order of time: (place, residual against the believed level, variance of what is not believed). A boot in
    /// the second mode is held against that mode's level.
    pub fn residuals(&self) -> Vec<(u32, f64, f64)> {
        let levels = self.levels(self.leader());
        let step = levels.bad.mean - levels.good.mean;
        let modes = self.grid.as_ref().and_then(|grid| grid.modes);
        let mut rows = Vec::new();
        for (at, kernel) in self.kernels.iter().enumerate() {
            let p = self.p_bad(at);
            let mean = levels.good.mean + p * step;
            let unknown = p * (1.0 - p) * step * step;
            for boot in &kernel.boots {
                let (shift, blur) = modes.map_or((0.0, 0.0), |modes| {
                    let above = boot.runs.iter().map(|r| self.level_of(r) - mean).sum::<f64>();
                    let q = modes.probability(above / boot.runs.len() as f64, levels.scale);
                    (q * modes.gap, q * (1.0 - q) * modes.gap * modes.gap)
                });
                let row = |run: &(f64, u32)| (run.1, run.0 - mean - shift, unknown + blur);
                rows.extend(boot.runs.iter().map(row));
            }
        }
        rows.sort_by_key(|row| row.0);
        rows
    }

    /// The claimed or smallest effect, log units, signed.
    pub fn claim(&self) -> f64 {
        self.claim
    }
}

impl Class {
    /// Weighs the class by its two sides, and by how well their difference agrees with the claim.
    fn weigh(&mut self, grid: &Grid, claim: Option<f64>) {
        self.by_noise.clear();
        let sides = self.good.log.iter().zip(&self.bad.log).zip(&grid.log_prior);
        self.by_noise.extend(sides.map(|((good, bad), prior)| good + bad + prior));
        let Some(claim) = claim else {
            self.evidence = log_sum_exp(&self.by_noise) + 2.0 * grid.step.ln();
            return;
        };
        for (at, log) in self.by_noise.iter_mut().enumerate() {
            let (good, bad) = (self.good.at(at), self.bad.at(at));
            let difference =
                Level { mean: bad.mean - good.mean, variance: (good.variance + bad.variance).max(0.0) };
            *log += agreement(difference, claim).ln();
        }
        self.evidence = log_sum_exp(&self.by_noise) + 2.0 * grid.step.ln();
    }

    /// Posterior of the noise hypotheses in this class.
    fn noise(&self) -> Vec<f64> {
        let total = log_sum_exp(&self.by_noise);
        self.by_noise.iter().map(|v| (v - total).exp()).collect()
    }

    /// Log evidence, up to a constant of the scope.
    pub fn evidence(&self) -> f64 {
        self.evidence
    }
}

fn bit(pattern: &[u64], at: usize) -> bool {
    pattern.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
}

fn set(pattern: &mut [u64], at: usize) {
    pattern[at / 64] |= 1 << (at % 64);
}
