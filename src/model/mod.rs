//! The field's words as types.
//!
//! Owns: identifiers, units, samples, outcomes, verdicts, conclusions. Plain data with serde; no logic beyond
//! parsing, formatting and validity. Must not do: any effect, any statistics. Every other module uses these
//! words; none defines its own. Tested beside each type.

mod address;
mod conclusion;
mod id;
mod outcome;
mod survey;
mod units;
mod verdict;

pub use address::{Address, AddressError};
pub use conclusion::{Check, Conclusion, ConclusionKind, Culprit, Explained, Restored, Suspect};
pub use id::{BootNo, CommitId, StepId, SutId};
pub use outcome::{
    Artifact, BootRecord, BootResult, BuildResult, InfraFailure, InfraKind, RunResult, Untestable,
    UntestableKind,
};
pub use survey::{Change, SurveyCell, SurveyStep};
pub use units::{Direction, Find, Metric, Relative, Sense};
pub use verdict::{Effect, Evidence, Verdict};
