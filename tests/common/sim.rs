//! A session in the library alone: every measurement is a function, every decision the program's own. Thousands run in
//! a few seconds.

use rand::RngExt;
use rand::rngs::StdRng;
use sched_bisect::model::{
    Artifact, BootNo, BootRecord, BootResult, BuildResult, CommitId, Conclusion, Direction, Find, Metric,
    Relative, RunResult, StepId,
};
use sched_bisect::search::{Dag, Node};
use sched_bisect::session::{
    Action, Attempts, BuilderSpec, Costs, Deadlines, Endpoint, Event, Judging, MachineSpec, Plan, Planner,
    Purpose, Reading, Recipe, Setup, State, next_action,
};
use std::collections::BTreeMap;

/// The judged metric.
const METRIC: &str = "time";

/// More steps than any session of a test takes: a session that goes round in circles fails its test.
const STEPS: usize = 10_000;

/// What a run gives: the value for the commit at a place of the line, in the boot of this number.
pub type Measure<'a> = &'a mut dyn FnMut(usize, u64) -> f64;

/// Id of the commit at a place of a line.
pub fn id(at: usize) -> CommitId {
    CommitId::parse(&format!("{at:040x}")).expect("40 digits")
}

/// A line of commits; the first is good, the last bad.
pub fn line(commits: usize) -> Dag {
    let node = |at: usize| Node {
        commit: id(at),
        subject: format!("c{at}"),
        parents: if at == 0 { Vec::new() } else { vec![at - 1] },
        boundary: at == 0,
        on_path: true,
    };
    Dag::new((0..commits).map(node).collect()).expect("a line is in order")
}

/// A plan for a line of so many commits.
pub fn plan(commits: usize, confidence: f64, minimum_effect: f64, find: Find, boots: u32) -> Plan {
    let end = |at: usize| Endpoint { rev: format!("c{at}"), commit: id(at) };
    Plan {
        tool_version: "test".to_owned(),
        session: "sim".to_owned(),
        repository: String::new(),
        purpose: Purpose::Bisect,
        good: end(0),
        bad: end(commits - 1),
        merge_bases: Vec::new(),
        paths: Vec::new(),
        skipped: Vec::new(),
        range_digest: String::new(),
        candidates: commits as u64 - 1,
        seed: 1,
        recipe: Recipe {
            profile: "sim".to_owned(),
            metric: Metric { name: METRIC.to_owned(), unit: "s".to_owned(), direction: Direction::Lower },
            find,
            minimum_effect: Relative(minimum_effect),
            confidence,
            budget_s: None,
            variant: "default".to_owned(),
            suts: 1,
            expected_effect: None,
            judging: Judging { boots, max_boots: 0, warmup_runs: 0 },
            costs: Costs::default(),
            attempts: Attempts { boot: 3, run: 3, infra: 5 },
            deadlines: Deadlines { build_s: 1, boot_s: 1, run_s: 1 },
            builder: BuilderSpec::None,
            machine: MachineSpec::Command { boot: None, run: "true".to_owned() },
            reading: Reading::default(),
            setup: Setup::default(),
        },
        host: BTreeMap::new(),
        command: String::new(),
    }
}

/// A metric's name and its value by place.
pub type Also = (String, fn(usize) -> f64);

/// A session and what it decided.
pub struct Sim {
    /// The range.
    pub dag: Dag,
    /// What decides.
    pub planner: Planner,
    /// Its state.
    pub state: State,
    /// The decisions, in order.
    pub decided: Vec<Event>,
    /// A metric that each run gives beside the judged one.
    pub also: Option<Also>,
    /// Milliseconds that a boot and a run take; the session learns its costs from them.
    pub takes_ms: (i64, i64),
    now_ms: i64,
}

impl Sim {
    /// A session that has not begun.
    pub fn new(plan: Plan) -> Self {
        let commits = usize::try_from(plan.candidates).expect("small") + 1;
        Self::over(line(commits), plan)
    }

    /// The same over any graph; its nodes are the places.
    pub fn over(dag: Dag, plan: Plan) -> Self {
        let planner = Planner::new(&dag, &plan);
        Self {
            dag,
            planner,
            state: State::new(plan),
            decided: Vec::new(),
            also: None,
            takes_ms: (0, 0),
            now_ms: 0,
        }
    }

    fn apply(&mut self, event: &Event) {
        if matches!(event, Event::BootFinished { .. }) {
            self.now_ms += self.takes_ms.0;
        } else if matches!(event, Event::RunFinished { .. }) {
            self.now_ms += self.takes_ms.1;
        }
        self.state.apply(self.now_ms, event).expect("the session's own events apply");
    }

    /// Works until `until` holds of a decision, or to the end.
    pub fn work(&mut self, measure: Measure, until: impl Fn(&Event) -> bool) {
        for _ in 0..STEPS {
            let step = StepId(self.state.last_step + 1);
            match next_action(&mut self.planner, &self.dag, &self.state) {
                Action::Decide(event) => {
                    self.apply(&event);
                    self.decided.push(event.clone());
                    if until(&event) {
                        return;
                    }
                }
                Action::Build { commit } => {
                    self.apply(&Event::BuildStarted { step, commit: commit.clone() });
                    self.apply(&Event::BuildFinished { step, result: built(commit) });
                }
                Action::Boot { commit, stage, slot, runs, variant, sut } => {
                    let boot = BootNo(self.state.boots.len() as u64 + 1);
                    self.apply(&Event::BootStarted { step, boot, sut, commit, stage, slot, runs, variant });
                    let record = BootRecord { boot_id: boot.to_string(), ..BootRecord::default() };
                    self.apply(&Event::BootFinished { step, boot, result: BootResult::Booted(record) });
                }
                Action::Run { boot, repetition } => {
                    let commit = &self.state.boot(boot).expect("it is up").commit;
                    let at = self.dag.index(commit).expect("it is in the line");
                    let judged = self.state.plan.recipe.metric.name.clone();
                    let mut metrics = BTreeMap::from([(judged, measure(at, boot.0))]);
                    metrics.extend(self.also.as_ref().map(|(name, value)| (name.clone(), value(at))));
                    self.apply(&Event::RunStarted { step, boot, repetition });
                    self.apply(&Event::RunFinished { step, boot, result: RunResult::measured(metrics) });
                }
                Action::EndBoot { boot } => self.apply(&Event::BootEnded { boot }),
                Action::Wait => unreachable!("every step ends at once"),
                Action::Done => return,
            }
        }
        panic!("no end after {STEPS} steps and {} boots", self.state.boots.len());
    }

    /// Works to the end and gives the conclusion.
    pub fn conclude(&mut self, measure: Measure) -> &Conclusion {
        self.work(measure, |_| false);
        self.state.conclusion.as_ref().expect("it concludes")
    }
}

fn built(commit: CommitId) -> BuildResult {
    BuildResult::Built { artifact: Box::new(Artifact::of(commit)) }
}

/// A standard normal number (Box and Muller, 1958).
pub fn normal(rng: &mut StdRng) -> f64 {
    // 1 - u is in (0, 1]: the logarithm is finite.
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
