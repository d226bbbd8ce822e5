//! The next measurement: the one that is expected to tell most per unit of cost.
//!
//! Under each class of culprits the next boot of a kernel is normal about that class's *uncertain* level; what it tells
//! of the culprit is the information between class and answer ([`mutual_information`]). Since the levels stay uncertain,
//! boots of the endpoints are worth something exactly when the levels, not the candidates, are the weak side.
//! A kernel that is still to be built is valued with a look-ahead of several boots, since the build is paid once.

use super::belief::{Belief, Level, Levels};
use super::testable::Testable;
use crate::stats::{Component, mutual_information};

/// Classes below this weight are left out of the forecasts.
const LIVE: f64 = 1e-5;

/// Kernels are worth another boot only while it is this uncertain whether they contain the culprit.
const UNSETTLED: f64 = 1e-4;

/// Boots of a new kernel that are looked ahead.
const AHEAD: [u32; 7] = [1, 2, 3, 4, 6, 9, 14];

/// Probabilities of being bad near which a new kernel is looked for.
const ASKED: [f64; 3] = [0.5, 0.25, 0.75];

/// Culprits drawn along the graph to estimate probabilities of being bad.
const SAMPLES: usize = 1024;

/// Share of a run that a boot costs from which several runs in a boot are tried.
const CHEAP: f64 = 0.35;

/// Steps this many scales large need no second run.
const CLEAR: f64 = 4.0;

/// Most runs in one boot.
const MOST_RUNS: f64 = 8.0;

/// Most runs in one boot when each next one is chosen by what it tells: beyond it the belief that boots hardly differ is
/// leant on too far, and a fresh boot also tests that.
const MOST_IN_A_ROW: usize = 16;

/// Untestable commits after which a stretch may be given up as a set ...
const GIVE_UP_AFTER: usize = 6;

/// ... if no other commit has at least this chance of being measurable.
const GIVE_UP_BELOW: f64 = 0.15;

/// What tells less than this, in bits, is not worth being done.
const LEAST_BITS: f64 = 1e-7;

/// What things cost, in any one unit; all > 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// A build.
    pub build: f64,
    /// A boot, without its runs.
    pub boot: f64,
    /// A run.
    pub run: f64,
}

impl Costs {
    /// Whether several runs in a boot can pay: else the boot effect need not be known apart from the run noise.
    fn may_pay(self) -> bool {
        self.boot >= CHEAP * self.run
    }
}

/// A live boot that could take another run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Live {
    /// Its kernel's node.
    pub node: usize,
    /// Runs it has.
    pub runs: usize,
}

/// A measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// One more run in the live boot.
    Run {
        /// Its node.
        node: usize,
    },
    /// A boot of a built kernel.
    Boot {
        /// Its node.
        node: usize,
        /// Runs in it.
        runs: u32,
    },
    /// A build, then boots.
    Build {
        /// Its node.
        node: usize,
        /// Runs in the first boot.
        runs: u32,
    },
}

impl Measure {
    /// The node measured.
    pub fn node(self) -> usize {
        match self {
            Self::Run { node } | Self::Boot { node, .. } | Self::Build { node, .. } => node,
        }
    }
}

/// A measurement with what is expected of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Valued {
    /// What.
    pub measure: Measure,
    /// Expected information about the culprit, bits.
    pub bits: f64,
    /// Its cost, in the unit of [`Costs`]; of a build with the boots looked ahead.
    pub cost: f64,
}

impl Valued {
    fn rate(&self) -> f64 {
        self.bits / self.cost
    }
}

/// The best measurement and the best of another kernel or kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// To be done.
    pub best: Valued,
    /// What came second, for people.
    pub second: Option<Valued>,
}

/// What may be built: nodes that were not tried and are not left out.
pub struct Open<'a> {
    /// Whether a node may be built.
    pub may_build: &'a dyn Fn(usize) -> bool,
    /// Whether a built node may be booted again.
    pub may_boot: &'a dyn Fn(usize) -> bool,
    /// Chances.
    pub testable: &'a Testable,
}

/// Runs of the next boot. As soon as boots of several runs have told boots from runs, those that make the most of a boot's cost:
/// `sqrt(C s^2 / (R b^2))` (Cochran, "Sampling Techniques", 10.6); before that two, so that they may, unless the step is so large
/// beside the noise that the search is over before it pays.
pub fn runs_per_boot(belief: &Belief, levels: &Levels, costs: Costs) -> u32 {
    if !costs.may_pay() {
        return 1;
    }
    if !belief.tells_boots_from_runs() {
        let step = (levels.bad.mean - levels.good.mean).abs();
        return if step >= CLEAR * levels.scale { 1 } else { 2 };
    }
    if levels.boot <= 0.0 {
        return MOST_RUNS as u32;
    }
    (costs.boot * levels.run / (costs.run * levels.boot)).sqrt().round().clamp(1.0, MOST_RUNS) as u32
}

/// The classes that matter, with their levels.
struct Hypotheses {
    /// (class, weight, good, bad)
    live: Vec<(usize, f64, Level, Level)>,
}

impl Hypotheses {
    fn of(belief: &Belief) -> Self {
        let (_, weights) = belief.classes();
        let live = weights.iter().enumerate().filter(|(_, w)| **w > LIVE).map(|(class, w)| {
            let (good, bad) = belief.level_pair(class);
            (class, *w, good, bad)
        });
        Self { live: live.collect() }
    }

    /// Components of a measurement with this variance, where `share` tells how much of a class makes it bad.
    fn mixture(&self, variance: f64, share: impl Fn(usize) -> f64) -> Vec<Component> {
        let mut mixture = Vec::with_capacity(self.live.len() + 1);
        for &(class, weight, good, bad) in &self.live {
            let share = share(class);
            let mut side = |weight: f64, level: Level| {
                if weight > 0.0 {
                    mixture.push(Component { weight, mean: level.mean, variance: level.variance + variance });
                }
            };
            side(weight * share, bad);
            side(weight * (1.0 - share), good);
        }
        mixture
    }
}

/// The best next measurement; `None` when nothing tells anything.
pub fn choose(belief: &Belief, open: &Open, costs: Costs, live: Option<Live>) -> Option<Choice> {
    let levels = belief.levels(belief.leader());
    let several = costs.may_pay();
    let runs = runs_per_boot(belief, &levels, costs);
    let hypotheses = Hypotheses::of(belief);
    let mut all = boots(belief, &hypotheses, &levels, costs, runs);
    all.retain(|v| (open.may_boot)(v.measure.node()));
    if several
        && belief.tells_boots_from_runs()
        && let Some(live) = live.filter(|l| l.runs < MOST_IN_A_ROW && belief.kernel(l.node).is_some())
    {
        all.push(another_run(belief, &hypotheses, &levels, costs, live));
    }
    all.extend(builds(belief, &hypotheses, &levels, costs, runs, open));
    best_of(all)
}

fn best_of(mut all: Vec<Valued>) -> Option<Choice> {
    all.retain(|v| v.bits > LEAST_BITS);
    let best = all.iter().copied().reduce(|a, b| if b.rate() > a.rate() { b } else { a })?;
    let others = all.iter().filter(|v| v.measure.node() != best.measure.node());
    let second = others.copied().reduce(|a, b| if b.rate() > a.rate() { b } else { a });
    Some(Choice { best, second })
}

/// Another boot of each kernel that is not settled, and of the two ends.
fn boots(belief: &Belief, hypotheses: &Hypotheses, levels: &Levels, costs: Costs, runs: u32) -> Vec<Valued> {
    let (good, bad) = belief.ends();
    let variance = levels.boot + levels.run / f64::from(runs);
    let cost = costs.boot + f64::from(runs) * costs.run;
    let mut all = Vec::new();
    for (at, kernel) in belief.kernels().iter().enumerate() {
        let is_end = kernel.node == good || kernel.node == bad;
        let p = belief.p_bad(at);
        if !is_end && !(UNSETTLED..=1.0 - UNSETTLED).contains(&p) {
            continue;
        }
        let mixture = hypotheses.mixture(variance, |class| f64::from(u8::from(belief.makes_bad(class, at))));
        let measure = Measure::Boot { node: kernel.node, runs };
        all.push(Valued { measure, bits: mutual_information(&mixture), cost });
    }
    all
}

/// One more run in the live boot: its boot effect is partly known from the runs it has.
fn another_run(
    belief: &Belief,
    hypotheses: &Hypotheses,
    levels: &Levels,
    costs: Costs,
    live: Live,
) -> Valued {
    let at = belief.kernels().iter().position(|k| k.node == live.node).expect("it was measured");
    let n = live.runs as f64;
    let seen = belief.boot_means(live.node).last().copied().unwrap_or(0.0);
    let known = levels.boot / (levels.boot + levels.run / n);
    let left = levels.run + levels.boot * levels.run / (n * levels.boot + levels.run);
    let mut mixture = hypotheses.mixture(0.0, |class| f64::from(u8::from(belief.makes_bad(class, at))));
    for component in &mut mixture {
        component.mean = (1.0 - known) * component.mean + known * seen;
        component.variance = (1.0 - known).powi(2) * component.variance + left;
    }
    let measure = Measure::Run { node: live.node };
    Valued { measure, bits: mutual_information(&mixture), cost: costs.run }
}

/// New kernels near the asked probabilities, each with several look-aheads.
fn builds(
    belief: &Belief,
    hypotheses: &Hypotheses,
    levels: &Levels,
    costs: Costs,
    runs: u32,
    open: &Open,
) -> Vec<Valued> {
    let variance = levels.boot + levels.run / f64::from(runs);
    let boot = costs.boot + f64::from(runs) * costs.run;
    let mut all = Vec::new();
    for node in nodes_to_build(belief, open) {
        let chance = open.testable.chance(node);
        let shares = shares_below(belief, node);
        for ahead in AHEAD {
            let boots = f64::from(ahead);
            let mixture = hypotheses.mixture(levels.build + variance / boots, |class| shares[class]);
            let bits = chance * mutual_information(&mixture);
            let measure = Measure::Build { node, runs };
            all.push(Valued { measure, bits, cost: costs.build + chance * boots * boot });
        }
    }
    all
}

/// For each class, the share of its mass that is `node` or an ancestor of it.
fn shares_below(belief: &Belief, node: usize) -> Vec<f64> {
    let below = belief.graph().ancestors(node);
    let (classes, weights) = belief.classes();
    let share = |class: &super::belief::Class| belief.mass(class, |at| below[at]) / class.prior;
    classes.iter().zip(weights).map(|(c, w)| if *w > LIVE { share(c) } else { 0.0 }).collect()
}

/// For each asked probability the node that comes nearest to it and can likely be measured.
fn nodes_to_build(belief: &Belief, open: &Open) -> Vec<usize> {
    let p_bad = p_bad_by_node(belief);
    let hopeless = open.testable.failures() >= GIVE_UP_AFTER;
    let mut best: [Option<(f64, usize)>; ASKED.len()] = [None; ASKED.len()];
    for &(node, p) in &p_bad {
        if !(UNSETTLED..=1.0 - UNSETTLED).contains(&p) || !(open.may_build)(node) {
            continue;
        }
        let chance = open.testable.chance(node);
        if hopeless && chance < GIVE_UP_BELOW {
            continue;
        }
        for (best, asked) in best.iter_mut().zip(ASKED) {
            let fit = chance * (1.0 - 2.0 * (p - asked).abs()).max(1e-3);
            if best.is_none_or(|(before, _)| fit > before) {
                *best = Some((fit, node));
            }
        }
    }
    let mut nodes: Vec<usize> = best.iter().flatten().map(|(_, node)| *node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Probability of being bad (posterior mass of itself and its ancestors) of each candidate that is not yet settled.
/// Exact in a line; elsewhere by [`SAMPLES`] systematic draws of the posterior along the topological order.
fn p_bad_by_node(belief: &Belief) -> Vec<(usize, f64)> {
    let graph = belief.graph();
    let mass = belief.live_mass(LIVE);
    let live: Vec<usize> = (0..mass.len()).filter(|&at| mass[at] > 0.0).collect();
    let mut place = vec![u32::MAX; mass.len()];
    for (i, &at) in live.iter().enumerate() {
        place[at] = i as u32;
    }
    let live_parents =
        |at: usize| graph.parents(at).map(|p| place[p]).filter(|p| *p != u32::MAX).map(|p| p as usize);
    if live.iter().all(|&at| live_parents(at).count() <= 1) {
        let mut p = vec![0.0; live.len()];
        for (i, &at) in live.iter().enumerate() {
            p[i] = mass[at] + live_parents(at).map(|parent| p[parent]).sum::<f64>();
        }
        return live.into_iter().zip(p).collect();
    }
    let words = SAMPLES / 64;
    let mut bits = vec![0u64; words * live.len()];
    let total: f64 = live.iter().map(|&at| mass[at]).sum();
    let (mut so_far, mut sample) = (0.0, 0);
    for (i, &at) in live.iter().enumerate() {
        so_far += mass[at];
        while sample < SAMPLES && (sample as f64 + 0.5) / SAMPLES as f64 * total < so_far {
            bits[i * words + sample / 64] |= 1 << (sample % 64);
            sample += 1;
        }
    }
    let mut out = Vec::with_capacity(live.len());
    for (i, &at) in live.iter().enumerate() {
        for parent in live_parents(at) {
            let (earlier, own) = bits.split_at_mut(i * words);
            for (word, inherited) in own[..words].iter_mut().zip(&earlier[parent * words..][..words]) {
                *word |= inherited;
            }
        }
        let count: u32 = bits[i * words..][..words].iter().map(|w| w.count_ones()).sum();
        out.push((at, f64::from(count) / SAMPLES as f64 * total));
    }
    out
}

/// Whether a node is in a stretch that is given up.
pub fn is_hopeless(testable: &Testable, node: usize) -> bool {
    testable.failures() >= GIVE_UP_AFTER && testable.chance(node) < GIVE_UP_BELOW
}
