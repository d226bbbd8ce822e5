//! Pure numerics over boots and runs.
//!
//! Owns: the likelihood of a boot over a grid of levels and noise hypotheses ([`Grid`]), the information of a measurement,
//! drift, two modes of boots, the contrast of group means with unequal variances (Welch), the interval of a ratio of contrasts (Fieller). Must
//! not do: know of commits, sessions or events. The boot is the unit: runs of one boot share its effect.
//! Tested below against published values and by simulation in tests/it/statistics.rs.

mod contrast;
mod drift;
mod information;
mod median;
mod modes;
mod noise;
mod position;
mod ratio;

pub use contrast::{Contrast, Estimate, Group, StatsError, t_tail};
pub use drift::{Drift, drift};
pub use information::{Component, mutual_information};
pub use median::median;
pub use modes::{Boots, FoundModes, find_modes};
pub use noise::{Grid, Modes, Noise, Tail, log_sum_exp};
pub use position::{FirstRun, first_run};
pub use ratio::{Share, share};
