//! What to measure next: the search's engine, fed with a session's facts.
//!
//! A pure function of plan, graph and the facts of the state, kept up to date instead of computed anew: a planner that has
//! followed a session from its start and one that is made from its journal say the same. Owns: the translation between
//! the session's words (commits, events) and the engine's (nodes, decisions). Must not do: effects.

use super::event::{EndpointOutcome, Event, Narrowing};
use super::judge;
use super::plan::{MachineSpec, Plan, Purpose};
use super::shift;
use super::state::{Boot, Fact, State};
use crate::model::{BootNo, CommitId, Find, Sense, Verdict};
use crate::search::{
    self, Choice, Costs, Dag, Decision, Ending, Engine, Found, Gate, Graph, Live, Measure, Options, Scope,
    Step, Why,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Cost of a boot, in runs, where each run is a boot of its own: so little that a second run in it is never worth it.
const FREE: f64 = 1e-3;

/// Seconds below which nothing costs less: a command that answers at once.
const LEAST_COST: f64 = 1e-3;

/// Size of a change about which nothing was reported, in units of the smallest worth finding.
const LIKELY: f64 = 2.0;

/// Runs after which a search that finds no end is given up, where no budget ends it before.
const MOST_RUNS: u64 = 5000;

/// Durations from which the session's own replace the guessed costs.
const LEARNT_FROM: usize = 2;

/// A verdict is retracted when its probability falls below this.
const RETRACT_BELOW: f64 = 0.5;

/// What the session is to do, as far as the search decides it.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Journal this decision and ask again.
    Decide(Event),
    /// Boot this kernel, building it first if need be.
    Boot(Wish),
    /// Take another run in this live boot.
    Run(BootNo),
    /// Nothing is left to measure.
    Over,
}

/// A boot that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Its commit.
    pub commit: CommitId,
    /// Stage of the boot.
    pub stage: u32,
    /// Counted runs it is for.
    pub runs: u32,
    /// Variant, see [`Event::BootStarted`].
    pub variant: String,
}

impl Wish {
    /// A boot for the search.
    pub(super) fn of_search(commit: CommitId, stage: u32, runs: u32) -> Self {
        Self { commit, stage, runs, variant: String::new() }
    }
}

/// The planner of one session.
#[derive(Debug, Clone)]
pub struct Planner {
    graph: Arc<Graph>,
    commits: Vec<CommitId>,
    index: BTreeMap<CommitId, usize>,
    off_path: Vec<bool>,
    engine: Engine,
    fed: usize,
    voided: usize,
    /// Merge bases whose runs (boot, index) wait for a verdict: until then they are not known to be before the change.
    held: BTreeMap<CommitId, Vec<(BootNo, usize)>>,
    single_runs: bool,
    worse: f64,
}

impl Planner {
    /// A planner that has seen nothing.
    pub fn new(dag: &Dag, plan: &Plan) -> Self {
        let mut parents: Vec<Vec<usize>> = dag.nodes().iter().map(|n| n.parents.clone()).collect();
        let mut boundary: Vec<bool> = dag.nodes().iter().map(|n| n.boundary).collect();
        let mut commits: Vec<CommitId> = dag.nodes().iter().map(|n| n.commit.clone()).collect();
        // A good endpoint that is no ancestor of bad stands in no graph.
        if dag.index(&plan.good.commit).is_none() {
            parents.push(Vec::new());
            boundary.push(true);
            commits.push(plan.good.commit.clone());
        }
        let index = commits.iter().cloned().zip(0..).collect();
        let limited = !plan.paths.is_empty();
        let mut off_path: Vec<bool> = dag.nodes().iter().map(|n| limited && !n.on_path).collect();
        off_path.resize(commits.len(), false);
        let graph = Arc::new(Graph::new(&parents, boundary));
        let engine = engine(&graph, &index, plan, &off_path);
        Self {
            graph,
            commits,
            index,
            off_path,
            engine,
            fed: 0,
            voided: 0,
            held: held(plan),
            single_runs: matches!(plan.recipe.machine, MachineSpec::Command { boot: None, .. }),
            worse: plan.recipe.metric.direction.worse_sign(),
        }
    }

    /// A planner that has followed a session to where it stands.
    pub fn of(dag: &Dag, state: &State) -> Self {
        let mut planner = Self::new(dag, &state.plan);
        planner.follow(state);
        planner
    }

    /// Takes in the facts that are new since the last call.
    pub fn follow(&mut self, state: &State) {
        if state.voided.len() != self.voided {
            self.voided = state.voided.len();
            self.fed = 0;
            self.held = held(&state.plan);
            self.engine = engine(&self.graph, &self.index, &state.plan, &self.off_path);
        }
        while let Some(fact) = state.facts.get(self.fed) {
            self.fed += 1;
            self.take(state, fact);
        }
    }

    fn take(&mut self, state: &State, fact: &Fact) {
        match fact {
            Fact::Run { boot, index } => {
                if let Some(boot) = state.boot(*boot) {
                    self.take_run(state, boot, *index);
                }
            }
            Fact::BootOver { boot } => {
                let counts = |b: &Boot| {
                    b.variant.is_empty() && counted(state, b) > 0 && !self.held.contains_key(&b.commit)
                };
                if state.boot(*boot).is_some_and(counts) && !is_void(state, *boot) {
                    self.engine.boot_over();
                }
            }
            Fact::Untestable { commit } => {
                if let Some(&node) = self.index.get(commit) {
                    self.engine.untestable(node);
                }
            }
            Fact::Mended { commit } => {
                if let Some(&node) = self.index.get(commit) {
                    self.engine.mended(node);
                }
            }
            Fact::Decided(event) => self.take_decision(state, event),
        }
    }

    fn take_run(&mut self, state: &State, boot: &Boot, index: usize) {
        if !boot.variant.is_empty() {
            return;
        }
        let is_warmup = index < state.warmup(boot);
        let node = self.index.get(&boot.commit).copied();
        let (Some(node), false) = (node, is_warmup || is_void(state, boot.boot)) else { return };
        if let Some(waiting) = self.held.get_mut(&boot.commit) {
            waiting.push((boot.boot, index));
            return;
        }
        if let Some(value) = judge::log_value(state, boot, index) {
            self.engine.observe(node, boot.boot.0, boot.stage, &[self.worse * value]);
        }
    }

    fn take_decision(&mut self, state: &State, event: &Event) {
        let node = |commit: &CommitId| self.index.get(commit).copied();
        let decision = match event {
            Event::EndpointsJudged { outcome, .. } => match outcome {
                EndpointOutcome::Change(sense) => Decision::Gate(Gate::Change(self.sign_of(*sense))),
                EndpointOutcome::NoDifference => Decision::Gate(Gate::None),
                EndpointOutcome::OppositeSign => Decision::Gate(Gate::Opposite),
                EndpointOutcome::Undecided => return,
            },
            Event::Narrowed { good, bad, why } => {
                let Some(bad) = node(bad) else { return };
                let scope = Scope { good: good.as_ref().and_then(node), bad };
                let Some(why) = self.narrowing(why) else { return };
                Decision::Narrowed(scope, why)
            }
            Event::ConfirmationStarted { culprit, parents } => {
                let Some(tip) = node(culprit) else { return };
                Decision::Confirm { tip, parents: parents.iter().filter_map(node).collect() }
            }
            Event::ConfirmationFinished { confirmed, .. } => Decision::Confirmed(Some(*confirmed)),
            Event::ConfirmationAbandoned { .. } => Decision::Confirmed(None),
            Event::PathsDropped { .. } => return self.engine.set_prior(prior(&self.graph, |_| true)),
            Event::Judged { commit, verdict, .. } => return self.release(state, commit, *verdict),
            Event::Planned { .. }
            | Event::Opened { .. }
            | Event::TailCut { .. }
            | Event::BuildStarted { .. }
            | Event::BuildFinished { .. }
            | Event::BootStarted { .. }
            | Event::BootFinished { .. }
            | Event::RunStarted { .. }
            | Event::RunFinished { .. }
            | Event::BootEnded { .. }
            | Event::StepInterrupted { .. }
            | Event::VerdictRetracted { .. }
            | Event::Voided { .. }
            | Event::Surveyed { .. }
            | Event::Halted { .. }
            | Event::Concluded { .. } => return,
        };
        self.engine.decide(&decision);
    }

    fn narrowing(&self, why: &Narrowing) -> Option<search::Narrowing> {
        let node = |commit: &CommitId| self.index.get(commit).copied();
        Some(match why {
            Narrowing::ThreeLevels { middle } => search::Narrowing::ThreeLevels(node(middle)?),
            Narrowing::NotMonotonic { bad, good } => {
                search::Narrowing::NotMonotonic { bad: node(bad)?, good: node(good)? }
            }
            Narrowing::Rest => search::Narrowing::Rest,
        })
    }

    /// A merge base that is like good is one more kernel before the change: its boots count from here on.
    fn release(&mut self, state: &State, commit: &CommitId, verdict: Verdict) {
        if verdict != Verdict::Baseline {
            return;
        }
        for (boot, index) in self.held.remove(commit).unwrap_or_default() {
            if let Some(boot) = state.boot(boot) {
                self.take_run(state, boot, index);
                self.engine.boot_over();
            }
        }
    }

    fn sign_of(&self, sense: Sense) -> i8 {
        match sense {
            Sense::Regression => 1,
            Sense::Improvement => -1,
        }
    }

    /// The search's engine as it stands.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The commit of a node.
    pub fn commit(&self, node: usize) -> &CommitId {
        &self.commits[node]
    }

    /// The node of a commit, if it is in the range or an endpoint.
    pub fn node(&self, commit: &CommitId) -> Option<usize> {
        self.index.get(commit).copied()
    }

    /// What to do next. `up`: an idle live boot that has the runs it is for.
    pub fn next(&mut self, state: &State, up: Option<&Boot>) -> Next {
        self.follow(state);
        match state.plan.purpose {
            Purpose::Bisect => {}
            Purpose::RevertTest { .. } => return super::revert::next(self, state),
            Purpose::Survey(_) => return super::survey::next(state),
        }
        if let Some(event) = shift::due(self, state) {
            return Next::Decide(event);
        }
        if let Some(event) = self.paths_due(state).or_else(|| self.verdict_due(state)) {
            return Next::Decide(event);
        }
        if let Some(next) = self.merge_base_due(state) {
            return next;
        }
        let costs = self.costs(state);
        let live = up.filter(|_| !self.single_runs).and_then(|boot| {
            let runs = counted(state, boot);
            self.node(&boot.commit).filter(|_| runs > 0).map(|node| Live { node, runs })
        });
        match self.engine.next(costs, live) {
            Step::Decide(decision) => match self.event(state, &decision) {
                Some(event) => Next::Decide(event),
                None => self.after(state),
            },
            Step::Over => self.after(state),
            Step::Measure { measure: Measure::Run { .. }, .. } => match up {
                Some(boot) => Next::Run(boot.boot),
                None => Next::Over,
            },
            Step::Measure {
                measure: Measure::Boot { node, runs } | Measure::Build { node, runs },
                stage,
                ..
            } => Next::Boot(Wish::of_search(self.commits[node].clone(), stage, runs)),
        }
    }

    /// What is left to do once the search is over: its verdict stands, whatever comes of this.
    fn after(&self, state: &State) -> Next {
        super::further::next(state, &[]).map_or(Next::Over, Next::Boot)
    }

    /// What another machine can measure while these boots are under way: a kernel of the same block.
    pub fn beside(&mut self, state: &State, pending: &[&Boot]) -> Option<Wish> {
        self.follow(state);
        match state.plan.purpose {
            Purpose::Bisect => {}
            Purpose::RevertTest { .. } => {
                let commit = super::revert::beside(state, pending)?;
                return Some(Wish::of_search(commit, 0, self.engine.runs_per_boot(self.costs(state))));
            }
            Purpose::Survey(_) => return super::survey::beside(state, pending),
        }
        if pending.iter().any(|boot| !boot.variant.is_empty()) {
            return super::further::next(state, pending);
        }
        let under_way: Vec<(usize, u32)> =
            pending.iter().filter_map(|b| Some((self.node(&b.commit)?, b.stage))).collect();
        match self.engine.beside(self.costs(state), &under_way)? {
            (Measure::Boot { node, runs }, stage) => {
                Some(Wish::of_search(self.commits[node].clone(), stage, runs))
            }
            (Measure::Run { .. } | Measure::Build { .. }, _) => None,
        }
    }

    /// The choice behind the next measurement and why it is made; `None` when nothing is measured next.
    pub fn reason(&mut self, state: &State) -> Option<(Measure, Why)> {
        let costs = self.costs(state);
        let mut ahead = self.clone();
        // Decisions in between change nothing that is measured.
        for _ in 0..8 {
            match ahead.engine.next(costs, None) {
                Step::Measure { measure, why, .. } => return Some((measure, why)),
                Step::Decide(decision) => ahead.engine.decide(&decision),
                Step::Over => return None,
            }
        }
        None
    }

    /// Seconds that things take: the medians of what the session saw, until then the plan's guesses.
    pub fn costs(&self, state: &State) -> Costs {
        let guessed = &state.plan.recipe.costs;
        let of = |seen: &[f64], guess: f64| {
            let cost = if seen.len() >= LEARNT_FROM { crate::stats::median(seen) } else { guess };
            cost.max(LEAST_COST)
        };
        let builds = match state.plan.recipe.builder {
            super::plan::BuilderSpec::None => LEAST_COST,
            super::plan::BuilderSpec::Command { .. } | super::plan::BuilderSpec::Kbuild(_) => {
                // The first of all compiles everything: it says little of the next.
                let warm = state.took.builds.get(1..).unwrap_or_default();
                let cost = if warm.is_empty() { guessed.build_s } else { crate::stats::median(warm) };
                cost.max(LEAST_COST)
            }
        };
        // Warm-up runs belong to the boot.
        let run = of(&state.took.runs, guessed.run_s);
        let warmup = f64::from(state.plan.recipe.judging.warmup_runs) * run;
        let boot = if self.single_runs { run * FREE } else { of(&state.took.boots, guessed.boot_s) + warmup };
        Costs { build: builds, boot, run }
    }

    /// The smallest effect, as a fraction, that as many boots of the endpoints as there may be would show (error 1 %, power
    /// 99 %); `None` before they have boots.
    pub fn found_from(&self, state: &State) -> Option<f64> {
        /// One-sided normal quantile of both.
        const QUANTILE: f64 = 2.326;
        let belief = self.engine.belief();
        belief.grid()?;
        let boots = self.engine.gate_cap() as f64;
        let scale = belief.levels(belief.leader()).scale;
        let least = 2.0 * QUANTILE * scale * (2.0 / boots).sqrt();
        Some(least.exp_m1().max(state.plan.recipe.minimum_effect.0))
    }

    /// A verdict to record or to retract, if the posterior asks for one.
    fn verdict_due(&self, state: &State) -> Option<Event> {
        self.engine.ending().is_none().then_some(())?;
        let belief = self.engine.belief();
        belief.grid()?;
        let is_searching =
            matches!(state.endpoints.as_ref().map(|e| e.outcome), Some(EndpointOutcome::Change(_)));
        if !is_searching || state.plan.purpose != Purpose::Bisect {
            return None;
        }
        let ends = [&state.plan.good.commit, &state.plan.bad.commit];
        (0..belief.kernels().len()).find_map(|kernel| {
            let node = belief.kernels()[kernel].node;
            let commit = &self.commits[node];
            if ends.contains(&commit) || !belief.is_candidate(node) {
                return None;
            }
            let own = search::own_odds(belief, kernel);
            judge::due(state, self, commit, believed(belief.p_bad(kernel), own), RETRACT_BELOW)
        })
    }

    /// Where good is no ancestor of bad, the merge bases must be like good before anything is searched.
    fn merge_base_due(&self, state: &State) -> Option<Next> {
        if !matches!(state.endpoints.as_ref().map(|e| e.outcome), Some(EndpointOutcome::Change(_))) {
            return None;
        }
        let base = self.held.keys().next()?;
        if state.commit(base).is_some_and(|c| c.verdict.is_some()) {
            return Some(Next::Over);
        }
        let boots: Vec<Vec<f64>> = state
            .searched()
            .filter(|b| b.commit == *base && !is_void(state, b.boot))
            .map(|b| judge::log_values(state, b).into_iter().map(|v| self.worse * v).collect())
            .filter(|runs: &Vec<f64>| !runs.is_empty())
            .collect();
        let odds = self.engine.belief().log_odds(&boots);
        Some(judge::merge_base(state, self, base, odds, boots.len()))
    }

    /// An engine's decision as an event; `None` for the end.
    fn event(&self, state: &State, decision: &Decision) -> Option<Event> {
        let id = |node: usize| self.commits[node].clone();
        let ids = |nodes: &[usize]| nodes.iter().map(|&n| id(n)).collect::<Vec<_>>();
        Some(match decision {
            Decision::Gate(gate) => judge::gate(state, self, *gate),
            Decision::Narrowed(scope, why) => Event::Narrowed {
                good: scope.good.map(id),
                bad: id(scope.bad),
                why: match *why {
                    search::Narrowing::ThreeLevels(middle) => Narrowing::ThreeLevels { middle: id(middle) },
                    search::Narrowing::NotMonotonic { bad, good } => {
                        Narrowing::NotMonotonic { bad: id(bad), good: id(good) }
                    }
                    search::Narrowing::Rest => Narrowing::Rest,
                },
            },
            Decision::Confirm { tip, parents } => {
                Event::ConfirmationStarted { culprit: id(*tip), parents: ids(parents) }
            }
            Decision::Confirmed(result) => self.confirmed(state, *result)?,
            Decision::Over(_) => return None,
        })
    }

    /// The end of a confirmation.
    fn confirmed(&self, state: &State, result: Option<bool>) -> Option<Event> {
        let going = state.confirmation.as_ref()?;
        Some(match result {
            Some(confirmed) => judge::confirmation(state, self, going, confirmed),
            None => Event::ConfirmationAbandoned {
                culprit: going.culprit.clone(),
                reason: "it is not the likeliest any more, or a kernel of it cannot be measured".to_owned(),
            },
        })
    }

    /// A confirmation that was refuted while the path limits hold: if a parent beside the paths was measured, the culprit
    /// may lie beside them, and they go.
    fn paths_due(&self, state: &State) -> Option<Event> {
        if state.plan.paths.is_empty() || state.paths_dropped.is_some() {
            return None;
        }
        let refuted = state.confirmation.as_ref().filter(|c| matches!(c.result, Some((false, _))))?;
        let beside = refuted.parents.iter().find(|p| self.node(p).is_some_and(|n| self.off_path[n]))?;
        Some(Event::PathsDropped { commit: beside.clone() })
    }

    /// How it ended, once the engine has nothing left to do.
    pub fn ending(&mut self, state: &State) -> Ending {
        match self.engine.next(self.costs(state), None) {
            Step::Decide(Decision::Over(ending)) => ending,
            Step::Decide(_) | Step::Measure { .. } | Step::Over => {
                self.engine.ending().unwrap_or(Ending::Stuck)
            }
        }
    }

    /// Commits of a culprit.
    pub fn suspects(&self, found: &Found) -> Vec<CommitId> {
        found.suspects.iter().map(|&n| self.commits[n].clone()).collect()
    }
}

/// Probability that a kernel has the change: the posterior's, which rests on a single step, unless its own boots speak
/// clearly (9 to 1) against that; then theirs.
fn believed(p_bad: f64, own_odds: f64) -> f64 {
    const CLEAR: f64 = 2.197;
    let disagrees = (p_bad >= 0.5) != (own_odds > 0.0);
    if disagrees && own_odds.abs() > CLEAR { 1.0 / (1.0 + (-own_odds).exp()) } else { p_bad }
}

/// Merge bases, without any run.
fn held(plan: &Plan) -> BTreeMap<CommitId, Vec<(BootNo, usize)>> {
    plan.merge_bases.iter().map(|base| (base.clone(), Vec::new())).collect()
}

/// Whether a boot's runs count no more.
pub(super) fn is_void(state: &State, boot: BootNo) -> bool {
    state.voided.iter().any(|(boots, _)| boots.contains(&boot))
}

/// Runs of a boot that count.
pub(super) fn counted(state: &State, boot: &Boot) -> usize {
    boot.runs.len().saturating_sub(state.warmup(boot))
}

/// Equal weight for every candidate that `counts`.
fn prior(graph: &Graph, counts: impl Fn(usize) -> bool) -> Vec<f64> {
    (0..graph.len()).map(|at| f64::from(u8::from(!graph.is_boundary(at) && counts(at)))).collect()
}

fn engine(graph: &Arc<Graph>, index: &BTreeMap<CommitId, usize>, plan: &Plan, off_path: &[bool]) -> Engine {
    let recipe = &plan.recipe;
    let (good, bad) = (index[&plan.good.commit], index[&plan.bad.commit]);
    let mut left_out = vec![false; graph.len()];
    for commit in &plan.skipped {
        if let Some(&node) = index.get(commit) {
            left_out[node] = true;
        }
    }
    let sign = match recipe.find {
        Find::Regression => Some(1),
        Find::Improvement => Some(-1),
        Find::Any => None,
    };
    let minimum = recipe.minimum_effect.0.ln_1p();
    // Without a reported size the change is likely some times larger than the least that is worth finding.
    let size = recipe.expected_effect.map_or(LIKELY * minimum, |e| e.0.abs().ln_1p().max(minimum));
    let options = Options {
        claim: if sign == Some(-1) { -size } else { size },
        minimum,
        sign,
        confidence: recipe.confidence,
        boots: recipe.judging.boots.max(2) as usize,
        most_boots: recipe.judging.max_boots as usize,
        most_runs: MOST_RUNS,
        seed: plan.seed,
    };
    // The bad endpoint may show what a commit beside the paths did, so it always counts.
    let weights = prior(graph, |at| !off_path[at] || at == bad);
    Engine::new(Arc::clone(graph), (good, bad), weights, left_out, options)
}

/// What was chosen and what came second, for people: bits, minutes.
pub fn choice(why: &Why) -> Option<&Choice> {
    match why {
        Why::Worth(choice) => Some(choice),
        Why::Gate | Why::Doubt | Why::Neighbour | Why::Reference | Why::Confirmation => None,
    }
}
