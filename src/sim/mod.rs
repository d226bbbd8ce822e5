//! A simulated lab, in which the truth is known: how good is a strategy, how sure may one be of its answer, and what
//! would a search cost in a lab like the user's?
//!
//! Owns: simulated histories and machines ([`World`], [`Lab`]), lower bounds on what any strategy must spend
//! ([`bounds`]), the rules of peers ([`peers`]), an oracle, and how an answer is judged ([`judge`]). Must not do:
//! effects; randomness other than by seed. Invariant: every number read from a machine is a pure function of seed,
//! commit, boot and run, so all strategies see the same machine. Tested here and in tests/it/simulate.rs.
//!
//! Sizes and standard deviations are in units of the run-to-run standard deviation, costs in minutes.

pub mod bounds;
mod graph;
mod oracle;
pub mod peers;
mod posterior;
mod random;
mod tally;
#[cfg(test)]
mod tests;
mod world;

pub use graph::Graph;
pub use posterior::engine;
pub use tally::{Bands, Interval, Outcome, Summary, Tally, each, wilson};
pub use world::{Change, Lab, Meter, Noise, OUTLIER, SECOND_MODE, World};

use std::fmt;
use std::str::FromStr;

/// Runs after which a search is given up.
pub const MAX_RUNS: u32 = 3000;

/// A way to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// This program's own search.
    Posterior,
    /// As `git bisect`: each commit by the mean of so many boots against the middle.
    Halving {
        /// Boots a commit, one run each.
        boots: u32,
    },
    /// `git bisect` with a sequential test at each commit.
    Sprt,
    /// Chromium's Pinpoint.
    Pinpoint,
    /// git-bayesect.
    Bayesect,
    /// Knows both levels and the noise: what is left is the search itself.
    Oracle,
}

/// Boots of plain `halving`.
const HALVING_BOOTS: u32 = 10;

impl Strategy {
    /// All, in the order of reports; `halving` once.
    pub const ALL: [Self; 6] = [
        Self::Posterior,
        Self::Halving { boots: HALVING_BOOTS },
        Self::Sprt,
        Self::Pinpoint,
        Self::Bayesect,
        Self::Oracle,
    ];

    /// Whether it knows lines of commits only.
    pub fn needs_line(self) -> bool {
        match self {
            Self::Pinpoint | Self::Bayesect => true,
            Self::Posterior | Self::Halving { .. } | Self::Sprt | Self::Oracle => false,
        }
    }

    /// Whether what it measures depends on what things cost.
    pub fn weighs_costs(self) -> bool {
        match self {
            Self::Posterior | Self::Oracle => true,
            Self::Halving { .. } | Self::Sprt | Self::Pinpoint | Self::Bayesect => false,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Posterior => f.write_str("posterior"),
            Self::Halving { boots: HALVING_BOOTS } => f.write_str("halving"),
            Self::Halving { boots } => write!(f, "halving-{boots}"),
            Self::Sprt => f.write_str("sprt"),
            Self::Pinpoint => f.write_str("pinpoint"),
            Self::Bayesect => f.write_str("git-bayesect"),
            Self::Oracle => f.write_str("oracle"),
        }
    }
}

impl FromStr for Strategy {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(boots) = text.strip_prefix("halving-") {
            return match boots.parse() {
                Ok(boots) if (1..=1000).contains(&boots) => Ok(Self::Halving { boots }),
                Ok(_) | Err(_) => {
                    Err(format!("{boots:?} boots a commit cannot be; write halving-K with K from 1 to 1000"))
                }
            };
        }
        Self::ALL.into_iter().find(|strategy| strategy.to_string() == text).ok_or_else(|| {
            let names: Vec<String> = Self::ALL.iter().map(Self::to_string).collect();
            format!("{text:?} is no strategy; there are {} and halving-K", names.join(", "))
        })
    }
}

/// What things cost, in minutes of machine time; finite, not negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// A build.
    pub build: f64,
    /// A boot.
    pub boot: f64,
    /// A run.
    pub run: f64,
}

impl Costs {
    /// Minutes of a search.
    pub fn of(&self, found: &Found) -> f64 {
        self.build * f64::from(found.builds)
            + self.boot * f64::from(found.boots)
            + self.run * f64::from(found.runs)
    }
}

/// What kind of answer a search ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Commits named.
    Named,
    /// Sets of suspects.
    Set,
    /// The endpoints do not differ.
    NoDifference,
    /// No answer.
    GaveUp,
}

/// What a search found and spent.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Each named culprit as the set of nodes it may be.
    pub named: Vec<Vec<usize>>,
    /// The kind of answer.
    pub kind: Kind,
    /// The probability that it states for its answer; NaN if it states none.
    pub stated: f64,
    /// Builds started.
    pub builds: u32,
    /// Boots.
    pub boots: u32,
    /// Runs.
    pub runs: u32,
}

impl Found {
    /// Culprits, each as the set of nodes it may be.
    pub fn culprits(lab: &Lab, named: Vec<Vec<usize>>, stated: f64) -> Self {
        let single = named.iter().all(|nodes| nodes.len() == 1);
        Self { named, ..Self::without(lab, if single { Kind::Named } else { Kind::Set }, stated) }
    }

    /// An answer that names nobody.
    pub fn without(lab: &Lab, kind: Kind, stated: f64) -> Self {
        Self { named: Vec::new(), kind, stated, builds: lab.builds(), boots: lab.boots(), runs: lab.runs() }
    }
}

/// How an answer compares with the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// Each named commit is a culprit, at least one with the asked sign; or there is none and none was named.
    Right,
    /// An innocent commit or set was named, or only culprits of the other sign.
    Wrong,
    /// The same as right, of sets of suspects.
    Set,
    /// No answer.
    None,
}

/// Judges an answer. "No difference" is right where there is none, and no answer where there is one.
pub fn judge(world: &World, found: &Found) -> Judgement {
    match found.kind {
        Kind::GaveUp => Judgement::None,
        Kind::NoDifference if world.steps().is_empty() => Judgement::Right,
        Kind::NoDifference => Judgement::None,
        Kind::Named | Kind::Set => {
            let steps_in = |set: &Vec<usize>| {
                let inside: Vec<f64> =
                    world.steps().iter().filter(|step| set.contains(&step.0)).map(|step| step.1).collect();
                inside
            };
            let hit: Vec<Vec<f64>> = found.named.iter().map(steps_in).collect();
            let asked = hit.iter().flatten().any(|jump| jump * world.claim() > 0.0);
            if !asked || hit.iter().any(Vec::is_empty) {
                Judgement::Wrong
            } else if found.named.iter().all(|set| set.len() == 1) {
                Judgement::Right
            } else {
                Judgement::Set
            }
        }
    }
}

/// Searches a world. A strategy that needs a line must be given one.
pub fn search(strategy: Strategy, world: &World, costs: &Costs) -> Found {
    match strategy {
        Strategy::Posterior => posterior::search(world, costs),
        Strategy::Halving { boots } => peers::halving::search(world, boots),
        Strategy::Sprt => peers::sprt::search(world),
        Strategy::Pinpoint => peers::pinpoint::search(world),
        Strategy::Bayesect => peers::bayesect::search(world),
        Strategy::Oracle => oracle::search(world, costs),
    }
}
