//! Which commit to measure next.
//!
//! Owns: the graph of the range ([`Dag`], packed: [`Graph`]), the posterior over its commits ([`Belief`]), the value of a
//! measurement, the machine of states from gate to confirmation ([`Engine`]), what verdicts say of the graph
//! ([`Knowledge`]). Must not do: know of events, sessions or effects. Invariant: only measurements move the search; an
//! untestable commit stays a suspect until its descendants and ancestors settle it. Tested here and by `simulate`.

mod belief;
mod dag;
mod engine;
mod graph;
mod knowledge;
mod odds;
mod steps;
mod stretch;
mod testable;
#[cfg(test)]
mod tests;
mod verify;
mod worth;

pub use belief::{Belief, BootRuns, Class, Kernel, Level, Levels, Scope};
pub use dag::{Dag, Node};
pub use engine::{Beside, Decision, Ending, Engine, Found, Gate, Narrowing, Options, Step, Why};
pub use graph::Graph;
pub use knowledge::{Knowledge, Known, Remaining};
pub use steps::own_odds;
pub use stretch::{Stretch, between, broken_stretches};
pub use worth::{Choice, Costs, Live, Measure, Valued};
