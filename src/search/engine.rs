//! The search as a machine of states: gate, search, confirmation, and what is left to find.
//!
//! A pure fold: facts (runs, untestable commits) and decisions go in in the order they came; [`Engine::next`] says what to
//! do now. The same facts in the same order give the same next step, whatever process asks. Decisions are handed out to be
//! recorded and come back through [`Engine::decide`]. Must not do: know of sessions, machines or files.
//! Tested in tests/it/cases_engine.rs and determinism.rs and, by thousands of searches, through `simulate`.

mod beside;
mod confirm;
mod gate;
mod guards;
mod levels;
mod rest;
mod words;

pub use beside::Beside;
pub use words::{Decision, Ending, Found, Gate, Narrowing, Options, Step, Why};

use super::belief::{Belief, BootRuns, Scope};
use super::graph::Graph;
use super::testable::Testable;
use super::worth::{self, Costs, Live, Measure, Open};
use crate::stats::{Drift, FirstRun, FoundModes};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Prior probability that the endpoints do not differ.
const NO_CHANGE: f64 = 0.2;

/// The search begins when a change is at least this probable ...
const GATE_CHANGE: f64 = 0.9;

/// ... and nothing is blamed when "no change" is at least this probable, at the gate or later.
const GATE_NONE: f64 = 0.98;

/// A change of the sign that was not asked for ends the search, so it must be surer than one that begins it.
const GATE_OPPOSITE: f64 = 0.99;

/// With all the boots that show the claimed effect by the power analysis, "no change" need not be that probable.
const CAP_NONE: f64 = 0.85;

/// Such sets of boots after which what is still in doubt stays so; twice as many once the search has begun.
const CAPS: usize = 2;

/// From this probability of "no change" on, the endpoints are measured before anything else.
const DOUBT: f64 = 0.3;

/// Mass of one class from which it is confirmed by fresh boots.
const CONFIRM_FROM: f64 = 0.90;

/// Refuted confirmations after which nobody is named.
const MOST_REFUTED: u32 = 4;

/// Boots that one kernel gets at most in the search: this many, or this many times what an endpoint may get.
const MOST_BOOTS: usize = 100;
const BOOTS_OF_CAP: usize = 4;

/// How often a scope may be narrowed.
const MOST_SCOPES: usize = 6;

/// Boots between two reference boots, with and without drift in the data.
const REFERENCE_EVERY: (usize, usize) = (5, 12);

/// A confirmation under way.
#[derive(Debug, Clone, PartialEq)]
struct Confirming {
    tip: usize,
    parents: Vec<usize>,
    first_stage: u32,
    stage: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Gate,
    Search,
    Confirm,
    Over(Ending),
}

/// The search.
#[derive(Debug, Clone)]
pub struct Engine {
    graph: Arc<Graph>,
    options: Options,
    prior: Vec<f64>,
    left_out: Vec<bool>,
    good: usize,
    bad: usize,
    belief: Belief,
    /// Every boot, by kernel: a new scope is built from them.
    all: BTreeMap<usize, Vec<BootRuns>>,
    order: Vec<(usize, u64)>,
    untestable: Vec<bool>,
    testable: Testable,
    mode: Mode,
    confirming: Option<Confirming>,
    last_stage: u32,
    refuted: u32,
    /// Narrowings that were taken back: the data speak for a single step after all.
    taken_back: u32,
    narrowed: Vec<(Scope, Narrowing)>,
    found: Vec<Found>,
    runs: u32,
    boots: usize,
    last_reference: usize,
    drift: Drift,
    first: Option<FirstRun>,
    /// What is taken out of the runs, by their place in time: drift, and what first runs are off.
    taken: Vec<f64>,
    modes: Option<FoundModes>,
    /// Boots from which modes are looked for again.
    modes_at: usize,
}

impl Engine {
    /// A search of the whole graph: `good` and `bad` are the nodes of the endpoints (where good is no ancestor of bad,
    /// a boundary node stands for it). `prior`: weight of each node, zero for those that are no candidates; `left_out`:
    /// not to be measured.
    pub fn new(
        graph: Arc<Graph>,
        (good, bad): (usize, usize),
        prior: Vec<f64>,
        left_out: Vec<bool>,
        options: Options,
    ) -> Self {
        let scope = Scope { good: None, bad };
        let belief = Belief::new(Arc::clone(&graph), (scope, good), options.claim, taus(), &prior, true);
        let untestable = vec![false; graph.len()];
        Self {
            graph,
            options,
            prior,
            left_out,
            good,
            bad,
            belief,
            all: BTreeMap::new(),
            order: Vec::new(),
            untestable,
            testable: Testable::new(),
            mode: Mode::Gate,
            confirming: None,
            last_stage: 0,
            refuted: 0,
            taken_back: 0,
            narrowed: Vec::new(),
            found: Vec::new(),
            runs: 0,
            boots: 0,
            last_reference: 0,
            drift: Drift { step: 0.0, evidence: 0.0, path: Vec::new() },
            first: None,
            taken: Vec::new(),
            modes: None,
            modes_at: 0,
        }
    }

    /// The belief in the present scope.
    pub fn belief(&self) -> &Belief {
        &self.belief
    }

    /// Culprits confirmed so far.
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// Scopes and why each was narrowed, in order.
    pub fn narrowed(&self) -> &[(Scope, Narrowing)] {
        &self.narrowed
    }

    /// The drift that the data show now.
    pub fn drift(&self) -> &Drift {
        &self.drift
    }

    /// What the first run of each boot is off the later ones, if the data show it.
    pub fn first_run(&self) -> Option<&FirstRun> {
        self.first.as_ref()
    }

    /// Two modes of boots, if the data show them.
    pub fn modes(&self) -> Option<&FoundModes> {
        self.modes.as_ref()
    }

    /// Runs of a boot were measured (log units, positive = worse). A boot's runs may come in several calls.
    pub fn observe(&mut self, node: usize, boot: u64, stage: u32, values: &[f64]) {
        let runs: Vec<(f64, u32)> =
            values.iter().enumerate().map(|(i, v)| (*v, self.runs + i as u32)).collect();
        self.runs += values.len() as u32;
        let boots = self.all.entry(node).or_default();
        if boots.is_empty() {
            self.testable.observe(node, false);
        }
        match boots.last_mut().filter(|b| b.boot == boot) {
            Some(known) => known.runs.extend_from_slice(&runs),
            None => {
                boots.push(BootRuns { boot, stage, runs: runs.clone() });
                self.order.push((node, boot));
                self.boots += 1;
            }
        }
        if node == self.good || node == self.bad {
            self.last_reference = self.boots;
        }
        if self.in_scope(node) {
            self.belief.observe(node, boot, stage, &runs);
        }
    }

    /// A boot is over: its runs are all there. The grid is laid anew where the data have grown.
    pub fn boot_over(&mut self) {
        if self.belief.grid().is_none() {
            let (good, bad) = self.belief.end_boots();
            if good >= self.options.boots && bad >= self.options.boots {
                self.belief.begin();
            }
            return;
        }
        self.follow_time();
        if self.boots >= self.modes_at {
            self.follow_modes();
        }
        self.belief.settle();
    }

    /// A commit cannot be measured.
    pub fn untestable(&mut self, node: usize) {
        if !std::mem::replace(&mut self.untestable[node], true) {
            self.testable.observe(node, true);
        }
    }

    /// A commit that could not be measured may be again.
    pub fn mended(&mut self, node: usize) {
        self.untestable[node] = false;
    }

    /// Replaces the prior weights (the path limits were dropped).
    pub fn set_prior(&mut self, prior: Vec<f64>) {
        self.prior = prior;
        self.rebuild(self.belief.scope());
    }

    /// Kernels that count in a scope: before it only its good end, and only what contains that.
    fn in_scope(&self, node: usize) -> bool {
        let scope = self.belief.scope();
        if !self.graph.is_boundary(node) && !self.graph.reaches(node, scope.bad) {
            return false;
        }
        scope.good.is_none_or(|good| self.graph.reaches(good, node))
    }

    fn rebuild(&mut self, scope: Scope) {
        let is_whole = scope == Scope { good: None, bad: self.bad };
        self.belief = Belief::new(
            Arc::clone(&self.graph),
            (scope, self.good),
            self.options.claim,
            taus(),
            &self.prior,
            is_whole,
        );
        for (node, boot) in self.order.clone() {
            if self.in_scope(node) {
                let known = self.all[&node].iter().find(|b| b.boot == boot).expect("it is in the order");
                let (stage, runs) = (known.stage, known.runs.clone());
                self.belief.observe(node, boot, stage, &runs);
            }
        }
        let (good, bad) = self.belief.end_boots();
        if good > 0 && bad > 0 {
            self.belief.begin();
            self.belief.set_drift(self.taken.clone());
            self.lay_modes();
        }
    }

    /// Takes a decision in.
    pub fn decide(&mut self, decision: &Decision) {
        match decision {
            Decision::Gate(Gate::Change(_)) => self.mode = Mode::Search,
            Decision::Gate(Gate::None) => self.mode = Mode::Over(Ending::NoChange),
            Decision::Gate(Gate::Opposite) => self.mode = Mode::Over(Ending::Opposite),
            Decision::Gate(Gate::Open) => self.mode = Mode::Over(Ending::NotReproduced),
            Decision::Narrowed(scope, why) => {
                if self.found.is_empty() && self.cut_out_of().is_some_and(|(outer, _)| outer == *scope) {
                    self.taken_back += 1;
                    self.refuted = 0;
                }
                self.narrowed.push((*scope, *why));
                self.rebuild(*scope);
                self.mode = Mode::Search;
            }
            Decision::Confirm { tip, parents } => self.begin_confirmation(*tip, parents),
            Decision::Confirmed(result) => self.end_confirmation(*result),
            Decision::Over(ending) => self.mode = Mode::Over(*ending),
        }
    }

    fn suspects_of(&self, class: usize) -> Vec<usize> {
        self.belief.classes().0[class].members.iter().map(|&at| at as usize).collect()
    }

    /// What to do now. `live`: a boot that could take another run.
    pub fn next(&mut self, costs: Costs, live: Option<Live>) -> Step {
        let is_spent = self.options.most_runs > 0 && u64::from(self.runs) >= self.options.most_runs;
        if is_spent && self.ending().is_none() {
            return Step::Decide(Decision::Over(Ending::Spent));
        }
        // Where the boots of the ends were voided, they come first.
        if self.belief.grid().is_none() && self.ending().is_none() {
            return self.boot_of_ends(self.runs_per_boot(costs), Why::Gate);
        }
        match self.mode {
            Mode::Gate => self.gate(costs),
            Mode::Search => self.search(costs, live),
            Mode::Confirm => self.confirm(costs),
            Mode::Over(_) => Step::Over,
        }
    }

    /// How it ended.
    pub fn ending(&self) -> Option<Ending> {
        match self.mode {
            Mode::Over(ending) => Some(ending),
            Mode::Gate | Mode::Search | Mode::Confirm => None,
        }
    }

    fn measure(&self, node: usize, runs: u32, stage: u32, why: Why) -> Step {
        let is_built = self.all.contains_key(&node);
        let measure = if is_built { Measure::Boot { node, runs } } else { Measure::Build { node, runs } };
        Step::Measure { measure, stage, why }
    }

    /// Runs of the next boot of a kernel that is not chosen by worth.
    pub fn runs_per_boot(&self, costs: Costs) -> u32 {
        if self.belief.grid().is_none() {
            return 1;
        }
        worth::runs_per_boot(&self.belief, &self.belief.levels(self.belief.leader()), costs)
    }

    /// The next boot of the scope's two ends, block by block in a random order.
    fn boot_of_ends(&self, runs: u32, why: Why) -> Step {
        let (good, bad) = self.belief.ends();
        let node = self.next_of_block(&[good, bad], 0, |node| self.boots_in(node, 0));
        self.measure(node, runs, 0, why)
    }

    fn boots_in(&self, node: usize, stage: u32) -> usize {
        self.all.get(&node).map_or(0, |boots| boots.iter().filter(|b| b.stage == stage).count())
    }

    /// The kernel whose turn it is: each block is a random order of all of them, so that none is always first.
    fn next_of_block(&self, nodes: &[usize], stage: u32, boots: impl Fn(usize) -> usize) -> usize {
        let block = nodes.iter().map(|&n| boots(n)).min().unwrap_or(0);
        let mut order = nodes.to_vec();
        let mut rng = ChaCha8Rng::seed_from_u64(self.options.seed);
        rng.set_stream(u64::from(stage) << 32 | block as u64);
        order.shuffle(&mut rng);
        order.into_iter().find(|&n| boots(n) == block).unwrap_or(nodes[0])
    }

    fn search(&mut self, costs: Costs, live: Option<Live>) -> Step {
        if let Some(step) = self.rest_of_difference() {
            return step;
        }
        if self.refuted >= MOST_REFUTED {
            return self.over(Ending::Unconfirmed);
        }
        let is_first = self.narrowed.is_empty();
        let none = self.belief.p_no_change(NO_CHANGE);
        if none >= GATE_NONE {
            return self.over(Ending::NoChange);
        }
        if none > DOUBT && is_first {
            let (good, bad) = self.belief.end_boots();
            if good.min(bad) >= self.gate_cap() && none >= CAP_NONE {
                return self.over(Ending::NoChange);
            }
            if good.min(bad) >= 2 * CAPS * self.gate_cap() {
                return self.over(Ending::NotReproduced);
            }
            let ends = self.belief.ends();
            let node = if good <= bad { ends.0 } else { ends.1 };
            return self.measure(node, self.runs_per_boot(costs), 0, Why::Doubt);
        }
        if let Some(step) = self.look_for_more(costs) {
            return step;
        }
        if let Some(step) = self.reference(costs) {
            return step;
        }
        self.testable.settle(&self.graph);
        let leader = self.belief.leader();
        let weight = self.belief.classes().1[leader];
        if weight >= CONFIRM_FROM && !self.can_split(leader) {
            match self.edge_of(leader) {
                Some((tip, parents)) if !self.waits_for_mass(tip, &parents) => {
                    return Step::Decide(Decision::Confirm { tip, parents });
                }
                // As sure as it can get, and no edge to confirm: what is before it cannot be measured.
                None if weight >= self.options.confidence => return self.over(Ending::Stuck),
                Some(_) | None => {}
            }
        }
        let may_build = |node: usize| self.may_build(node);
        // Beyond this no boot of it will tell more: what is left is not in its noise.
        let most = MOST_BOOTS.max(BOOTS_OF_CAP * self.gate_cap());
        let may_boot = |node: usize| {
            !self.untestable[node] && self.all.get(&node).is_none_or(|boots| boots.len() < most)
        };
        let open = Open { may_build: &may_build, may_boot: &may_boot, testable: &self.testable };
        match worth::choose(&self.belief, &open, costs, live) {
            Some(choice) => Step::Measure { measure: choice.best.measure, stage: 0, why: Why::Worth(choice) },
            None => self.over(Ending::Stuck),
        }
    }

    /// The end: with what was found, if anything was. A part of the range in which nothing can be found was the wrong
    /// one: back to where it was cut out of.
    fn over(&self, ending: Ending) -> Step {
        if !self.found.is_empty() {
            return Step::Decide(Decision::Over(Ending::Found));
        }
        if let (Some((scope, why @ Narrowing::ThreeLevels(_))), 0) = (self.cut_out_of(), self.taken_back) {
            return Step::Decide(Decision::Narrowed(scope, why));
        }
        Step::Decide(Decision::Over(ending))
    }

    /// The scope of which the present one is a part, and why it was cut out.
    fn cut_out_of(&self) -> Option<(Scope, Narrowing)> {
        let (_, why) = *self.narrowed.last()?;
        let before = self.narrowed.len().checked_sub(2).map(|at| self.narrowed[at].0);
        Some((before.unwrap_or(Scope { good: None, bad: self.bad }), why))
    }

    fn may_build(&self, node: usize) -> bool {
        !self.untestable[node]
            && !self.left_out[node]
            && !self.all.contains_key(&node)
            && self.belief.is_candidate(node)
    }

    /// Whether measuring one of its own members could tell a class's members apart.
    fn can_split(&self, class: usize) -> bool {
        let members = &self.belief.classes().0[class].members;
        if members.len() < 2 {
            return false;
        }
        members.iter().any(|&at| {
            let at = at as usize;
            if !self.may_build(at) || self.is_hopeless(at) {
                return false;
            }
            let inside = self.graph.ancestors(at);
            members.iter().any(|&other| !inside[other as usize])
        })
    }

    fn is_hopeless(&self, node: usize) -> bool {
        worth::is_hopeless(&self.testable, node)
    }

    /// A boot of an endpoint when none was booted for long.
    fn reference(&self, costs: Costs) -> Option<Step> {
        let every = if self.drift.step > 0.0 { REFERENCE_EVERY.0 } else { REFERENCE_EVERY.1 };
        if self.boots < self.last_reference + every {
            return None;
        }
        let (good, bad) = (self.boots_in(self.good, 0), self.boots_in(self.bad, 0));
        let node = if good <= bad { self.good } else { self.bad };
        Some(self.measure(node, self.runs_per_boot(costs), 0, Why::Reference))
    }

    /// Mean of each boot of a kernel in these stages, drift removed.
    pub fn means(&self, node: usize, stages: std::ops::RangeInclusive<u32>) -> Vec<f64> {
        let mean = |b: &BootRuns| b.runs.iter().map(|r| self.level_of(r)).sum::<f64>() / b.runs.len() as f64;
        let boots = self.all.get(&node).map_or(&[][..], Vec::as_slice);
        boots.iter().filter(|b| stages.contains(&b.stage)).map(mean).collect()
    }

    /// Nodes of all measured kernels, in no order that matters.
    pub fn measured(&self) -> impl Iterator<Item = usize> + '_ {
        self.all.keys().copied()
    }

    /// Mean of each boot of a kernel, drift removed.
    fn boot_means(&self, node: usize) -> Vec<f64> {
        self.means(node, 0..=u32::MAX)
    }
}

/// Build sds over run sd that are weighed, with their prior weights.
fn taus() -> Vec<(f64, f64)> {
    vec![(0.0, 0.5), (0.3, 0.5)]
}
