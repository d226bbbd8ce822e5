//! The posterior over the culprits of a scope.
//!
//! Given the noise, the likelihood of a hypothesis "the culprit is c" depends on c only through its *pattern*: which
//! measured kernels contain it. Candidates with one pattern form a [`Class`]; for each class the log likelihoods of the
//! kernels that would be good and of those that would be bad are summed over the grid of levels and noise, and the two
//! levels, being separate, are integrated out. Measuring a new kernel splits classes; measuring a boot adds to one side of
//! each. Exact on any graph; the work is (classes) x (grid) a boot.
//!
//! Owns: samples of the scope, grid, classes, their weights. Must not do: decide what to measure. Tested against brute
//! force below and in tests/it/belief.rs.

use super::graph::Graph;
use crate::stats::{Grid, Noise, Tail, log_sum_exp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Levels of a grid: fewest and most. Between them, as many as the sharpest level needs.
const LEVELS: (usize, usize) = (41, 161);

/// Grid step over the sd of the sharpest level.
const STEP: f64 = 0.6;

/// Sds of a level that the grid reaches beyond it.
const MARGIN: f64 = 7.0;

/// Noise scales: how many, and the widest factor between the middle and an end.
const SCALES: usize = 7;
const WIDEST: f64 = 4.0;

/// Boot sds over run sd that are weighed once boots of several runs can tell them apart.
const RHOS: [f64; 6] = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0];

/// How runs may scatter, each as likely.
const TAILS: [Tail; 2] = [Tail::Heavy, Tail::Normal];

/// Build sd over the effect looked for: the largest weighed.
const MOST_TAU: f64 = 0.15;

/// Noise below this share of the difference of the levels is taken to be that large: nothing hangs on it, and the grid
/// need not resolve it.
const FINEST: f64 = 1.0 / 25.0;

/// A first guess of the scale is not below this share of the effect looked for, nor below this in log units.
const LEAST_SCALE: (f64, f64) = (1e-3, 1e-9);

/// Prior of a change in claims: sd of the logarithm of its size; share of the wide part and its scale.
const CLAIM_SD: f64 = 0.5;
const WIDE: (f64, f64) = (0.1, 2.0);

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
    /// Log likelihood of its boots over the grid, without and with the build effect.
    raw: Vec<f64>,
    likelihood: Vec<f64>,
}

/// The kernels on one side of a class: sums over the grid and what follows from them, by noise hypothesis.
#[derive(Debug, Clone, Default)]
struct Side {
    sum: Vec<f64>,
    log: Vec<f64>,
    mean: Vec<f64>,
    square: Vec<f64>,
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
    /// Variance of the boot effect.
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

    fn likelihood(&mut self, kernel: usize) {
        let grid = self.grid.as_ref().expect("likelihoods are over a grid");
        let mut raw = vec![0.0; grid.size()];
        for boot in &self.kernels[kernel].boots {
            let runs: Vec<f64> = boot.runs.iter().map(|run| self.level_of(run)).collect();
            grid.add_boot(&runs, &mut raw);
        }
        let kernel = &mut self.kernels[kernel];
        kernel.likelihood.resize(raw.len(), 0.0);
        grid.with_build_effect(&raw, &mut kernel.likelihood);
        kernel.raw = raw;
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

    /// Once a boot is over: lays the grid anew where the data have grown by a third.
    pub fn settle(&mut self) {
        if self.grid.is_some() && self.boots >= self.regrid_at {
            self.lay();
        }
    }

    /// Lays the first grid from the boots of the two ends; each has at least one.
    pub fn begin(&mut self) {
        let (good, bad, scale) = self.pilot();
        let fewest = self.end_boots().0.min(self.end_boots().1).max(1);
        let pad = 8.0 * scale / (fewest as f64).sqrt() + 2.0 * scale;
        self.lay_over((good.min(bad) - pad, good.max(bad) + pad), 121, scale, WIDEST);
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

    /// Robust levels of the ends and scale of one boot, from their boot means.
    pub fn pilot(&self) -> (f64, f64, f64) {
        let (good, bad) = self.ends();
        let (good, bad) = (self.boot_means(good), self.boot_means(bad));
        let (a, b) = (median(&good), median(&bad));
        let residuals: Vec<f64> = good.iter().map(|v| v - a).chain(bad.iter().map(|v| v - b)).collect();
        let freedom = residuals.len().saturating_sub(2).max(1) as f64;
        let sd = (residuals.iter().map(|r| r * r).sum::<f64>() / freedom).sqrt();
        let mad = 1.4826 * 1.3 * median(&residuals.iter().map(|r| r.abs()).collect::<Vec<_>>());
        let robust = if mad > 0.0 { sd.min(3.0 * mad) } else { sd };
        let least = (LEAST_SCALE.0 * self.claim.abs()).max(LEAST_SCALE.1).max(FINEST * (b - a).abs());
        (a, b, robust.max(least))
    }

    /// Mean of each boot of a kernel, drift removed.
    pub fn boot_means(&self, node: usize) -> Vec<f64> {
        let mean = |b: &BootRuns| b.runs.iter().map(|r| self.level_of(r)).sum::<f64>() / b.runs.len() as f64;
        let boots = self.kernel(node).map_or(&[][..], |k| &k.boots);
        boots.iter().filter(|b| !b.runs.is_empty()).map(mean).collect()
    }

    /// Lays the grid around the levels as they are believed now.
    fn lay(&mut self) {
        let levels = self.levels(self.leader());
        let sd = |level: Level| level.variance.sqrt();
        let margin = MARGIN * sd(levels.good).max(sd(levels.bad)).max(0.05 * levels.scale);
        let low = levels.good.mean.min(levels.bad.mean) - margin;
        let high = levels.good.mean.max(levels.bad.mean) + margin;
        let sharpest = sd(levels.good).min(sd(levels.bad));
        let count = ((high - low) / (STEP * sharpest)).clamp(LEVELS.0 as f64, LEVELS.1 as f64) as usize;
        let scale = levels.scale.max(FINEST * (levels.bad.mean - levels.good.mean).abs());
        let factor = (4.0 * self.scale_sd(&levels.noise)).exp().clamp(1.5, WIDEST);
        self.lay_over((low, high), count, scale, factor);
    }

    /// Sd of the logarithm of the noise scale.
    fn scale_sd(&self, posterior: &[f64]) -> f64 {
        let grid = self.grid.as_ref().expect("a grid is laid");
        let log = |n: &Noise| n.total().ln();
        let mean: f64 = grid.noise.iter().zip(posterior).map(|(n, p)| p * log(n)).sum();
        let square: f64 = grid.noise.iter().zip(posterior).map(|(n, p)| p * (log(n) - mean).powi(2)).sum();
        // Two neighbouring scales may hold all the mass: what lies between them is not known.
        let ratio = self.grid.as_ref().map_or(0.0, |g| (g.noise[1].s / g.noise[0].s).ln().abs());
        square.sqrt().max(0.5 * ratio)
    }

    fn lay_over(&mut self, range: (f64, f64), count: usize, scale: f64, factor: f64) {
        let rhos: &[f64] = if self.several_runs { &RHOS } else { &RHOS[..1] };
        let mut noise = Vec::new();
        for &(tau, _) in &self.taus {
            for (rho, tail) in rhos.iter().flat_map(|&rho| TAILS.map(|tail| (rho, tail))) {
                for i in 0..SCALES {
                    let by = factor.powf(2.0 * i as f64 / (SCALES - 1) as f64 - 1.0);
                    let s = scale * by / rho.hypot(1.0);
                    // A build effect near the one looked for would leave nothing to find.
                    noise.push(Noise { s, rho, tau: tau.min(MOST_TAU * self.claim.abs() / s), tail });
                }
            }
        }
        let weight_of = |differ: bool| {
            self.taus.iter().filter(|(tau, _)| (*tau > 0.0) == differ).map(|t| t.1).sum::<f64>()
        };
        let weight = |n: &Noise| weight_of(n.tau > 0.0);
        let modes = self.grid.as_ref().and_then(|g| g.modes);
        let mut grid = Grid::new(range, count, noise, weight);
        grid.modes = modes;
        self.prior_of_change = prior_of_change(&grid, self.claim);
        self.grid = Some(grid);
        self.regrid_at = self.boots + (self.boots * 3 / 10).max(1);
        self.recompute();
    }

    /// Everything that depends on the grid.
    fn recompute(&mut self) {
        for kernel in 0..self.kernels.len() {
            self.likelihood(kernel);
        }
        let grid = self.grid.as_ref().expect("a grid is laid");
        let claim = self.coupled.then_some(self.claim);
        for class in &mut self.classes {
            class.good.clear(grid.size());
            class.bad.clear(grid.size());
            for (at, kernel) in self.kernels.iter().enumerate() {
                let side = if bit(&class.pattern, at) { &mut class.bad } else { &mut class.good };
                side.add(&kernel.likelihood);
            }
            class.good.refresh(grid);
            class.bad.refresh(grid);
            class.weigh(grid, claim);
        }
        self.normalise();
    }

    /// Replaces the drift (by the runs' place in time) and lays the grid anew.
    pub fn set_drift(&mut self, drift: Vec<f64>) {
        self.drift = drift;
        self.lay();
    }

    /// Replaces the modes of boots and lays the grid anew.
    pub fn set_modes(&mut self, modes: Option<crate::stats::Modes>) {
        if let Some(grid) = &mut self.grid {
            grid.modes = modes;
            self.lay();
        }
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
        Levels {
            good: level(&class.good),
            bad: level(&class.bad),
            run: over(&|n| n.s * n.s * n.tail.information()),
            run_variance: over(&|n| (n.s * n.tail.sd()).powi(2)),
            boot: over(&|n| (n.s * n.rho).powi(2)),
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

    /// Log Bayes factor of "the two levels differ" against "one level", at the leading class.
    pub fn log_bayes_change(&self) -> f64 {
        let class = &self.classes[self.leader()];
        self.log_bayes_of(&class.good.sum, &class.bad.sum)
    }

    /// The same of any two sums of log likelihoods over the grid.
    fn log_bayes_of(&self, good: &[f64], bad: &[f64]) -> f64 {
        let grid = self.grid.as_ref().expect("evidence is over a grid");
        let width = grid.levels.len();
        let rows = good.chunks_exact(width).zip(bad.chunks_exact(width)).zip(&grid.log_prior);
        let (mut two, mut one) = (Vec::new(), Vec::new());
        // Whether these two kernels differ as they were built: what another build would do is not asked.
        for (((good, bad), log_prior), _) in rows.zip(&grid.noise).filter(|(_, noise)| noise.tau == 0.0) {
            let max = |row: &[f64]| row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (top_good, top_bad) = (max(good), max(bad));
            let good_e: Vec<f64> = good.iter().map(|v| (v - top_good).exp()).collect();
            let bad_e: Vec<f64> = bad.iter().map(|v| (v - top_bad).exp()).collect();
            let mut sum = 0.0;
            for (row, g) in self.prior_of_change.chunks_exact(width).zip(&good_e) {
                if *g > 1e-14 {
                    sum += g * row.iter().zip(&bad_e).map(|(p, b)| p * b).sum::<f64>();
                }
            }
            two.push(sum.max(f64::MIN_POSITIVE).ln() + top_good + top_bad + log_prior);
            let both: Vec<f64> = good.iter().zip(bad).map(|(a, b)| a + b).collect();
            one.push(log_sum_exp(&both) + log_prior);
        }
        log_sum_exp(&two) - log_sum_exp(&one) + grid.step.ln()
    }

    /// Probability that nothing changed, given its prior probability.
    pub fn p_no_change(&self, prior: f64) -> f64 {
        let leader = self.leader();
        let total: f64 = self.classes.iter().map(|c| c.prior).sum();
        let class_prior = self.classes[leader].prior / total;
        // p(data | change) = p(data | class) p(class) / p(class | data)
        let odds = self.log_bayes_change() + class_prior.ln()
            - self.weights_as_built()[leader].max(1e-12).ln()
            + ((1.0 - prior) / prior).ln();
        1.0 / (1.0 + odds.clamp(-700.0, 700.0).exp())
    }

    /// Log evidence of a class under some noise hypotheses, whatever the size of its step.
    pub fn flat_evidence(&self, class: usize, noise: &[usize]) -> f64 {
        let grid = self.grid.as_ref().expect("evidence is over a grid");
        let class = &self.classes[class];
        let log: Vec<f64> =
            noise.iter().map(|&s| class.good.log[s] + class.bad.log[s] + grid.log_prior[s]).collect();
        log_sum_exp(&log) + 2.0 * grid.step.ln()
    }

    /// Weights of the classes if builds do not differ of themselves.
    pub fn weights_as_built(&self) -> Vec<f64> {
        let grid = self.grid.as_ref().expect("evidence is over a grid");
        let log = |class: &Class| {
            let rows = class.by_noise.iter().zip(&grid.noise).filter(|(_, noise)| noise.tau == 0.0);
            log_sum_exp(&rows.map(|(log, _)| *log).collect::<Vec<_>>()) + class.prior.ln()
        };
        let all: Vec<f64> = self.classes.iter().map(log).collect();
        let total = log_sum_exp(&all);
        all.iter().map(|v| (v - total).exp()).collect()
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

    /// All runs in order of time: (place, residual against the believed level, variance of what is not believed).
    pub fn residuals(&self) -> Vec<(u32, f64, f64)> {
        let levels = self.levels(self.leader());
        let step = levels.bad.mean - levels.good.mean;
        let mut rows = Vec::new();
        for (at, kernel) in self.kernels.iter().enumerate() {
            let p = self.p_bad(at);
            let mean = levels.good.mean + p * step;
            for run in kernel.boots.iter().flat_map(|b| &b.runs) {
                rows.push((run.1, run.0 - mean, p * (1.0 - p) * step * step));
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

impl Side {
    fn clear(&mut self, size: usize) {
        self.sum.clear();
        self.sum.resize(size, 0.0);
    }

    fn add(&mut self, change: &[f64]) {
        for (sum, change) in self.sum.iter_mut().zip(change) {
            *sum += change;
        }
    }

    /// Integrates the level out, hypothesis by hypothesis.
    fn refresh(&mut self, grid: &Grid) {
        self.log.clear();
        self.mean.clear();
        self.square.clear();
        for row in self.sum.chunks_exact(grid.levels.len()) {
            let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (mut total, mut mean, mut square) = (0.0, 0.0, 0.0);
            for (value, level) in row.iter().zip(&grid.levels) {
                // Below e^-36 nothing is added to a double.
                if value - max > -36.0 {
                    let e = (value - max).exp();
                    total += e;
                    mean += e * level;
                    square += e * level * level;
                }
            }
            self.log.push(max + total.ln());
            self.mean.push(mean / total);
            self.square.push(square / total);
        }
    }

    /// The level under one noise hypothesis.
    fn at(&self, noise: usize) -> Level {
        let mean = self.mean[noise];
        Level { mean, variance: self.square[noise] - mean * mean }
    }

    fn level(&self, noise: &[f64]) -> Level {
        let over = |values: &[f64]| values.iter().zip(noise).map(|(v, p)| v * p).sum::<f64>();
        let mean = over(&self.mean);
        Level { mean, variance: over(&self.square) - mean * mean }
    }
}

fn bit(pattern: &[u64], at: usize) -> bool {
    pattern.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
}

fn set(pattern: &mut [u64], at: usize) {
    pattern[at / 64] |= 1 << (at % 64);
}

/// Density of the claim's prior, smoothed by the uncertainty of a difference, in units of the claim: with it the levels of a
/// class are not independent, and a split that needs a difference far from the claimed one is less likely. Gauss and
/// Hermite's rule of 5 points.
fn agreement(difference: Level, claim: f64) -> f64 {
    const HERMITE: [(f64, f64); 5] = [
        (-2.856_970_013_872_806, 0.011_257_411_327_720_69),
        (-1.355_626_179_974_266, 0.222_075_922_005_612_7),
        (0.0, 0.533_333_333_333_333_3),
        (1.355_626_179_974_266, 0.222_075_922_005_612_7),
        (2.856_970_013_872_806, 0.011_257_411_327_720_69),
    ];
    let sd = difference.variance.sqrt();
    let at = |z: f64| likely_size((difference.mean + sd * z) / claim);
    HERMITE.iter().map(|(z, weight)| weight * at(*z)).sum::<f64>().max(f64::MIN_POSITIVE)
}

/// Prior density of a change of `r` claims: 90 % log-normal, 10 % Cauchy of either sign.
fn likely_size(r: f64) -> f64 {
    let wide = 1.0 / (std::f64::consts::PI * WIDE.1 * (1.0 + (r / WIDE.1).powi(2)));
    let root = std::f64::consts::TAU.sqrt();
    let near = if r > 0.0 { (-0.5 * (r.ln() / CLAIM_SD).powi(2)).exp() / (r * CLAIM_SD * root) } else { 0.0 };
    (1.0 - WIDE.0) * near + WIDE.0 * wide
}

/// Median; 0 for nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Prior density of the change from the level of the row to that of the column: 90 % log-normal about the claim, 10 %
/// wide (Cauchy, so that a change far beyond the claim is still one) and of either sign, nothing below 0.3 of the claim, so
/// that "no change" can win with few boots.
fn prior_of_change(grid: &Grid, claim: f64) -> Vec<f64> {
    /// Share of the wide part beyond the gap of 0.3.
    const BEYOND: f64 = 0.905;
    const LEAST: f64 = 0.3;
    let density = |r: f64| if r.abs() < LEAST { 0.0 } else { likely_size(r) / BEYOND / claim.abs() };
    let width = grid.levels.len();
    // The density depends on the distance alone.
    let by_distance: Vec<f64> =
        (0..2 * width - 1).map(|i| density((i as f64 - (width - 1) as f64) * grid.step / claim)).collect();
    (0..width)
        .flat_map(|from| (0..width).map(move |to| to + width - 1 - from))
        .map(|i| by_distance[i])
        .collect()
}
