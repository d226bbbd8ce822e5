//! The heart: plan, events, state, next action. Pure: no clock, no randomness but the plan's seed, no effect.
//!
//! `State` is a fold of events ([`State::apply`]); [`next_action`] is a function of plan, graph and state. The driver
//! performs what it says, journals the resulting event and applies it. Everything the program knows after a crash
//! it knows from the journal alone. Tested in tests/it/session_random.rs with labs of chance, and through the driver
//! in tests/it/driver.rs.

mod action;
mod conclude;
mod event;
mod judge;
mod phase;
mod plan;
mod schedule;
mod state;

pub use action::{Action, next_action};
pub use conclude::{NOT_MEASURED, duration, outcome, suspects};
pub use event::{EndpointOutcome, Event, Halt};
pub use judge::{Recomputed, recompute};
pub use phase::{Over, Phase, knowledge, phase};
pub use plan::{
    Attempts, BuilderSpec, Deadlines, Endpoint, Fixup, Judging, Kbuild, MachineSpec, Plan, Purpose, Qemu,
    Recipe, Revert,
};
pub use state::{
    Boot, BootStatus, Build, CommitState, Confirmation, EndpointVerdict, OpenStep, Run, Spent, State,
    StateError,
};
