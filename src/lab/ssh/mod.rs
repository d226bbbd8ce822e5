//! A machine under test of its own, reached by ssh.
//!
//! Owns: the connection (`link`), work that outlives it (`job`), files put there (`put`), kernels installed there (`kernels`),
//! booting one of them once (`loader`), proving which one runs (`restart`, `wait`), and the [`Machine`](super::Machine) that is
//! made of them (`machine`). Must not do: judge a number. Invariants: the machine's own default entry is never changed; a
//! lost link is never a fact about a commit; nothing of a profile, a commit or an answer becomes part of a shell line.
//! Tested beside each file, in tests/it/ssh.rs over real sshd, and in tests/it/guest_lab.rs on a machine that reboots.

mod access;
mod called;
mod control;
#[cfg(test)]
mod fake_root;
pub mod far;
pub mod job;
pub mod kernels;
mod link;
pub mod loader;
mod machine;
mod notes;
mod outcome;
mod put;
mod restart;
mod sorting;
pub mod survey;
mod sut;
mod wait;

pub use self::access::{Access, HostKeys, PathError};
pub use self::link::{Link, Wires};
pub use self::machine::{Parts, SshMachine};
pub use self::notes::Notes;
