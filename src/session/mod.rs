//! The heart: plan, events, state, next action. Pure: no clock, no randomness but the plan's seed, no effect.
//!
//! `State` is a fold of events ([`State::apply`]); the [`Planner`] feeds the search's engine with a state's facts, and
//! [`next_action`] is a function of plan, graph and state. The driver performs what it says, journals the resulting event
//! and applies it. Everything the program knows after a crash it knows from the journal alone. Tested in
//! tests/it/session_random.rs with labs of chance, and through the driver in tests/it/driver.rs.

mod action;
mod blocks;
mod conclude;
pub mod environment;
mod event;
mod further;
mod judge;
mod known;
mod outlook;
mod plan;
mod planner;
mod revert;
mod setup;
mod shift;
mod ssh;
mod state;
mod survey;

pub use action::{Action, next_action};
pub use blocks::{Cell, change, untestable};
pub use conclude::{NOT_MEASURED, duration, outcome};
pub use environment::Watch;
pub use event::{EndpointOutcome, Event, Halt, Narrowing};
pub use further::{Further, further};
pub use judge::{Recomputed, against_good, recompute};
pub use known::knowledge;
pub use outlook::{Outlook, Play, play};
pub use plan::{
    Attempts, BuildOn, BuilderSpec, Costs, Deadlines, Endpoint, Fixup, Judging, Kbuild, Kernel, Lineage,
    MachineSpec, Place, Plan, Purpose, Qemu, Reading, Recipe, Revert, Survey,
};
pub use planner::{Next, Planner, Wish, choice};
pub use setup::{
    Beside, Canary, LDG, NamedVariant, Phase, SUT, Saturation, Settle, Setup, Steady, Step, Variant,
};
pub use ssh::{HostKeys, Reach, Ssh};
pub use state::{
    Boot, BootStatus, Build, CellState, CommitState, Confirmation, EndpointVerdict, Fact, OpenStep, Run,
    Spent, State, StateError, Took,
};
pub use survey::{Follow, amounts, cells, follow, lost, reference, surveyed};
