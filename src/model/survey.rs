//! What a survey of kernels shows.

use super::{CommitId, Effect, Untestable};
use serde::{Deserialize, Serialize};

/// A relative change of a metric: a fraction of the reference, positive = more of it, which need not be worse; finite. The
/// interval is absent where one of both has a single boot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Point estimate.
    pub relative: f64,
    /// Lower end of the interval at the survey's level.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// One kernel under one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurveyCell {
    /// The kernel.
    pub commit: CommitId,
    /// The variant.
    pub variant: String,
    /// Boots that count.
    pub boots: u32,
    /// Runs in them that count.
    pub runs: u32,
    /// Change of the judged metric; absent for the reference itself and where either is not measured.
    pub change: Option<Change>,
    /// Why it cannot be measured.
    pub untestable: Option<Untestable>,
}

/// Two neighbours of a survey that differ by the minimum effect or more, clearly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurveyStep {
    /// The one that stands first.
    pub from: CommitId,
    /// The one after it.
    pub to: CommitId,
    /// The first variant that shows it.
    pub variant: String,
    /// The second against the first.
    pub effect: Effect,
}
