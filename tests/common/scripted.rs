//! Sessions without a machine or a disk: a lab whose outcomes are written down, a journal in memory that fails when it is
//! told to, a clock that only goes on when it is read.

use async_trait::async_trait;
use sched_bisect::driver::{Clock, Driver, DriverError, End, Lab, SessionDir, Stop, range_digest, take_up};
use sched_bisect::journal::{Journal, JournalError, Record, Storage, peek};
use sched_bisect::lab::{BootJob, BuildJob, Builder, Machine, RunJob};
use sched_bisect::model::{
    Artifact, BootRecord, BootResult, BuildResult, CommitId, Direction, Find, InfraFailure, InfraKind,
    Metric, Relative, RunResult, StepId,
};
use sched_bisect::search::{Dag, Node};
use sched_bisect::session::{
    Attempts, BuilderSpec, Costs, Deadlines, Endpoint, Event, Judging, MachineSpec, Plan, Purpose, Reading,
    Recipe, Setup, State,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Error;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The metric of all scripted sessions; less is better.
pub const METRIC: &str = "time";

/// Commit `n` of a drawn graph.
pub fn commit(n: usize) -> CommitId {
    CommitId::parse(&format!("{n:040x}")).expect("forty digits")
}

/// A graph with these parents by node; the first node is the boundary.
pub fn dag(parents: &[Vec<usize>]) -> Dag {
    let node = |(n, parents): (usize, &Vec<usize>)| Node {
        commit: commit(n),
        subject: format!("c{n}"),
        parents: parents.clone(),
        boundary: n == 0,
        on_path: true,
    };
    Dag::new(parents.iter().enumerate().map(node).collect()).expect("parents stand first")
}

/// A line of `count` commits.
pub fn line(count: usize) -> Dag {
    dag(&(0..count).map(|n| n.checked_sub(1).into_iter().collect()).collect::<Vec<_>>())
}

/// A plan to search the whole of a graph.
pub fn plan(dag: &Dag) -> Plan {
    let end = |n: usize| Endpoint { rev: format!("c{n}"), commit: commit(n) };
    Plan {
        tool_version: "0.0.0".to_owned(),
        session: "scripted".to_owned(),
        repository: "/nowhere/.git".to_owned(),
        purpose: Purpose::Bisect,
        good: end(0),
        bad: end(dag.len() - 1),
        merge_bases: Vec::new(),
        paths: Vec::new(),
        skipped: Vec::new(),
        range_digest: range_digest(dag),
        candidates: dag.candidates() as u64,
        seed: 1,
        recipe: recipe(),
        host: BTreeMap::new(),
        command: String::new(),
    }
}

fn recipe() -> Recipe {
    Recipe {
        profile: "scripted".to_owned(),
        metric: Metric { name: METRIC.to_owned(), unit: "s".to_owned(), direction: Direction::Lower },
        find: Find::Regression,
        minimum_effect: Relative(0.02),
        confidence: 0.99,
        budget_s: None,
        variant: "default".to_owned(),
        suts: 1,
        expected_effect: None,
        judging: Judging { boots: 3, max_boots: 0, warmup_runs: 0 },
        costs: Costs { build_s: 1.0, boot_s: 1.0, run_s: 1.0, ..Costs::default() },
        attempts: Attempts { boot: 3, run: 3, infra: 5 },
        deadlines: Deadlines { build_s: 60, boot_s: 60, run_s: 60 },
        builder: BuilderSpec::None,
        machine: MachineSpec::Command { boot: None, run: "scripted".to_owned() },
        reading: Reading::default(),
        setup: Setup::default(),
    }
}

/// A built artifact that is nothing.
pub fn artifact(commit: CommitId) -> Artifact {
    Artifact::of(commit)
}

/// A measured run.
pub fn measured(value: f64) -> RunResult {
    RunResult::measured(BTreeMap::from([(METRIC.to_owned(), value)]))
}

/// Fields of a machine by boot and commit.
pub type Environment = fn(u64, &CommitId) -> BTreeMap<String, String>;

/// What a scripted lab does and has done. A commit from `slow_from` on takes 10 % longer; the noise follows from boot and
/// run.
#[derive(Debug, Default)]
pub struct Script {
    /// First slow commit of the line.
    pub slow_from: usize,
    /// So many of the next runs ask to be tried again.
    pub runs_to_fail: Cell<u32>,
    /// The next run never ends by itself.
    pub run_hangs: Cell<bool>,
    /// What the machine is like in the boot of this number of this commit; absent: nobody looks.
    pub environment: Cell<Option<Environment>>,
    /// Every run that began: its step and when.
    pub runs: RefCell<Vec<(StepId, Instant)>>,
    /// Runs under way.
    pub running: Cell<u32>,
}

impl Script {
    /// The lab of a line whose commits are slow from this one on.
    pub fn slow_from(commit: usize) -> Rc<Self> {
        Rc::new(Self { slow_from: commit, ..Self::default() })
    }

    /// A lab that follows it.
    pub fn lab(self: &Rc<Self>) -> Lab {
        Lab { builder: Box::new(Scripted(self.clone())), machines: vec![Box::new(Scripted(self.clone()))] }
    }

    fn value(&self, job: &RunJob) -> f64 {
        let slow = job.artifact.commit >= commit(self.slow_from);
        let noise = (job.boot.0 * 7 + u64::from(job.repetition) * 3) % 11;
        if slow { 1100.0 + noise as f64 } else { 1000.0 + noise as f64 }
    }
}

struct Scripted(Rc<Script>);

/// Counts a run as under way until it ends or is dropped.
struct UnderWay<'a>(&'a Cell<u32>);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[async_trait(?Send)]
impl Builder for Scripted {
    async fn build(&mut self, job: &BuildJob) -> BuildResult {
        BuildResult::Built { artifact: Box::new(artifact(job.commit.clone())) }
    }
}

#[async_trait(?Send)]
impl Machine for Scripted {
    async fn boot(&mut self, job: &BootJob) -> BootResult {
        let boot_id = format!("id-of-step-{}", job.step);
        let environment = self.0.environment.get().map(|of| of(job.boot.0, &job.artifact.commit));
        let environment = environment.unwrap_or_default();
        BootResult::Booted(BootRecord { boot_id, environment, ..BootRecord::default() })
    }

    async fn run(&mut self, job: &RunJob) -> RunResult {
        let script = &self.0;
        script.runs.borrow_mut().push((job.step, Instant::now()));
        script.running.set(script.running.get() + 1);
        let _under_way = UnderWay(&script.running);
        if script.run_hangs.take() {
            std::future::pending::<()>().await;
        }
        if let Some(left) = script.runs_to_fail.get().checked_sub(1) {
            script.runs_to_fail.set(left);
            let reason = "the lab is not ready".to_owned();
            return RunResult::Infra(InfraFailure { kind: InfraKind::TryAgain, reason });
        }
        measured(script.value(job))
    }

    async fn off(&mut self) {}
}

/// How an append goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Nothing is written: no room.
    Nothing,
    /// Half of it is written.
    Half,
    /// All is written, but the sync fails.
    Unsynced,
}

/// A disk in memory that outlives the journals on it.
#[derive(Debug, Default)]
pub struct Disk {
    /// The journal.
    pub bytes: RefCell<Vec<u8>>,
    /// What was cut off it.
    pub torn: RefCell<Vec<Vec<u8>>>,
    /// Appends that still succeed, and how the one after them fails; absent: all succeed.
    pub fails: Cell<Option<(u32, Failure)>>,
    unsynced: Cell<bool>,
}

impl Disk {
    /// A sound disk with this journal on it.
    pub fn with(bytes: &[u8]) -> Rc<Self> {
        Rc::new(Self { bytes: RefCell::new(bytes.to_vec()), ..Self::default() })
    }
}

/// A journal on such a disk.
#[derive(Debug, Clone)]
pub struct Memory(pub Rc<Disk>);

fn full() -> JournalError {
    JournalError::Io { path: "memory".into(), source: Error::other("no space left on device") }
}

impl Storage for Memory {
    fn path(&self) -> &Path {
        Path::new("memory")
    }

    fn len(&self) -> Result<u64, JournalError> {
        Ok(self.0.bytes.borrow().len() as u64)
    }

    fn read(&mut self) -> Result<Vec<u8>, JournalError> {
        Ok(self.0.bytes.borrow().clone())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        let mut disk = self.0.bytes.borrow_mut();
        match self.0.fails.get() {
            Some((0, Failure::Nothing)) => return Err(full()),
            Some((0, Failure::Half)) => {
                disk.extend_from_slice(&bytes[..bytes.len() / 2]);
                return Err(full());
            }
            Some((0, Failure::Unsynced)) => self.0.unsynced.set(true),
            Some((left, how)) => self.0.fails.set(Some((left - 1, how))),
            None => {}
        }
        disk.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        if self.0.unsynced.take() { Err(full()) } else { Ok(()) }
    }

    fn cut_to(&mut self, length: u64) -> Result<(), JournalError> {
        let length = usize::try_from(length).expect("it is in memory");
        let cut = self.0.bytes.borrow_mut().split_off(length);
        self.0.torn.borrow_mut().push(cut);
        Ok(())
    }
}

/// A clock that goes on by this much each time it is read.
pub struct Ticking {
    /// Milliseconds a tick.
    pub tick_ms: i64,
    /// Now.
    pub now_ms: Cell<i64>,
}

impl Clock for Ticking {
    fn now_ms(&self) -> i64 {
        self.now_ms.set(self.now_ms.get() + self.tick_ms);
        self.now_ms.get()
    }
}

/// A scripted session: its disk, its directory, and what the lab does.
pub struct Stage {
    /// Where the journal is.
    pub disk: Rc<Disk>,
    /// What the lab does.
    pub script: Rc<Script>,
    /// Milliseconds between events.
    pub tick_ms: i64,
    dir: tempfile::TempDir,
}

impl Stage {
    /// A session that has begun on a line of `count` commits, slow from `slow_from` on, with the plan changed by `change`.
    pub fn begin(count: usize, slow_from: usize, change: impl FnOnce(&mut Plan)) -> Self {
        let dag = line(count);
        let mut plan = plan(&dag);
        change(&mut plan);
        let dir = tempfile::tempdir().expect("temporary directory");
        let stage = Self { disk: Rc::default(), script: Script::slow_from(slow_from), tick_ms: 1000, dir };
        std::fs::write(stage.range(), serde_json::to_vec(&dag).expect("plain data")).expect("writes");
        let mut journal = Journal::create(Memory(stage.disk.clone())).expect("the disk is empty");
        journal.append(0, &Event::Planned { plan: Box::new(plan) }).expect("the disk is sound");
        stage
    }

    /// The same session with these bytes for its journal, on a disk of its own.
    pub fn with_journal(&self, bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = Disk::with(bytes);
        let stage =
            Self { disk, script: Script::slow_from(self.script.slow_from), tick_ms: self.tick_ms, dir };
        std::fs::copy(self.range(), stage.range()).expect("copies");
        stage
    }

    /// The file with the graph.
    pub fn range(&self) -> PathBuf {
        SessionDir::at(self.dir.path().to_owned()).range()
    }

    /// The journal's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.disk.bytes.borrow().clone()
    }

    /// The journal's records.
    pub fn records(&self) -> Vec<Record> {
        peek(&mut Memory(self.disk.clone())).expect("the journal is sound")
    }

    /// Takes the session up. Gives the bytes that were cut off, too.
    pub fn take_up(&self, more_budget_s: u64) -> Result<(Driver<Memory>, u64), DriverError> {
        let last = peek(&mut Memory(self.disk.clone()))?.last().map_or(0, |record| record.at);
        let clock = Ticking { tick_ms: self.tick_ms, now_ms: Cell::new(last) };
        let dir = SessionDir::at(self.dir.path().to_owned());
        take_up(dir, Memory(self.disk.clone()), more_budget_s, Box::new(clock))
    }

    /// Takes the session up and works on it until it ends.
    pub fn work(&self) -> Result<(End, State), DriverError> {
        let (mut driver, _) = self.take_up(0)?;
        let (_send, stop) = mpsc::channel(1);
        let end = block_on(driver.run(self.script.lab(), stop))?;
        Ok((end, driver.state))
    }

    /// As [`Self::work`], until the session has its conclusion; the culprit.
    pub fn conclude(&self) -> CommitId {
        let (end, state) = self.work().expect("the disk is sound");
        assert_eq!(end, End::Done);
        culprit(&state).unwrap_or_else(|| panic!("no culprit: {:?} {:?}", state.halted, state.conclusion))
    }
}

/// The commit that was named.
pub fn culprit(state: &State) -> Option<CommitId> {
    state.conclusion.as_ref().and_then(|conclusion| conclusion.commit.clone())
}

/// Runs to the end, in paused time: waiting takes none.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        // Whatever hangs without a reason ends the test.
        tokio::time::timeout(Duration::from_secs(1 << 20), future).await.expect("it does not hang")
    })
}

/// A channel of stop requests with these in it.
pub fn stops(asked: &[Stop]) -> (mpsc::Sender<Stop>, mpsc::Receiver<Stop>) {
    let (send, receive) = mpsc::channel(4);
    for stop in asked {
        send.try_send(*stop).expect("there is room");
    }
    (send, receive)
}
