//! Pure numerics over boot means.
//!
//! Owns: the contrast of group means with unequal variances (Welch), the interval of a ratio of contrasts
//! (Fieller), the quantiles they need. Must not do: know of commits, sessions or events. The boot is the unit: each
//! number that enters is the mean of the logarithms of one boot's counted runs.
//! Tested below against published values and by simulation in tests/it/statistics.rs.

mod contrast;
mod ratio;

pub use contrast::{Contrast, Estimate, Group, StatsError};
pub use ratio::{Share, share};
