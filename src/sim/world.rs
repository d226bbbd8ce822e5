//! A simulated history and the machine that measures it, with the truth known.

use super::graph::Graph;
use super::random::{Draw, normal, uniform};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Size of an outlier, in standard deviations of a run.
pub const OUTLIER: f64 = 5.0;

/// Distance of a boot's second mode, in standard deviations of a run.
pub const SECOND_MODE: f64 = 3.0;

/// How far off the stated size of the change is: standard deviation of its logarithm.
const CLAIM_SD: f64 = 0.25;

/// Pairs of commits tried until one is an ancestor of the other.
const PAIRS: u64 = 1000;

/// What blurs a measurement. Standard deviations and sizes are in units of the run-to-run standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Noise {
    /// Standard deviation from boot to boot.
    pub boot: f64,
    /// Standard deviation from build to build: drawn once a commit (code layout), the same in all its boots.
    pub build: f64,
    /// Share of runs that are [`OUTLIER`] too high.
    pub outliers: f64,
    /// Slow drift, a run.
    pub drift_linear: f64,
    /// Slow drift as a random walk: its standard deviation, a run.
    pub drift_walk: f64,
    /// Share of boots in a second mode, [`SECOND_MODE`] higher.
    pub bimodal: f64,
    /// Share of commits that do not build. Endpoints and the good side always do.
    pub unbuildable: f64,
}

/// What changes between good and bad. Sizes in units of the run-to-run standard deviation, positive or negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// Nothing; the size is what the user believes.
    None(f64),
    /// One culprit.
    One(f64),
    /// Two culprits, in random order on one line of ancestry.
    Two(f64, f64),
}

impl Change {
    /// Difference between the endpoints; for none, the one believed in.
    pub fn net(self) -> f64 {
        match self {
            Self::None(size) | Self::One(size) => size,
            Self::Two(first, second) => first + second,
        }
    }
}

/// One history with its culprits, one machine, one user.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    graph: Arc<Graph>,
    steps: Vec<(usize, f64)>,
    claim: f64,
    noise: Noise,
    seed: u64,
    /// Level of each node; empty on a line, where it is cheap to find.
    levels: Vec<f64>,
}

impl World {
    /// The instance of that seed: where the culprits are, how far off the user is, every later number. Seeds give the
    /// same places and noise for all sizes of the change.
    pub fn instance(graph: &Arc<Graph>, change: Change, noise: Noise, seed: u64) -> Self {
        let steps = match change {
            Change::None(_) => Vec::new(),
            Change::One(size) => vec![(culprit(graph, seed, 0), size)],
            Change::Two(first, second) => {
                let (early, late) = related(graph, seed);
                let swap = uniform(seed, Draw::Order, [0; 3]) < 0.5;
                let (first, second) = if swap { (second, first) } else { (first, second) };
                vec![(early, first), (late, second)]
            }
        };
        let claim = change.net() * (CLAIM_SD * normal(seed, Draw::Claim, [0; 3])).exp();
        Self::new(Arc::clone(graph), steps, claim, noise, seed)
    }

    /// A world with these steps `(node, jump)`; `claim` is the change as the user states it.
    pub fn new(graph: Arc<Graph>, steps: Vec<(usize, f64)>, claim: f64, noise: Noise, seed: u64) -> Self {
        let levels = if graph.is_line() { Vec::new() } else { levels(&graph, &steps) };
        Self { graph, steps, claim, noise, seed, levels }
    }

    /// The same culprit on a machine without outliers, drift, modes and build-to-build noise; of several culprits only
    /// the largest of the asked sign. What an oracle is given.
    pub fn undisturbed(&self) -> Self {
        let noise = Noise { boot: self.noise.boot, unbuildable: self.noise.unbuildable, ..Noise::default() };
        let asked = |step: &&(usize, f64)| step.1 * self.claim > 0.0;
        let largest = self.steps.iter().filter(asked).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        let steps = largest.copied().into_iter().collect();
        Self::new(Arc::clone(&self.graph), steps, self.claim, noise, self.seed)
    }

    /// The commits.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The culprits and their jumps: the truth, for judging.
    pub fn steps(&self) -> &[(usize, f64)] {
        &self.steps
    }

    /// The change that the user states, size and sign.
    pub fn claim(&self) -> f64 {
        self.claim
    }

    /// What blurs measurements: the truth, for an oracle.
    pub fn noise(&self) -> &Noise {
        &self.noise
    }

    /// The level of a node: the jumps among it and its ancestors.
    pub fn level(&self, node: usize) -> f64 {
        if self.graph.is_line() {
            self.steps.iter().filter(|step| step.0 <= node).map(|step| step.1).sum()
        } else {
            self.levels[node]
        }
    }

    /// Whether a node builds.
    pub fn builds(&self, node: usize) -> bool {
        self.noise.unbuildable <= 0.0
            || node == self.graph.tip()
            || self.graph.is_root(node)
            || uniform(self.seed, Draw::Builds, [node as u64, 0, 0]) >= self.noise.unbuildable
    }
}

/// A candidate, each as likely.
fn culprit(graph: &Graph, seed: u64, number: u64) -> usize {
    let candidates = graph.candidates();
    let at = uniform(seed, Draw::Culprit, [number, candidates.len() as u64, 0]) * candidates.len() as f64;
    candidates[at as usize] as usize
}

/// Two candidates, the first an ancestor of the second, each such pair as likely.
fn related(graph: &Graph, seed: u64) -> (usize, usize) {
    for pair in 0..PAIRS {
        let (a, b) = (culprit(graph, seed, 2 * pair), culprit(graph, seed, 2 * pair + 1));
        let (early, late) = (a.min(b), a.max(b));
        if early < late && (graph.is_line() || graph.ancestors(late)[early]) {
            return (early, late);
        }
    }
    // Too few pairs are related; a culprit and a descendant of it always are.
    let tip = graph.tip();
    let early = (0..PAIRS).map(|at| culprit(graph, seed, 2 * at)).find(|&at| at != tip);
    (early.unwrap_or(tip), tip)
}

fn levels(graph: &Graph, steps: &[(usize, f64)]) -> Vec<f64> {
    let mut levels = vec![0.0; graph.len()];
    for &(step, jump) in steps {
        let mut below = vec![false; graph.len()];
        for at in step..graph.len() {
            below[at] = at == step || graph.parents(at).iter().any(|&parent| below[parent as usize]);
            if below[at] {
                levels[at] += jump;
            }
        }
    }
    levels
}

/// The machine of a world and its cost meter: one live boot at a time.
#[derive(Debug)]
pub struct Lab<'w> {
    world: &'w World,
    meter: Meter,
}

/// The state of such a machine, for those that keep the world themselves.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    builds: u32,
    boots: u32,
    runs: u32,
    built: BTreeMap<usize, bool>,
    booted: BTreeMap<usize, u32>,
    live: Option<Live>,
    walk: f64,
}

/// The live boot.
#[derive(Debug, Clone, Copy)]
struct Live {
    node: usize,
    boot: u64,
    runs: u64,
    /// What all its runs share.
    level: f64,
}

impl Meter {
    /// Builds started.
    pub fn builds(&self) -> u32 {
        self.builds
    }

    /// Boots.
    pub fn boots(&self) -> u32 {
        self.boots
    }

    /// Runs.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// Builds a node and says whether that worked. What was tried before costs nothing.
    pub fn build(&mut self, world: &World, node: usize) -> bool {
        *self.built.entry(node).or_insert_with(|| {
            self.builds += 1;
            world.builds(node)
        })
    }

    /// Boots a node, building it first if need be; `false` (and no boot) if it does not build.
    pub fn boot(&mut self, world: &World, node: usize) -> bool {
        if !self.build(world, node) {
            return false;
        }
        let noise = &world.noise;
        let count = self.booted.entry(node).or_insert(0);
        let (key, boot) = (node as u64, u64::from(*count));
        *count += 1;
        self.boots += 1;
        let mut level = world.level(node);
        if noise.build > 0.0 {
            level += noise.build * normal(world.seed, Draw::Build, [key, 0, 0]);
        }
        if noise.boot > 0.0 {
            level += noise.boot * normal(world.seed, Draw::Boot, [key, boot, 0]);
        }
        if noise.bimodal > 0.0 && uniform(world.seed, Draw::Mode, [key, boot, 0]) < noise.bimodal {
            level += SECOND_MODE;
        }
        self.live = Some(Live { node, boot, runs: 0, level });
        true
    }

    /// One run in the live boot. There must be one.
    pub fn run(&mut self, world: &World) -> f64 {
        let (seed, noise) = (world.seed, &world.noise);
        let live = self.live.as_mut().expect("a boot comes before its runs");
        let key = [live.node as u64, live.boot, live.runs];
        let mut value = live.level + normal(seed, Draw::Run, key);
        if noise.outliers > 0.0 && uniform(seed, Draw::Outlier, key) < noise.outliers {
            value += OUTLIER;
        }
        value += self.walk + noise.drift_linear * f64::from(self.runs);
        live.runs += 1;
        self.runs += 1;
        if noise.drift_walk > 0.0 {
            self.walk += noise.drift_walk * normal(seed, Draw::Drift, [u64::from(self.runs), 0, 0]);
        }
        value
    }
}

impl<'w> Lab<'w> {
    /// Nothing built, nothing spent.
    pub fn new(world: &'w World) -> Self {
        Self { world, meter: Meter::default() }
    }

    /// Builds started.
    pub fn builds(&self) -> u32 {
        self.meter.builds
    }

    /// Boots.
    pub fn boots(&self) -> u32 {
        self.meter.boots
    }

    /// Runs.
    pub fn runs(&self) -> u32 {
        self.meter.runs
    }

    /// The node that is up.
    pub fn live(&self) -> Option<usize> {
        self.meter.live.map(|live| live.node)
    }

    /// Builds a node and says whether that worked. What was tried before costs nothing.
    pub fn build(&mut self, node: usize) -> bool {
        self.meter.build(self.world, node)
    }

    /// Whether a build of the node was tried, and how that ended.
    pub fn tried(&self, node: usize) -> Option<bool> {
        self.meter.built.get(&node).copied()
    }

    /// Boots a node, building it first if need be; `false` (and no boot) if it does not build.
    pub fn boot(&mut self, node: usize) -> bool {
        self.meter.boot(self.world, node)
    }

    /// One run in the live boot. There must be one.
    pub fn run(&mut self) -> f64 {
        self.meter.run(self.world)
    }

    /// One run in a fresh boot of a node that builds.
    pub fn measure(&mut self, node: usize) -> f64 {
        assert!(self.boot(node), "only what builds is measured");
        self.run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(steps: &[(usize, f64)], noise: Noise) -> World {
        World::new(Arc::new(Graph::line(16)), steps.to_vec(), 2.0, noise, 5)
    }

    #[test]
    fn levels_on_a_line_and_on_the_same_line_as_a_graph_agree() {
        let steps = [(3, 2.0), (9, -1.0)];
        let world = line(&steps, Noise::default());
        let by_pass = levels(world.graph(), &steps);
        assert!((0..=16).all(|at| world.level(at) == by_pass[at]));
        assert_eq!([world.level(2), world.level(3), world.level(9), world.level(16)], [0.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn a_merge_inherits_a_step_from_either_side_once() {
        let graph = Graph::parse("\n0\n0\n1 2\n3\n").expect("a graph");
        let world = World::new(Arc::new(graph), vec![(2, 4.0)], 4.0, Noise::default(), 1);
        assert_eq!([0, 1, 2, 3, 4].map(|at| world.level(at)), [0.0, 0.0, 4.0, 4.0, 4.0]);
    }

    #[test]
    fn a_number_does_not_depend_on_what_was_measured_before() {
        let world = line(&[(3, 2.0)], Noise { boot: 1.0, outliers: 0.05, bimodal: 0.3, ..Noise::default() });
        let mut lab = Lab::new(&world);
        let first = lab.measure(7);
        let mut other = Lab::new(&world);
        other.measure(3);
        other.measure(16);
        assert_eq!(other.measure(7), first);
        assert_eq!((other.builds(), other.boots(), other.runs()), (3, 3, 3));
        assert_ne!(other.measure(7), first);
        assert_eq!(other.builds(), 3);
    }

    #[test]
    fn drift_moves_with_the_runs_of_the_session() {
        let quiet = line(&[], Noise::default());
        let drifting = line(&[], Noise { drift_linear: 0.5, ..Noise::default() });
        let (mut a, mut b) = (Lab::new(&quiet), Lab::new(&drifting));
        let moved: Vec<f64> = (0..4).map(|_| b.measure(2) - a.measure(2)).collect();
        assert!(moved.iter().zip([0.0, 0.5, 1.0, 1.5]).all(|(m, want)| (m - want).abs() < 1e-9), "{moved:?}");
    }

    #[test]
    fn about_the_asked_share_does_not_build_but_the_endpoints_do() {
        let graph = Arc::new(Graph::line(5000));
        let noise = Noise { unbuildable: 0.1, ..Noise::default() };
        let world = World::instance(&graph, Change::One(2.0), noise, 3);
        let broken = (0..=5000).filter(|&at| !world.builds(at)).count();
        assert!((400..600).contains(&broken), "{broken}");
        assert!(world.builds(0) && world.builds(5000));
    }

    #[test]
    fn two_culprits_lie_on_one_line_of_ancestry() {
        let graph = Arc::new(Graph::parse("\n0\n0\n1\n2\n3 4\n5\n").expect("a graph"));
        for seed in 0..50 {
            let world = World::instance(&graph, Change::Two(4.0, -2.0), Noise::default(), seed);
            let (early, late) = (world.steps()[0].0, world.steps()[1].0);
            assert!(early < late && graph.ancestors(late)[early], "{early} {late}");
        }
    }
}
