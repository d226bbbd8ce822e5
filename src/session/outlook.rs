//! What is still to come, by playing the search on with what is believed.
//!
//! From the state of the engine a culprit is drawn from the posterior and its measurements from the believed levels and
//! noise; then the engine itself works to its end. Pure: the seed decides everything.

use crate::search::{Costs, Decision, Ending, Engine, Live, Measure, Step};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Measurements after which a play is given up.
const LONGEST: usize = 3000;

/// How one play went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Play {
    /// Builds, boots, runs from now on.
    pub builds: u32,
    /// Boots.
    pub boots: u32,
    /// Runs.
    pub runs: u32,
    /// Machine time in the unit of the costs.
    pub cost: f64,
    /// Whether it ended with a name or a set.
    pub answered: bool,
}

/// Plays the search on; `None` before the endpoints have a grid.
pub fn play(engine: &Engine, costs: Costs, seed: u64) -> Option<Play> {
    engine.belief().grid()?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let truth = Truth::draw(engine, &mut rng)?;
    let mut engine = engine.clone();
    let mut play = Play { builds: 0, boots: 0, runs: 0, cost: 0.0, answered: false };
    let mut boot = 1 << 40;
    let (mut level, mut live): (f64, Option<Live>) = (0.0, None);
    for _ in 0..LONGEST {
        match engine.next(costs, live) {
            Step::Decide(Decision::Over(ending)) => {
                play.answered = ending == Ending::Found;
                return Some(play);
            }
            Step::Over => return Some(play),
            Step::Decide(decision) => engine.decide(&decision),
            Step::Measure { measure, stage, .. } => {
                let (node, runs) = match measure {
                    Measure::Run { node } => (node, 1),
                    Measure::Boot { node, runs } | Measure::Build { node, runs } => {
                        play.builds += u32::from(matches!(measure, Measure::Build { .. }));
                        play.boots += 1;
                        boot += 1;
                        level = truth.boot(node, &mut rng);
                        (node, runs)
                    }
                };
                play.runs += runs;
                let values: Vec<f64> = (0..runs).map(|_| level + truth.run * normal(&mut rng)).collect();
                engine.observe(node, boot, stage, &values);
                engine.boot_over();
                let before = live.filter(|l| l.node == node && matches!(measure, Measure::Run { .. }));
                live = Some(Live { node, runs: before.map_or(0, |l| l.runs) + runs as usize });
                play.cost = f64::from(play.builds) * costs.build
                    + f64::from(play.boots) * costs.boot
                    + f64::from(play.runs) * costs.run;
            }
        }
    }
    Some(play)
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// The world of one play.
struct Truth {
    bad: Vec<bool>,
    levels: (f64, f64),
    boot: f64,
    run: f64,
}

impl Truth {
    fn draw(engine: &Engine, rng: &mut ChaCha8Rng) -> Option<Self> {
        let belief = engine.belief();
        let by_node = belief.by_node();
        let mut left = rng.random_range(0.0..1.0) * by_node.iter().sum::<f64>();
        let culprit = by_node.iter().position(|p| {
            left -= p;
            *p > 0.0 && left <= 0.0
        })?;
        let levels = belief.levels(belief.leader());
        // What contains the culprit.
        let graph = belief.graph();
        let mut bad = vec![false; graph.len()];
        for at in culprit..graph.len() {
            bad[at] = at == culprit || graph.parents(at).any(|p| bad[p]);
        }
        let (boot, run) = (levels.boot.sqrt(), levels.run_variance.sqrt());
        Some(Self { bad, levels: (levels.good.mean, levels.bad.mean), boot, run })
    }

    fn boot(&self, node: usize, rng: &mut ChaCha8Rng) -> f64 {
        let level = if self.bad[node] { self.levels.1 } else { self.levels.0 };
        level + self.boot * normal(rng)
    }
}

/// Many plays.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outlook {
    plays: Vec<Play>,
}

impl Outlook {
    /// Plays with the seeds from 0 on as long as `go_on` says (asked with the number played so far).
    pub fn of(engine: &Engine, costs: Costs, go_on: impl Fn(usize) -> bool) -> Self {
        let mut plays = Vec::new();
        while go_on(plays.len()) {
            match play(engine, costs, plays.len() as u64) {
                Some(play) => plays.push(play),
                None => break,
            }
        }
        plays.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        Self { plays }
    }

    /// Number of plays.
    pub fn len(&self) -> usize {
        self.plays.len()
    }

    /// Whether nothing was played.
    pub fn is_empty(&self) -> bool {
        self.plays.is_empty()
    }

    /// The play that a share of them does not exceed in cost, `share` in (0, 1].
    pub fn quantile(&self, share: f64) -> Option<&Play> {
        let at = (share * self.plays.len() as f64).ceil() as usize;
        self.plays.get(at.saturating_sub(1))
    }

    /// Share of plays that have an answer within a cost, in [0, 1].
    pub fn answered_within(&self, cost: f64) -> f64 {
        let within = self.plays.iter().filter(|p| p.answered && p.cost <= cost).count();
        within as f64 / self.plays.len().max(1) as f64
    }
}
