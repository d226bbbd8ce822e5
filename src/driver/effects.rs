//! The effects under way: which machine does what.

use super::{DriverError, SessionDir};
use crate::lab::{BootJob, BuildJob, Builder, Machine, RunJob};
use crate::model::{Artifact, BootNo, BootResult, BuildResult, CommitId, RunResult, StepId, SutId};
use crate::session::{Build, State};
use std::path::Path;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet, LocalSet};

/// First wait before a step is tried again after an infrastructure failure; doubled each time.
const BACK_OFF: Duration = Duration::from_millis(250);

/// Longest such wait.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);

/// Everything that effects are done with.
pub struct Lab {
    /// Makes artifacts.
    pub builder: Box<dyn Builder>,
    /// The machines, by [`SutId`].
    pub machines: Vec<Box<dyn Machine>>,
}

/// The end of an effect.
#[derive(Debug)]
pub(super) enum Done {
    Build { step: StepId, result: BuildResult },
    Boot { step: StepId, boot: BootNo, result: BootResult },
    Run { step: StepId, boot: BootNo, result: RunResult },
}

enum Returned {
    Builder(Box<dyn Builder>),
    Machine(SutId, Box<dyn Machine>),
}

/// Builder and machines, each either here or in a task.
pub(super) struct Effects {
    builder: Option<Box<dyn Builder>>,
    machines: Vec<Option<Box<dyn Machine>>>,
    tasks: JoinSet<(Returned, Done)>,
    local: LocalSet,
    dir: SessionDir,
}

impl Effects {
    pub fn new(lab: Lab, dir: SessionDir) -> Self {
        let machines = lab.machines.into_iter().map(Some).collect();
        Self { builder: Some(lab.builder), machines, tasks: JoinSet::new(), local: LocalSet::new(), dir }
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    pub fn build(&mut self, state: &State, step: StepId, commit: CommitId) {
        let log = self.dir.log(step, "build", &commit);
        let deadline = Duration::from_secs(state.plan.recipe.deadlines.build_s);
        let job = BuildJob { step, commit, deadline, log };
        let delay = back_off(state, None);
        let mut builder = self.builder.take().expect("one build at a time");
        let task = async move {
            tokio::time::sleep(delay).await;
            let result = builder.build(&job).await;
            sync(&job.log);
            (Returned::Builder(builder), Done::Build { step, result })
        };
        self.tasks.spawn_local_on(task, &self.local);
    }

    pub fn boot(
        &mut self,
        state: &State,
        step: StepId,
        boot: BootNo,
        sut: SutId,
        commit: &CommitId,
    ) -> Result<(), DriverError> {
        let dir = self.dir.make_boot_dir(boot)?;
        let log = self.dir.log(step, "boot", commit);
        let deadline = Duration::from_secs(state.plan.recipe.deadlines.boot_s);
        let variant = state.plan.recipe.named(state.boot(boot).map_or("", |b| &b.variant));
        let job = BootJob { step, artifact: artifact(state, commit), boot, variant, dir, deadline, log };
        let delay = back_off(state, Some(sut));
        let mut machine = self.take(sut);
        let task = async move {
            tokio::time::sleep(delay).await;
            let result = machine.boot(&job).await;
            sync(&job.log);
            (Returned::Machine(sut, machine), Done::Boot { step, boot, result })
        };
        self.tasks.spawn_local_on(task, &self.local);
        Ok(())
    }

    pub fn run(&mut self, state: &State, step: StepId, boot: BootNo, repetition: u32) {
        let live = state.boot(boot).expect("a run is started in a known boot");
        let log = self.dir.log(step, "run", &live.commit);
        let deadline = Duration::from_secs(state.plan.recipe.deadlines.run_s);
        let dir = self.dir.boot_dir(boot);
        let job =
            RunJob { step, artifact: artifact(state, &live.commit), boot, dir, repetition, deadline, log };
        let sut = live.sut;
        let delay = back_off(state, Some(sut));
        let mut machine = self.take(sut);
        let task = async move {
            tokio::time::sleep(delay).await;
            let result = machine.run(&job).await;
            sync(&job.log);
            (Returned::Machine(sut, machine), Done::Run { step, boot, result })
        };
        self.tasks.spawn_local_on(task, &self.local);
    }

    /// Ends what runs on an idle machine.
    pub async fn off(&mut self, sut: SutId) {
        let mut machine = self.take(sut);
        self.local.run_until(machine.off()).await;
        self.put(sut, machine);
    }

    /// Waits for the next end. Never returns while nothing is under way.
    pub async fn next(&mut self) -> Done {
        loop {
            match self.local.run_until(self.tasks.join_next()).await {
                Some(Ok((returned, done))) => {
                    match returned {
                        Returned::Builder(builder) => self.builder = Some(builder),
                        Returned::Machine(sut, machine) => self.put(sut, machine),
                    }
                    return done;
                }
                Some(Err(error)) => resume_panic(error),
                None => std::future::pending::<()>().await,
            }
        }
    }

    /// Drops everything under way; the ports end their processes when dropped.
    pub async fn abandon(&mut self) {
        self.local.run_until(self.tasks.shutdown()).await;
        for machine in self.machines.iter_mut().flatten() {
            self.local.run_until(machine.off()).await;
        }
    }

    fn take(&mut self, sut: SutId) -> Box<dyn Machine> {
        self.machines[sut.0 as usize].take().expect("one step at a time on a machine")
    }

    fn put(&mut self, sut: SutId, machine: Box<dyn Machine>) {
        self.machines[sut.0 as usize] = Some(machine);
    }
}

/// A port panicked: a fault of the program, to be told as such.
fn resume_panic(error: JoinError) {
    if let Ok(panic) = error.try_into_panic() {
        std::panic::resume_unwind(panic);
    }
}

fn artifact(state: &State, commit: &CommitId) -> Artifact {
    match state.commit(commit).map(|c| &c.build) {
        Some(Build::Built(artifact)) => (**artifact).clone(),
        Some(Build::None | Build::Started) | None => {
            unreachable!("only built commits are booted: State refuses")
        }
    }
}

fn back_off(state: &State, source: Option<SutId>) -> Duration {
    match u32::try_from(state.infra.get(&source).map_or(0, Vec::len)) {
        Ok(0) => Duration::ZERO,
        Ok(failures) => BACK_OFF.saturating_mul(2_u32.saturating_pow(failures - 1)).min(LONGEST_BACK_OFF),
        Err(_) => LONGEST_BACK_OFF,
    }
}

/// Puts a log on the disk before the record that relies on it. A port that wrote none has none to sync.
fn sync(log: &Path) {
    if let Ok(file) = std::fs::File::open(log)
        && let Err(error) = file.sync_all()
    {
        tracing::warn!(log = %log.display(), %error, "could not sync a log");
    }
}
