//! The practical floor: a search that knows both levels and the noise.
//!
//! It still must find the culprit: Bayes with equal priors, the next measurement by information per minute, an answer at
//! probability [`CONFIDENCE`]. It pays neither for learning the levels nor for confirmation. Its machine is the same one
//! without outliers, drift, modes and build-to-build noise, with one culprit (`World::undisturbed`): what these cost is
//! part of what a strategy is measured by.

mod graph;
mod line;

use super::bounds::Table;
use super::{Costs, Found, Kind, Lab, MAX_RUNS, World};
use graph::Net;
use line::Line;

/// Probability of the answer.
const CONFIDENCE: f64 = 0.99;

/// Boots of a new commit that are weighed when deciding whether to build it.
const LOOK_AHEAD: [u32; 7] = [1, 2, 3, 4, 6, 9, 14];

/// Where to build next: commits that are bad with about these probabilities.
const SHARES: [f64; 3] = [0.5, 0.25, 0.75];

/// A built commit whose side is this sure is not booted again.
const SURE: f64 = 1e-4;

/// What an action is taken to cost at least, in minutes.
const LEAST_COST: f64 = 1e-9;

/// A commit that could be built, and the probability that it is bad.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Site {
    node: usize,
    bad: f64,
}

/// What is believed of the culprit. Nodes are commits of the graph.
trait Belief {
    /// Adds evidence: the log likelihood ratio of "bad" to "good" for a node.
    fn learn(&mut self, node: usize, log_ratio: f64);
    /// Measured nodes and the probability that each is bad.
    fn measured(&self) -> Vec<Site>;
    /// Nodes not measured that would be worth a build: bad with probabilities near [`SHARES`].
    fn sites(&self) -> Vec<Site>;
    /// Builds a site, or one as good; `None` if there is none that builds.
    fn build(&mut self, lab: &mut Lab, site: Site) -> Option<usize>;
    /// The answer and its probability, if that is at least [`CONFIDENCE`] and no commit could narrow it.
    fn answer(&self) -> Option<(Vec<usize>, f64)>;
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Action {
    /// One more run in the live boot.
    Run,
    /// A boot of a built commit, with one run.
    Boot(usize),
    /// A build, and the first boot.
    Build(Site),
}

/// Searches a world.
pub fn search(world: &World, costs: &Costs) -> Found {
    play(world, costs, true)
}

/// With `more_runs`, boots may be used for more than one run.
pub(super) fn play(world: &World, costs: &Costs, more_runs: bool) -> Found {
    let world = world.undisturbed();
    let mut lab = Lab::new(&world);
    let Some(&(_, jump)) = world.steps().first() else {
        return Found::without(&lab, Kind::NoDifference, 1.0);
    };
    lab.build(world.graph().good());
    lab.build(world.graph().tip());
    let machine = Machine { jump, boot: world.noise().boot, costs: *costs, more_runs };
    if world.graph().is_line() {
        go_on(&mut lab, Line::new(world.graph().tip()), &machine)
    } else {
        go_on(&mut lab, Net::new(&world), &machine)
    }
}

fn go_on(lab: &mut Lab, mut belief: impl Belief, machine: &Machine) -> Found {
    let mut live = Live::default();
    while lab.runs() < MAX_RUNS {
        if let Some((named, stated)) = belief.answer() {
            return Found::culprits(lab, vec![named], stated);
        }
        match machine.best(&belief, &live) {
            None => break,
            Some(Action::Run) => {
                let before = machine.log_ratio(&live);
                live.add(lab.run());
                belief.learn(live.node, machine.log_ratio(&live) - before);
            }
            Some(Action::Boot(node)) => live = boot(lab, &mut belief, machine, node),
            Some(Action::Build(site)) => {
                if let Some(node) = belief.build(lab, site) {
                    live = boot(lab, &mut belief, machine, node);
                }
            }
        }
    }
    Found::without(lab, Kind::GaveUp, f64::NAN)
}

fn boot(lab: &mut Lab, belief: &mut impl Belief, machine: &Machine, node: usize) -> Live {
    let mut live = Live { node, ..Live::default() };
    live.add(lab.measure(node));
    belief.learn(node, machine.log_ratio(&live));
    live
}

/// The live boot and the mean of its runs.
#[derive(Debug, Default)]
struct Live {
    node: usize,
    runs: u32,
    mean: f64,
}

impl Live {
    fn add(&mut self, value: f64) {
        self.runs += 1;
        self.mean += (value - self.mean) / f64::from(self.runs);
    }
}

/// The action of most worth so far; the first of equals.
#[derive(Debug, Default)]
struct Best {
    worth: f64,
    action: Option<Action>,
}

impl Best {
    fn weigh(&mut self, worth: f64, action: Action) {
        if worth > self.worth {
            *self = Self { worth, action: Some(action) };
        }
    }
}

/// What is known of the machine. The good level is 0, a run's variance 1.
struct Machine {
    jump: f64,
    /// Boot-to-boot standard deviation.
    boot: f64,
    costs: Costs,
    more_runs: bool,
}

impl Machine {
    /// Variance of the mean of `boots` boots of `runs` runs.
    fn variance(&self, boots: u32, runs: u32) -> f64 {
        (self.boot * self.boot + 1.0 / f64::from(runs)) / f64::from(boots)
    }

    /// Log likelihood ratio of bad to good by what the live boot gave.
    fn log_ratio(&self, live: &Live) -> f64 {
        let variance = self.variance(1, live.runs);
        self.jump * (live.mean - self.jump / 2.0) / variance
    }

    fn boot_cost(&self, runs: u32) -> f64 {
        self.costs.boot + f64::from(runs) * self.costs.run
    }

    /// The action that tells most about the culprit for its cost.
    fn best(&self, belief: &impl Belief, live: &Live) -> Option<Action> {
        let mut best = Best::default();
        for site in belief.measured().into_iter().filter(|site| (SURE..1.0 - SURE).contains(&site.bad)) {
            for &runs in self.runs() {
                let worth = self.worth(site.bad, self.variance(1, runs), self.boot_cost(runs));
                best.weigh(worth, Action::Boot(site.node));
            }
            if self.more_runs && site.node == live.node {
                let worth = self.worth(site.bad, self.next_run(live.runs), self.costs.run);
                best.weigh(worth, Action::Run);
            }
        }
        // No commit tells more than one that is as likely bad as good, and on a large graph the sites take most time.
        if self.worth_of_build(0.5) > best.worth {
            for site in belief.sites() {
                best.weigh(self.worth_of_build(site.bad), Action::Build(site));
            }
        }
        best.action
    }

    /// Bits about the culprit a minute, for a measurement of a commit that is bad with this probability.
    fn worth(&self, bad: f64, variance: f64, cost: f64) -> f64 {
        Table::get().information(bad, self.jump.abs() / variance.sqrt()) / cost.max(LEAST_COST)
    }

    /// The same for a new commit, followed by as many boots, or runs of one boot, as are best.
    fn worth_of_build(&self, bad: f64) -> f64 {
        let boots = LOOK_AHEAD.iter().map(|&boots| {
            let cost = self.costs.build + f64::from(boots) * self.boot_cost(1);
            self.worth(bad, self.variance(boots, 1), cost)
        });
        let runs = self
            .runs()
            .iter()
            .map(|&runs| self.worth(bad, self.variance(1, runs), self.costs.build + self.boot_cost(runs)));
        boots.chain(runs).fold(0.0, f64::max)
    }

    /// Runs of one boot that are weighed.
    fn runs(&self) -> &'static [u32] {
        if self.more_runs { &LOOK_AHEAD } else { &LOOK_AHEAD[..1] }
    }

    /// Variance, per squared jump, of one more run in a boot that had `runs`: the boot's luck is partly known by then.
    fn next_run(&self, runs: u32) -> f64 {
        let (boot, runs) = (self.boot * self.boot, f64::from(runs));
        let known = boot / (boot + 1.0 / runs);
        (1.0 + boot / (runs * boot + 1.0)) / (1.0 - known).powi(2)
    }
}
