//! Which commit to measure next.
//!
//! Owns: the graph of the range ([`Dag`]), what is known of its commits ([`Knowledge`]), the commits that may still
//! be the culprit, and the choice among them ([`next`]). Must not do: judge samples, know of events or effects.
//! Invariant: only measured verdicts move the search; an untestable commit stays a suspect until its descendants and
//! ancestors settle it. Tested here and, against git, in tests/it/search.rs.

mod belief;
mod choose;
mod dag;
mod engine;
mod graph;
mod knowledge;
mod steps;
mod stretch;
mod testable;
mod verify;
mod worth;

pub use belief::{Belief, BootRuns, Class, Kernel, Level, Levels, Scope};
pub use choose::{Next, next};
pub use dag::{Dag, Node};
pub use engine::{Decision, Ending, Engine, Found, Gate, Narrowing, Options, Step, Why};
pub use graph::Graph;
pub use knowledge::{Knowledge, Known, Remaining};
pub use stretch::{Stretch, between, broken_stretches};
pub use worth::{Choice, Costs, Live, Measure, Valued};
