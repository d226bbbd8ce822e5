//! Exit statuses, documented once. A conclusion carries its own (see `Conclusion::exit`).

/// Done: a culprit was found, a revert restores, a survey is complete, or the command did what it was asked.
pub const DONE: u8 = 0;
/// A fault of the program.
pub const BUG: u8 = 1;
/// Wrong arguments, profile or repository.
pub const USAGE: u8 = 2;
/// Only a set of suspects was found, a revert restores a part, or a kernel of a survey cannot be measured.
pub const SET: u8 = 3;
/// The endpoints do not differ, differ the other way round, or a revert has no effect.
pub const NO_DIFFERENCE: u8 = 4;
/// Our side broke; resumable.
pub const INFRASTRUCTURE: u8 = 5;
/// The budget is used up; resumable.
pub const BUDGET: u8 = 6;
/// The journal is refused, or an audit found differences.
pub const JOURNAL: u8 = 7;
/// The culprit changes nothing in the image, or the commit is reverted already.
pub const NOOP: u8 = 8;
/// Good commits after bad ones and no single edge to name.
pub const NOT_MONOTONIC: u8 = 9;
/// The revert conflicts.
pub const CANNOT_REVERT: u8 = 10;
/// The reverted kernel cannot be measured; `parse`: the run is invalid.
pub const NOT_MEASURABLE: u8 = 11;
/// Interrupted; resumable.
pub const INTERRUPTED: u8 = 75;
