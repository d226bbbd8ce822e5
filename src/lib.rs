//! # sched-bisect
//!
//! Finds the commit that changed a kernel's performance, by building, booting and benchmarking candidates on a machine
//! under test (SUT), from repeated, noisy measurements and a statistical verdict; and says how sure it is.
//!
//! # Architecture
//!
//! A session is a fold of events. The journal is the only truth; what to do next is a pure function of plan and state.
//!
//! ```text
//!          +---------------- resume: read, verify, fold ----------------+
//!          v                                                            |
//! Plan -> State --next_action--> Action --> driver/lab --> Event --> journal (append, sync)
//!          ^        (pure)                  (ssh, qemu, git)             |
//!          +------------------------- apply (pure) <--- once durable ----+--> reporters
//! ```
//!
//! A module uses only modules above it:
//!
//! | module | owns |
//! |---|---|
//! | [`model`] | the field's words as types |
//! | [`stats`] | likelihood of boots over levels and noise, information, drift, contrasts and intervals |
//! | [`search`] | the graph of the range, the posterior over its commits, the engine that chooses what to measure |
//! | [`session`] | plan, events, state, planner, verdicts, surveys, what a machine must be like, conclusion: the heart |
//! | [`sim`] | a simulated lab with the truth known: peers, an oracle, lower bounds; what a search would cost |
//! | | *above: pure. Below: effects* |
//! | [`journal`] | the append-only log: format, checksums, torn tail, lock |
//! | [`workload`] | how benchmark output is read |
//! | [`profile`] | bisect-profiles: TOML in layers, with the origin of every value |
//! | [`history`] | git: ranges, reverts, the private worktree; never the user's checkout |
//! | [`lab`] | the ports `Builder` and `Machine`; adapters over commands, kbuild and QEMU |
//! | [`report`] | JSON, text, tables of surveys, progress, events for programs, logs |
//! | [`driver`] | the loop: journal the start, do the effect, sync, journal the end, apply, report |
//! | [`cli`] | arguments, one file a subcommand, exit statuses |
//!
//! Three things never mix: what was measured, what was decided, and what failed on our side. Only facts about a kernel
//! move the search; a failure of the lab says nothing about a commit.

pub mod cli;
pub mod driver;
pub mod history;
pub mod journal;
pub mod lab;
pub mod model;
pub mod profile;
pub mod report;
pub mod search;
pub mod session;
pub mod sim;
pub mod stats;
pub mod workload;
