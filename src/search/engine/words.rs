//! What the search is asked, what it decides and what it wants done.

use crate::search::belief::Scope;
use crate::search::worth::{Choice, Measure};

/// What is looked for and how surely.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Effect claimed, or the smallest worth finding: log units, positive = worse.
    pub claim: f64,
    /// Smallest worth finding, log units; > 0.
    pub minimum: f64,
    /// Signs that count: `Some(+1)` a regression, `Some(-1)` an improvement, `None` either.
    pub sign: Option<i8>,
    /// Probability asked of a name, in (0.5, 1).
    pub confidence: f64,
    /// Least boots of each endpoint; >= 2.
    pub boots: usize,
    /// Most boots of each endpoint at the gate; 0 = by the power analysis.
    pub most_boots: usize,
    /// Most runs in all before the search gives up; 0 = no limit.
    pub most_runs: u64,
    /// Seed of every order.
    pub seed: u64,
}

/// What the endpoints came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// A change of this sign (+1 worse).
    Change(i8),
    /// No change.
    None,
    /// A change of the sign that was not asked for.
    Opposite,
    /// Neither shown nor excluded with all boots.
    Open,
}

/// Why a scope was narrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Narrowing {
    /// Three levels: this kernel is on the middle one.
    ThreeLevels(usize),
    /// A bad kernel inside a good one.
    NotMonotonic {
        /// The bad one.
        bad: usize,
        /// The good one that contains it.
        good: usize,
    },
    /// A culprit was found and explains only part.
    Rest,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With the culprits found.
    Found,
    /// No change between the endpoints.
    NoChange,
    /// The other sign.
    Opposite,
    /// Neither a change nor none.
    NotReproduced,
    /// Confirmations were refuted again and again.
    Unconfirmed,
    /// Nothing that can be measured tells more.
    Stuck,
    /// All runs allowed are used.
    Spent,
}

/// A decision, to be recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The endpoints are judged.
    Gate(Gate),
    /// The search goes on in a part of the range; with a scope that was left before: that part was the wrong one.
    Narrowed(Scope, Narrowing),
    /// Fresh boots begin: of the kernel that shows the step and of the kernels right before it.
    Confirm {
        /// The earliest measured (or measurable) kernel with the step.
        tip: usize,
        /// Kernels before it.
        parents: Vec<usize>,
    },
    /// They are over: the step is confirmed, refuted, or not any more the likeliest (`None`).
    Confirmed(Option<bool>),
    /// Nothing is left to do.
    Over(Ending),
}

/// Why something is measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// The endpoints are not judged yet.
    Gate,
    /// Whether there is a change at all is in doubt.
    Doubt,
    /// Whether a kernel between two levels owes that to its build: its neighbour tells.
    Neighbour,
    /// To follow the machine's drift.
    Reference,
    /// A culprit is confirmed.
    Confirmation,
    /// It tells most for its cost.
    Worth(Choice),
}

/// What to do now.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Record this decision and ask again.
    Decide(Decision),
    /// Measure.
    Measure {
        /// What.
        measure: Measure,
        /// Stage of the boot.
        stage: u32,
        /// Why.
        why: Why,
    },
    /// It is over.
    Over,
}

/// A culprit that was confirmed.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The kernel that shows the step.
    pub tip: usize,
    /// The kernels before it that do not.
    pub parents: Vec<usize>,
    /// The commits that may be it: `tip`, or more where some cannot be measured.
    pub suspects: Vec<usize>,
    /// Posterior probability that it is among them.
    pub probability: f64,
    /// Stages of its fresh boots: first and last.
    pub stages: (u32, u32),
}
