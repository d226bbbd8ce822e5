//! The pure session under chance: any events in any order, and labs in which anything can happen.

use crate::common::scripted::{artifact, commit, dag, measured, plan};
use proptest::prelude::*;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sched_bisect::model::{
    BootNo, BootRecord, BootResult, BuildResult, CommitId, Effect, Evidence, Find, InfraFailure, InfraKind,
    RunResult, Sense, StepId, SutId, Untestable, UntestableKind, Verdict,
};
use sched_bisect::report::{Look, Report, status, text};
use sched_bisect::search::{Dag, Node};
use sched_bisect::session::{
    Action, BootStatus, EndpointOutcome, Event, Halt, Narrowing, OpenStep, Plan, Planner, Purpose, Revert,
    State, next_action, outcome, recompute,
};

// ---- any events ----

fn any_commit() -> impl Strategy<Value = CommitId> {
    (0..7_usize).prop_map(commit)
}

fn any_step() -> impl Strategy<Value = StepId> {
    prop_oneof![20 => 0..12_u64, 1 => Just(u64::MAX)].prop_map(StepId)
}

fn any_boot() -> impl Strategy<Value = BootNo> {
    prop_oneof![20 => 0..6_u64, 1 => Just(u64::MAX)].prop_map(BootNo)
}

fn any_untestable() -> impl Strategy<Value = Untestable> {
    let kinds = [UntestableKind::Build, UntestableKind::Boot, UntestableKind::Run, UntestableKind::Declared];
    proptest::sample::select(kinds.to_vec())
        .prop_map(|kind| Untestable { kind, reason: "because".to_owned() })
}

fn any_infra() -> impl Strategy<Value = InfraFailure> {
    let kinds = [InfraKind::TryAgain, InfraKind::Killed, InfraKind::OutOfDisk];
    proptest::sample::select(kinds.to_vec())
        .prop_map(|kind| InfraFailure { kind, reason: "because".to_owned() })
}

fn any_build_result() -> impl Strategy<Value = BuildResult> {
    prop_oneof![
        4 => any_commit().prop_map(|commit| BuildResult::Built { artifact: Box::new(artifact(commit)) }),
        1 => any_untestable().prop_map(BuildResult::Untestable),
        1 => any_infra().prop_map(BuildResult::Infra),
    ]
}

fn any_boot_result() -> impl Strategy<Value = BootResult> {
    prop_oneof![
        4 => (0..20_u32).prop_map(|id| booted(id.to_string())),
        1 => any_untestable().prop_map(BootResult::Untestable),
        1 => any_infra().prop_map(BootResult::Infra),
    ]
}

fn any_run_result() -> impl Strategy<Value = RunResult> {
    prop_oneof![
        6 => (0.0..1e3).prop_map(measured),
        1 => proptest::sample::select(vec![f64::NAN, f64::INFINITY, -1.0, 0.0, f64::MIN_POSITIVE, f64::MAX])
            .prop_map(measured),
        1 => Just(RunResult::measured(Default::default())),
        1 => Just(RunResult::Invalid { reason: "two numbers".to_owned() }),
        1 => Just(RunResult::Failed { reason: "exit 1".to_owned() }),
        1 => any_untestable().prop_map(RunResult::Untestable),
        1 => any_infra().prop_map(RunResult::Infra),
    ]
}

fn any_evidence() -> impl Strategy<Value = Evidence> {
    (-0.9..9.0_f64).prop_map(|relative| Evidence {
        boots: 3,
        runs: 3,
        effect: Effect { relative, low: relative - 0.1, high: relative + 0.1 },
        p_error: 0.01,
        level: 0.01,
        reference: "chance".to_owned(),
    })
}

fn any_outcome() -> impl Strategy<Value = EndpointOutcome> {
    proptest::sample::select(vec![
        EndpointOutcome::Change(Sense::Regression),
        EndpointOutcome::Change(Sense::Improvement),
        EndpointOutcome::NoDifference,
        EndpointOutcome::OppositeSign,
        EndpointOutcome::Undecided,
    ])
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    proptest::sample::select(vec![Verdict::Baseline, Verdict::Regressed, Verdict::Undecided])
}

fn any_lab_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (any_step(), any_commit()).prop_map(|(step, commit)| Event::BuildStarted { step, commit }),
        (any_step(), any_build_result()).prop_map(|(step, result)| Event::BuildFinished { step, result }),
        (any_step(), any_boot(), 0..3_u32, any_commit(), 0..3_u32, 0..4_u32).prop_map(
            |(step, boot, sut, commit, stage, slot)| {
                Event::BootStarted {
                    step,
                    boot,
                    sut: SutId(sut),
                    commit,
                    stage,
                    slot,
                    runs: 1,
                    variant: String::new(),
                }
            }
        ),
        (any_step(), any_boot(), any_boot_result()).prop_map(|(step, boot, result)| Event::BootFinished {
            step,
            boot,
            result
        }),
        (any_step(), any_boot(), 0..4_u32).prop_map(|(step, boot, repetition)| Event::RunStarted {
            step,
            boot,
            repetition
        }),
        (any_step(), any_boot(), any_run_result()).prop_map(|(step, boot, result)| Event::RunFinished {
            step,
            boot,
            result
        }),
        any_boot().prop_map(|boot| Event::BootEnded { boot }),
        any_step().prop_map(|step| Event::StepInterrupted { step }),
    ]
}

fn any_decision() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (any_outcome(), any_evidence())
            .prop_map(|(outcome, evidence)| Event::EndpointsJudged { outcome, evidence }),
        4 => (any_commit(), any_verdict(), any_evidence())
            .prop_map(|(commit, verdict, evidence)| Event::Judged { commit, verdict, evidence }),
        2 => any_commit()
            .prop_map(|commit| Event::VerdictRetracted { commit, reason: "because".to_owned() }),
        1 => any_commit().prop_map(|commit| Event::PathsDropped { commit }),
        1 => any_commit().prop_map(|culprit| Event::ConfirmationAbandoned { culprit, reason: "because".to_owned() }),
        1 => (any_commit(), any_commit(), any_commit()).prop_map(|(good, bad, middle)| Event::Narrowed {
            good: Some(good),
            bad,
            why: Narrowing::ThreeLevels { middle },
        }),
        1 => any_boot().prop_map(|boot| Event::Voided { boots: vec![boot], reason: "because".to_owned() }),
        2 => (any_commit(), proptest::collection::vec(any_commit(), 0..3))
            .prop_map(|(culprit, parents)| Event::ConfirmationStarted { culprit, parents }),
        2 => (any_commit(), any::<bool>(), any_evidence()).prop_map(|(culprit, confirmed, evidence)| {
            Event::ConfirmationFinished { culprit, confirmed, evidence }
        }),
        1 => any_infra().prop_map(|failure| Event::Halted { halt: Halt::Infra(failure) }),
        1 => any::<u64>().prop_map(|bytes| Event::TailCut { bytes }),
        1 => any::<u64>().prop_map(opened),
        1 => Just(Event::Planned { plan: Box::new(plan(&diamond())) }),
    ]
}

fn opened(more_budget_s: u64) -> Event {
    Event::Opened { tool_version: "0.0.0".to_owned(), more_budget_s }
}

fn booted(boot_id: String) -> BootResult {
    BootResult::Booted(BootRecord { boot_id, ..BootRecord::default() })
}

/// c0 - c1 - c2 - c4 - c5, and c3 beside c2.
fn diamond() -> Dag {
    dag(&[vec![], vec![0], vec![1], vec![1], vec![2, 3], vec![4]])
}

/// Everything that is computed from a state, for its panics.
fn look_at(dag: &Dag, state: &State) {
    let _ = next_action(&mut Planner::of(dag, state), dag, state);
    let _ = outcome(dag, state);
    let _ = (
        status(dag, state),
        text(&Report::of(dag, state, &[]), Look::default()),
        Report::of(dag, state, &[]).json(),
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_events_in_any_order_are_applied_or_refused_without_a_trace(
        events in proptest::collection::vec(prop_oneof![3 => any_lab_event(), 1 => any_decision()], 0..120),
        at_ms in prop_oneof![9 => Just(1_000_i64), 1 => any::<i64>()],
        budget in proptest::option::of(any::<u64>()),
    ) {
        let dag = diamond();
        let mut plan = plan(&dag);
        plan.recipe.budget_s = budget;
        plan.recipe.judging.boots = 2;
        let mut state = State::new(plan);
        for event in &events {
            let _ = recompute(&mut Planner::of(&dag, &state), &state, event);
            let before = state.clone();
            if state.apply(at_ms, event).is_err() {
                // Only the clock may have gone on.
                let mut other = before;
                let _ = other.apply(at_ms, &Event::BootEnded { boot: BootNo(0) });
                prop_assert_eq!(format!("{:?}", state), format!("{other:?}"));
            }
        }
        look_at(&dag, &state);
    }
}

// ---- labs in which anything can happen ----

/// Actions and resumes within which a session of a dozen commits must come to its end.
const MOST_ACTIONS: usize = 20_000;
const MOST_RESUMES: usize = 60;

/// A lab of chance over a graph of chance.
struct World {
    rng: ChaCha8Rng,
    dag: Dag,
    planner: Planner,
    state: State,
    at_ms: i64,
    /// True mean of each commit, then of one that is no node (a reverted kernel, a good endpoint beside the line).
    levels: Vec<f64>,
    /// Relative spread of boots and of runs.
    spread: f64,
    /// Probability that a step fails, by whose fault.
    commit_fails: f64,
    infra_fails: f64,
    /// Commits that never build, and that never boot.
    unbuildable: Vec<CommitId>,
    unbootable: Vec<CommitId>,
    /// Probability that the process dies at an action.
    dies: f64,
}

/// An id that is no node of any graph here.
const BESIDE: usize = 1000;

fn chance_dag(rng: &mut ChaCha8Rng) -> Dag {
    let count = rng.random_range(2..=12_usize);
    let mut nodes: Vec<Node> = Vec::new();
    for n in 0..count {
        let boundary = n == 0 || (n + 1 < count && rng.random_bool(0.08));
        let mut parents = Vec::new();
        while !boundary && parents.len() < rng.random_range(1..=2) {
            let parent = rng.random_range(n.saturating_sub(4)..n);
            if !parents.contains(&parent) {
                parents.push(parent);
            }
            if n == 1 {
                break;
            }
        }
        let on_path = rng.random_bool(0.5);
        nodes.push(Node { commit: commit(n), subject: format!("c{n}"), parents, boundary, on_path });
    }
    // Everything is an ancestor of the bad endpoint.
    let childless: Vec<usize> =
        (0..count - 1).filter(|n| !nodes.iter().any(|node| node.parents.contains(n))).collect();
    nodes[count - 1].parents.extend(childless);
    nodes[count - 1].parents.dedup();
    Dag::new(nodes).expect("parents stand first")
}

fn chance_plan(rng: &mut ChaCha8Rng, dag: &Dag) -> Plan {
    let mut plan = plan(dag);
    match rng.random_range(0..6) {
        0 => {
            plan.purpose = Purpose::RevertTest {
                commit: commit(1),
                subject: "c1".to_owned(),
                mainline: None,
                revert: Revert::Clean { commit: commit(BESIDE) },
            };
        }
        1 => {
            plan.good.commit = commit(BESIDE);
            plan.merge_bases = vec![commit(0)];
        }
        2 | 3 => plan.paths = vec!["kernel/sched".to_owned()],
        _ => {}
    }
    let recipe = &mut plan.recipe;
    recipe.find = *[Find::Regression, Find::Improvement, Find::Any].choose(rng).expect("three");
    recipe.suts = rng.random_range(1..=3);
    recipe.budget_s = rng.random_bool(0.2).then(|| rng.random_range(1..500));
    let judging = &mut recipe.judging;
    judging.boots = rng.random_range(2..=4);
    judging.max_boots = *[0, judging.boots, judging.boots * 3].choose(rng).expect("three");
    judging.warmup_runs = rng.random_range(0..=1);
    recipe.attempts.boot = rng.random_range(1..=3);
    recipe.attempts.run = rng.random_range(1..=3);
    recipe.attempts.infra = rng.random_range(1..=5);
    plan
}

/// True means: a step at one commit, a number of its own for each commit, or the same for all.
fn chance_levels(rng: &mut ChaCha8Rng, dag: &Dag) -> Vec<f64> {
    let (shape, culprit) = (rng.random_range(0..5), rng.random_range(1..dag.len()));
    let change = [1.1, 0.9].choose(rng).expect("two");
    let mut levels: Vec<f64> = (0..dag.len())
        .map(|n| match shape {
            0 => 100.0,
            1 => rng.random_range(90.0..110.0),
            _ if dag.ancestors(n)[culprit] => 100.0 * change,
            _ => 100.0,
        })
        .collect();
    levels.push(*levels.choose(rng).expect("not empty"));
    levels
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let dag = chance_dag(&mut rng);
        let state = State::new(chance_plan(&mut rng, &dag));
        let planner = Planner::new(&dag, &state.plan);
        let levels = chance_levels(&mut rng, &dag);
        let often = |rng: &mut ChaCha8Rng, choices: &[f64]| *choices.choose(rng).expect("not empty");
        let some = |rng: &mut ChaCha8Rng, p: f64| -> Vec<CommitId> {
            (0..levels.len()).filter(|_| rng.random_bool(p)).map(commit).collect()
        };
        let broken = often(&mut rng, &[0.0, 0.0, 0.1, 0.4]);
        Self {
            spread: often(&mut rng, &[0.0, 0.001, 0.01, 0.05]),
            commit_fails: often(&mut rng, &[0.0, 0.0, 0.1, 0.5]),
            infra_fails: often(&mut rng, &[0.0, 0.0, 0.05, 0.3]),
            dies: often(&mut rng, &[0.0, 0.0, 0.01]),
            unbuildable: some(&mut rng, broken),
            unbootable: some(&mut rng, broken),
            rng,
            dag,
            planner,
            state,
            at_ms: 0,
            levels,
        }
    }

    /// An event of the program's own: it must apply.
    fn record(&mut self, event: &Event) -> Result<(), TestCaseError> {
        self.at_ms += 250;
        self.state.apply(self.at_ms, event).map_err(|error| TestCaseError::fail(error.to_string()))
    }

    fn infra(&mut self) -> Option<InfraFailure> {
        let kinds = [InfraKind::TryAgain, InfraKind::Killed, InfraKind::Timeout, InfraKind::OutOfDisk];
        let kind = *kinds.choose(&mut self.rng).expect("four");
        self.rng.random_bool(self.infra_fails).then(|| InfraFailure { kind, reason: "ours".to_owned() })
    }

    /// The end of an open step.
    fn end_of(&mut self, step: StepId, open: OpenStep) -> Event {
        let infra = self.infra();
        let fails = self.rng.random_bool(self.commit_fails);
        let untestable = |kind| Untestable { kind, reason: "its own".to_owned() };
        match open {
            OpenStep::Build(commit) => {
                let broken = self.unbuildable.contains(&commit);
                let result = match infra {
                    Some(failure) => BuildResult::Infra(failure),
                    None if broken => BuildResult::Untestable(untestable(UntestableKind::Build)),
                    None => BuildResult::Built { artifact: Box::new(artifact(commit)) },
                };
                Event::BuildFinished { step, result }
            }
            OpenStep::Boot(boot) => {
                let commit = &self.state.boot(boot).expect("it is starting").commit;
                let broken = self.unbootable.contains(commit);
                let result = match infra {
                    Some(failure) => BootResult::Infra(failure),
                    None if broken || fails => BootResult::Untestable(untestable(UntestableKind::Boot)),
                    None => booted(format!("id-{step}")),
                };
                Event::BootFinished { step, boot, result }
            }
            OpenStep::Run(boot, _) => {
                let result = match (infra, fails) {
                    (Some(failure), _) => RunResult::Infra(failure),
                    (None, true) => match self.rng.random_range(0..4) {
                        0 => RunResult::Invalid { reason: "no number".to_owned() },
                        1 => RunResult::Failed { reason: "exit 1".to_owned() },
                        2 => RunResult::Untestable(untestable(UntestableKind::Panic)),
                        _ => RunResult::Untestable(untestable(UntestableKind::Declared)),
                    },
                    (None, false) => measured(self.value(boot)),
                };
                Event::RunFinished { step, boot, result }
            }
        }
    }

    fn value(&mut self, boot: BootNo) -> f64 {
        let commit = &self.state.boot(boot).expect("it is up").commit;
        let at = self.dag.index(commit).unwrap_or(self.levels.len() - 1);
        let (spread, rng) = (self.spread, &mut self.rng);
        let mut shift = || if spread > 0.0 { rng.random_range(-spread..spread) } else { 0.0 };
        self.levels[at] * (1.0 + shift() + shift())
    }

    fn finish_one(&mut self) -> Result<(), TestCaseError> {
        let open: Vec<(StepId, OpenStep)> =
            self.state.open.iter().map(|(step, open)| (*step, open.clone())).collect();
        let (step, what) = open.choose(&mut self.rng).cloned().expect("a step is open");
        let event = self.end_of(step, what);
        self.record(&event)
    }

    /// A new process takes the session up, as the driver does.
    fn reopen(&mut self) -> Result<(), TestCaseError> {
        self.planner = Planner::of(&self.dag, &self.state);
        let budget = if matches!(self.state.halted, Some(Halt::Budget { .. })) { 200 } else { 0 };
        self.record(&opened(budget))?;
        for step in self.state.open.keys().copied().collect::<Vec<_>>() {
            self.record(&Event::StepInterrupted { step })?;
        }
        let live = self.state.boots.iter().filter(|boot| boot.status != BootStatus::Ended);
        for boot in live.map(|boot| boot.boot).collect::<Vec<_>>() {
            self.record(&Event::BootEnded { boot })?;
        }
        Ok(())
    }

    fn next_step(&self) -> StepId {
        StepId(self.state.last_step + 1)
    }

    /// No two steps use one machine or the builder at once: the driver relies on it.
    fn is_free(&self, wanted: Option<SutId>) -> bool {
        let sut = |boot: &BootNo| self.state.boot(*boot).map(|boot| boot.sut);
        self.state.open.values().all(|open| match open {
            OpenStep::Build(_) => wanted.is_some(),
            OpenStep::Boot(boot) | OpenStep::Run(boot, _) => wanted.is_none() || sut(boot) != wanted,
        })
    }

    /// Does what the session asks for. `false`: nothing is left to do.
    fn act(&mut self) -> Result<bool, TestCaseError> {
        let step = self.next_step();
        match next_action(&mut self.planner, &self.dag, &self.state) {
            Action::Done => {
                prop_assert!(self.state.open.is_empty(), "done with open steps");
                return Ok(false);
            }
            Action::Wait => {
                prop_assert!(!self.state.open.is_empty(), "waits for nothing");
                self.finish_one()?;
            }
            Action::Decide(event) => {
                if let Event::Halted { halt: Halt::Infra(failure) } = &event {
                    prop_assert!(!failure.reason.contains("fault of the program"), "{}", failure.reason);
                }
                if let Some(again) = recompute(&mut Planner::of(&self.dag, &self.state), &self.state, &event)
                {
                    prop_assert_eq!(again.computed, Ok(again.recorded));
                }
                self.record(&event)?;
            }
            Action::Build { commit } => {
                prop_assert!(self.is_free(None), "two builds at once");
                self.record(&Event::BuildStarted { step, commit })?;
            }
            Action::Boot { commit, stage, slot, runs, variant, sut } => {
                prop_assert!(self.is_free(Some(sut)), "machine {} is busy", sut);
                let boot = BootNo(self.state.boots.len() as u64 + 1);
                self.record(&Event::BootStarted { step, boot, sut, commit, stage, slot, runs, variant })?;
            }
            Action::Run { boot, repetition } => {
                let sut = self.state.boot(boot).map(|boot| boot.sut);
                prop_assert!(sut.is_some() && self.is_free(sut), "boot {} is busy", boot);
                self.record(&Event::RunStarted { step, boot, repetition })?;
            }
            Action::EndBoot { boot } => self.record(&Event::BootEnded { boot })?,
        }
        Ok(true)
    }

    /// Works until the end, or until the lab has halted it too often.
    fn work(&mut self) -> Result<(), TestCaseError> {
        let mut resumes = 0;
        for _ in 0..MOST_ACTIONS {
            if self.rng.random_bool(self.dies) {
                self.reopen()?;
            }
            if self.act()? {
                continue;
            }
            if self.state.conclusion.is_some() || resumes == MOST_RESUMES {
                look_at(&self.dag, &self.state);
                return Ok(());
            }
            prop_assert!(self.state.halted.is_some(), "done without an end");
            look_at(&self.dag, &self.state);
            resumes += 1;
            self.reopen()?;
        }
        Err(TestCaseError::fail(format!("no end after {MOST_ACTIONS} actions")))
    }
}

proptest! {
    // A seed is no smaller than another, so there is nothing to shrink; the failing one is printed.
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_session_comes_to_its_end_whatever_happens_in_the_lab(seed in any::<u64>()) {
        World::new(seed).work()?;
    }
}
