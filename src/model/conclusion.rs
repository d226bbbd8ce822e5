//! How a session ends.

use super::{CommitId, Effect};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A share of the endpoint difference with its interval: 1 = all of it; may lie outside `[0, 1]`; finite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Point estimate.
    pub share: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Adding zero turns "-0" into "0".
        let percent = |x: f64| (x * 100.0).round() + 0.0;
        write!(f, "{} % ({} to {} %)", percent(self.share), percent(self.low), percent(self.high))
    }
}

/// Share of the endpoint difference that a revert brought back. Same shape as [`Explained`].
pub type Restored = Explained;

/// One commit that may be the culprit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// The commit.
    pub commit: CommitId,
    /// Probability of being the culprit, in `[0, 1]`.
    pub probability: f64,
    /// Why it is not excluded ("does not build: ...").
    pub reason: String,
}

/// A check of the conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Done, agreed.
    Pass,
    /// Done, disagreed.
    Fail,
    /// Not done.
    NotRun,
}

/// The kind of an end; stable names in the JSON report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConclusionKind {
    /// One commit, every parent measured.
    Culprit,
    /// A set of commits that cannot be told apart.
    CulpritSet,
    /// The endpoints do not differ.
    NoDifference,
    /// The endpoints differ the other way round.
    OppositeSign,
    /// The culprit's image equals its parent's.
    NoopChange,
    /// A measured good commit after a measured bad ancestor, and no single edge to name.
    NotMonotonic,
    /// Ended before an answer.
    Stopped,
    /// Revert test: the difference came back.
    Restored,
    /// Revert test: a part came back.
    Partial,
    /// Revert test: nothing came back.
    NoEffect,
    /// Revert test: the revert conflicts.
    CannotRevert,
    /// Revert test: the change is not in there any more.
    AlreadyReverted,
    /// Revert test: the reverted kernel cannot be measured.
    NotMeasurable,
    /// Survey: its table is complete.
    Surveyed,
}

/// One step that was found and confirmed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Culprit {
    /// The kernel that shows the step.
    pub commit: CommitId,
    /// The commits that may have made it: that one, or more where some cannot be measured.
    pub suspects: Vec<CommitId>,
    /// The kernels before it, each measured.
    pub parents: Vec<CommitId>,
    /// Posterior probability that one of the suspects made it, in `[0, 1]`.
    pub probability: f64,
    /// Its effect against the parent it differs least from.
    pub effect: Effect,
    /// Share of the endpoint difference; negative for a step of the other sign.
    pub explained: Option<Explained>,
}

/// The end of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    /// Kind.
    pub kind: ConclusionKind,
    /// The commit named: culprit, or the commit of a revert test.
    pub commit: Option<CommitId>,
    /// Lower bound of the probability that the conclusion is right, in `[0, 1]`; absent where none is claimed.
    pub probability: Option<f64>,
    /// Whether fresh, interleaved boots of culprit and parents agreed.
    pub confirmed: bool,
    /// Culprit against its parents; for a revert test the reverted kernel against bad.
    pub effect: Option<Effect>,
    /// All kernels with the change against all without it, each side taken as one level; where one step was found.
    #[serde(default)]
    pub sides: Option<Effect>,
    /// Share of the endpoint difference that the culprit explains.
    pub explained: Option<Explained>,
    /// Share that the revert brought back.
    pub restored: Option<Restored>,
    /// Every step that was found, in the order of the history; the first of the asked sign is `commit`.
    #[serde(default)]
    pub culprits: Vec<Culprit>,
    /// The commits that remain possible, for a set or a stop.
    pub suspects: Vec<Suspect>,
    /// Pairs (bad ancestor, good descendant) that contradict a single step.
    pub not_monotonic: Vec<(CommitId, CommitId)>,
    /// Whether the culprit lies outside the given paths.
    pub outside_paths: bool,
    /// One paragraph: what was found or why it ended.
    pub reason: String,
    /// What to do next: one sentence with a command where there is one.
    pub next_step: String,
    /// Exit status of the program that reports this.
    pub exit: u8,
}
