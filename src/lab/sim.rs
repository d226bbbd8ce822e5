//! A simulated lab behind the ports: a [`World`] whose truth is known, on a clock that only its work moves.
//!
//! Owns: the translation of builds, boots and runs into the world's numbers and the clock's minutes. Must not do: wait, or
//! touch a machine. With it the whole driver runs as it does over real machines, thousands of times faster.

use super::{BootJob, BuildJob, Builder, Machine, RunJob};
use crate::driver::Clock;
use crate::model::{
    Artifact, BootRecord, BootResult, BuildResult, CommitId, RunResult, Untestable, UntestableKind,
};
use crate::sim::{Costs, Meter, World};
use async_trait::async_trait;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Level of the metric before any step.
const BASE: f64 = 100.0;

/// A clock that only the simulated lab moves.
#[derive(Debug, Clone, Default)]
pub struct VirtualClock(Rc<Cell<i64>>);

impl VirtualClock {
    fn pass(&self, minutes: f64) {
        self.0.set(self.0.get() + (minutes * 60_000.0).round() as i64);
    }
}

impl Clock for VirtualClock {
    fn now_ms(&self) -> i64 {
        self.0.get()
    }
}

/// A simulated build host or machine; clones are parts of one lab.
#[derive(Debug, Clone)]
pub struct SimLab {
    world: Rc<World>,
    meter: Rc<RefCell<Meter>>,
    clock: VirtualClock,
    costs: Costs,
    /// Name of the metric, and the size of one unit of the world as a logarithm of it.
    metric: String,
    unit: f64,
}

impl SimLab {
    /// A lab for a world. The metric is `100 exp(unit * value)`: positive steps make it larger.
    pub fn new(world: World, costs: Costs, metric: &str, unit: f64) -> Self {
        Self {
            world: Rc::new(world),
            meter: Rc::default(),
            clock: VirtualClock::default(),
            costs,
            metric: metric.to_owned(),
            unit,
        }
    }

    /// Its clock.
    pub fn clock(&self) -> VirtualClock {
        self.clock.clone()
    }

    /// What it was used for.
    pub fn spent(&self) -> Meter {
        self.meter.borrow().clone()
    }

    /// The commit that stands for a node: its number at the end, and before it what tells short ids apart.
    pub fn commit(node: usize) -> CommitId {
        // An odd factor: no two nodes share a product (Knuth, "The Art of Computer Programming" 3, 6.4).
        let mixed = (node as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        CommitId::parse(&format!("{mixed:016x}{:08x}{node:016x}", 0)).expect("forty hexadecimal digits")
    }

    /// The node that a commit stands for.
    pub fn node(commit: &CommitId) -> usize {
        usize::from_str_radix(&commit.as_str()[24..], 16).expect("it was made from a node")
    }
}

#[async_trait(?Send)]
impl Builder for SimLab {
    async fn build(&mut self, job: &BuildJob) -> BuildResult {
        self.clock.pass(self.costs.build);
        if !self.meter.borrow_mut().build(&self.world, Self::node(&job.commit)) {
            let reason = "it does not build (simulated)".to_owned();
            return BuildResult::Untestable(Untestable { kind: UntestableKind::Build, reason });
        }
        BuildResult::Built { artifact: Box::new(Artifact::of(job.commit.clone())) }
    }
}

#[async_trait(?Send)]
impl Machine for SimLab {
    async fn boot(&mut self, job: &BootJob) -> BootResult {
        self.clock.pass(self.costs.boot);
        self.meter.borrow_mut().boot(&self.world, Self::node(&job.artifact.commit));
        BootResult::Booted(BootRecord { boot_id: format!("simulated-{}", job.boot), ..BootRecord::default() })
    }

    async fn run(&mut self, _: &RunJob) -> RunResult {
        self.clock.pass(self.costs.run);
        let value = BASE * (self.unit * self.meter.borrow_mut().run(&self.world)).exp();
        RunResult::measured(BTreeMap::from([(self.metric.clone(), value)]))
    }

    async fn off(&mut self) {}
}
