//! The loop between the pure session and the lab.
//!
//! Owns: the order "journal the start, do the effect, sync its log, journal the end, apply, report"; one effect per
//! machine at a time; signals; taking a session up again. Must not do: decide what to measure (session does) or how
//! (lab does). A journal error stops the session; a reporter has no way to. Tested in tests/it/driver.rs over scripted
//! labs and in tests/it/resume.rs over real processes.

mod bundle;
mod clock;
mod effects;
mod open;
mod store;

pub use bundle::{export, import, is_plain};
pub use clock::{Clock, SystemClock};
pub use effects::Lab;
pub use open::{create, load, range_digest, resume, take_up};
pub use store::{SessionDir, StateRoot};

use crate::journal::{Journal, JournalError, Record, Storage};
use crate::model::{BootNo, BootResult, CommitId, InfraFailure, InfraKind, RunResult, StepId, SutId};
use crate::report::Reporter;
use crate::search::Dag;
use crate::session::{Action, Event, Planner, State, StateError, environment, next_action};
use effects::{Done, Effects};
use std::path::PathBuf;
use thiserror::Error;
use tokio::sync::mpsc::Receiver;

/// Why a session cannot go on.
#[derive(Debug, Error)]
pub enum DriverError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A record that does not fit those before it.
    #[error(
        "replay record {seq} of {path}: {source}. The journal was not written by this program's rules; it is kept as it is"
    )]
    State {
        /// Journal.
        path: PathBuf,
        /// Record.
        seq: u64,
        /// What does not fit.
        source: StateError,
    },
    /// An event of our own does not apply: a fault of the program.
    #[error("{0}")]
    Bug(#[from] StateError),
    /// The stored range is not the plan's.
    #[error("read {path}: {reason}. Restore it from a copy, or start a new session")]
    Range {
        /// Range file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A session of that name is there.
    #[error(
        "start session {name}: it exists already ({path}); `sched-bisect resume {name}` goes on with it, --session NAME starts another"
    )]
    Exists {
        /// Name.
        name: String,
        /// Where.
        path: PathBuf,
    },
    /// No such session.
    #[error("find session {name} in {path}: there is none; `sched-bisect list` shows what there is")]
    Missing {
        /// Name, or "any".
        name: String,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A session that came as a file from elsewhere.
    #[error(
        "go on with session {name}: it was imported, and can only be read; to measure here, start a session (its report tells the command)"
    )]
    Imported {
        /// Name.
        name: String,
    },
    /// A file that is no session.
    #[error("import {path}: {reason}")]
    Bundle {
        /// It.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The operating system refused.
    #[error("use {path}: {source}{}", crate::journal::next_step(source))]
    Io {
        /// Path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Finish the open steps, start none.
    AfterStep,
    /// End the open steps now.
    Now,
}

/// How a process's work on a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Concluded or halted: the state tells.
    Done,
    /// By a signal; resumable.
    Interrupted,
}

/// A session at work.
pub struct Driver<S> {
    /// Graph of the range.
    pub dag: Dag,
    /// State so far.
    pub state: State,
    /// Its place on disk.
    pub dir: SessionDir,
    journal: Journal<S>,
    clock: Box<dyn Clock>,
    reporters: Vec<Box<dyn Reporter>>,
}

impl<S: Storage> Driver<S> {
    /// Puts the parts together. The journal is at its end and `state` is its fold.
    pub fn new(dag: Dag, state: State, dir: SessionDir, journal: Journal<S>, clock: Box<dyn Clock>) -> Self {
        Self { dag, state, dir, journal, clock, reporters: Vec::new() }
    }

    /// Adds a listener to the events from here on.
    pub fn report_to(&mut self, reporter: Box<dyn Reporter>) {
        self.reporters.push(reporter);
    }

    /// Ends the reporting; what a reporter draws is cleared.
    pub fn stop_reporting(&mut self) {
        self.reporters.clear();
    }

    /// Journals an event, applies it, reports it: in this order, so that nothing is relied on that is not on disk.
    pub fn record(&mut self, event: &Event) -> Result<Record, DriverError> {
        let record = self.journal.append(self.clock.now_ms(), event)?;
        self.state.apply(record.at, event)?;
        for reporter in &mut self.reporters {
            reporter.on_event(&record, &self.state, &self.dag);
        }
        Ok(record)
    }

    /// Works until the session is concluded, halted or told to stop. Ends every child before it returns.
    pub async fn run(&mut self, lab: Lab, mut stop: Receiver<Stop>) -> Result<End, DriverError> {
        let mut effects = Effects::new(lab, self.dir.clone());
        let mut stopping = false;
        let mut planner = Planner::of(&self.dag, &self.state);
        loop {
            if stopping && effects.is_idle() {
                self.end_live_boots(&mut effects).await?;
                return Ok(End::Interrupted);
            }
            let action =
                if stopping { Action::Wait } else { next_action(&mut planner, &self.dag, &self.state) };
            tracing::debug!(?action, "next");
            match action {
                Action::Done => return Ok(End::Done),
                Action::Decide(event) => drop(self.record(&event)?),
                Action::Wait => tokio::select! {
                    done = effects.next() => self.finish(done)?,
                    asked = stop.recv() => match asked {
                        Some(Stop::AfterStep) => stopping = true,
                        Some(Stop::Now) => {
                            effects.abandon().await;
                            return Ok(End::Interrupted);
                        }
                        // No signals can come any more: go on without them.
                        None => { let done = effects.next().await; self.finish(done)?; }
                    },
                },
                Action::Build { commit } => self.start_build(&mut effects, commit)?,
                Action::Boot { commit, stage, slot, runs, variant, sut } => {
                    self.start_boot(&mut effects, (commit, variant), (stage, slot, runs), sut)?;
                }
                Action::Run { boot, repetition } => self.start_run(&mut effects, boot, repetition)?,
                Action::EndBoot { boot } => self.end_boot(&mut effects, boot).await?,
            }
        }
    }

    fn next_step(&self) -> StepId {
        StepId(self.state.last_step + 1)
    }

    fn start_build(&mut self, effects: &mut Effects, commit: CommitId) -> Result<(), DriverError> {
        let step = self.next_step();
        self.record(&Event::BuildStarted { step, commit: commit.clone() })?;
        effects.build(&self.state, step, commit);
        Ok(())
    }

    fn start_boot(
        &mut self,
        effects: &mut Effects,
        (commit, variant): (CommitId, String),
        (stage, slot, runs): (u32, u32, u32),
        sut: SutId,
    ) -> Result<(), DriverError> {
        let step = self.next_step();
        let boot = BootNo(self.state.boots.len() as u64 + 1);
        let event =
            Event::BootStarted { step, boot, sut, commit: commit.clone(), stage, slot, runs, variant };
        self.record(&event)?;
        effects.boot(&self.state, step, boot, sut, &commit)
    }

    fn start_run(&mut self, effects: &mut Effects, boot: BootNo, repetition: u32) -> Result<(), DriverError> {
        let step = self.next_step();
        self.record(&Event::RunStarted { step, boot, repetition })?;
        effects.run(&self.state, step, boot, repetition);
        Ok(())
    }

    async fn end_boot(&mut self, effects: &mut Effects, boot: BootNo) -> Result<(), DriverError> {
        if let Some(sut) = self.state.boot(boot).map(|b| b.sut) {
            effects.off(sut).await;
        }
        self.record(&Event::BootEnded { boot }).map(drop)
    }

    async fn end_live_boots(&mut self, effects: &mut Effects) -> Result<(), DriverError> {
        while let Some(boot) = open::live_boot(&self.state) {
            self.end_boot(effects, boot).await?;
        }
        Ok(())
    }

    fn finish(&mut self, done: Done) -> Result<(), DriverError> {
        let event = match done {
            Done::Build { step, result } => Event::BuildFinished { step, result },
            Done::Boot { step, boot, result } => {
                Event::BootFinished { step, boot, result: self.admit_boot(boot, result) }
            }
            Done::Run { step, boot, result } => {
                Event::RunFinished { step, boot, result: admit(&self.state, boot, result) }
            }
        };
        self.record(&event).map(drop)
    }

    /// Turns away a boot id that the session has seen before: the machine did not boot anew; and a boot of a machine that is
    /// not what it was in the session's first boot. The machine itself may not know, as either may have been seen by an
    /// earlier process.
    fn admit_boot(&self, boot: BootNo, result: BootResult) -> BootResult {
        let BootResult::Booted(record) = result else { return result };
        let seen =
            self.state.boots.iter().find(|b| b.record.as_ref().is_some_and(|r| r.boot_id == record.boot_id));
        match seen {
            Some(before) => BootResult::Infra(InfraFailure {
                kind: InfraKind::WrongKernel,
                reason: format!(
                    "boot id {} is that of boot {}: the machine did not boot anew",
                    record.boot_id, before.boot
                ),
            }),
            None => match environment::moved(&self.state, boot, &record.environment) {
                Some(reason) => BootResult::Infra(InfraFailure { kind: InfraKind::Environment, reason }),
                None => BootResult::Booted(record),
            },
        }
    }
}

/// From here on a number is an unsigned 64-bit counter that ran below zero (sysbench issue 14 printed such rates).
const WRAPPED: f64 = 9.2e18;

/// A run this many times larger or smaller than the others of its kernel is a fault of the reading, not a measurement.
const FAR: f64 = 10.0;

/// Runs of a kernel from which its next one can be called impossible.
const KNOWN_FROM: usize = 3;

/// Whether a kernel that was measured several times cannot be this fast or slow.
fn is_impossible(state: &State, boot: BootNo, value: f64) -> bool {
    let Some(boot) = state.boot(boot) else { return false };
    let metric = &state.plan.recipe.metric.name;
    let same = |b: &&crate::session::Boot| b.commit == boot.commit && b.variant == boot.variant;
    let runs = state.boots.iter().filter(same).flat_map(|b| &b.runs);
    let known: Vec<f64> = runs.filter_map(|run| run.metrics.get(metric)).copied().collect();
    let usual = crate::stats::median(&known);
    known.len() >= KNOWN_FROM && (value > FAR * usual || value * FAR < usual)
}

/// Turns away what is not a measurement: the judged metric missing, not finite or not positive. Effects are judged on
/// the logarithm, and a workload that did nothing in no time is a broken run, not a fast or slow one.
fn admit(state: &State, boot: BootNo, result: RunResult) -> RunResult {
    let metric = &state.plan.recipe.metric.name;
    let RunResult::Measured { mut metrics, settings, mut evidence } = result else { return result };
    let named: Vec<&str> = metrics.keys().map(String::as_str).collect();
    let reason = match metrics.get(metric) {
        Some(value) if *value >= WRAPPED => {
            format!("{metric} = {value} is what a counter shows that ran below zero")
        }
        Some(value) if is_impossible(state, boot, *value) => {
            format!("{metric} = {value} is more than {FAR} times off what this kernel measured before")
        }
        Some(value) if value.is_finite() && *value > 0.0 => {
            metrics.retain(|_, value| value.is_finite());
            evidence.retain(|_, value| value.is_finite());
            return RunResult::Measured { metrics, settings, evidence };
        }
        Some(value) => format!("{metric} = {value} is not a positive number"),
        None => format!("the run did not report {metric}; it reported: {}", named.join(", ")),
    };
    RunResult::Invalid { reason }
}
