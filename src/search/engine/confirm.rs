//! Confirmation: fresh, interleaved boots of a culprit and of what is right before it.

use super::{Confirming, Costs, Decision, Ending, Engine, Found, Mode, Step, Why};
use crate::search::belief::BootRuns;
use crate::search::verify::Pairs;

/// Below this a confirmation goes back to the search.
const CONFIRM_UNTIL: f64 = 0.5;

/// Log Bayes factor wanted from the fresh boots, for or against: 20.
const CONFIRM_FACTOR: f64 = 2.995_732_273_553_991;

/// Pairs of fresh boots without which no step is confirmed, however clear: one boot may be a bad one.
const LEAST_PAIRS: usize = 2;

/// Pairs of fresh boots after which a confirmation is given up.
const CONFIRM_PAIRS: usize = 200;

impl Engine {
    pub(super) fn begin_confirmation(&mut self, tip: usize, parents: &[usize]) {
        self.last_stage += 1;
        let same = self.confirming.as_ref().filter(|c| c.tip == tip && c.parents == parents);
        let first_stage = same.map_or(self.last_stage, |c| c.first_stage);
        let (parents, stage) = (parents.to_vec(), self.last_stage);
        self.confirming = Some(Confirming { tip, parents, first_stage, stage });
        self.mode = Mode::Confirm;
    }

    pub(super) fn end_confirmation(&mut self, result: Option<bool>) {
        self.mode = Mode::Search;
        let Some(done) = self.confirming.clone() else { return };
        match result {
            Some(true) => {
                let suspects = self.suspects_of(self.belief.leader());
                let (_, weights) = self.belief.classes();
                self.found.push(Found {
                    tip: done.tip,
                    parents: done.parents,
                    suspects,
                    probability: weights[self.belief.leader()],
                    stages: (done.first_stage, done.stage),
                });
                self.confirming = None;
            }
            Some(false) => {
                self.refuted += 1;
                self.confirming = None;
            }
            None => {}
        }
    }

    /// Posterior mass of the step that is being confirmed; 0 when none is.
    pub fn edge_mass(&self) -> f64 {
        self.confirming
            .as_ref()
            .map_or(0.0, |going| self.mass_of_edge(going, &self.belief.weights_as_built()))
    }

    /// The kernel that shows a class's step and those right before it that do not. The tip is its one member that
    /// contains all others; parents that cannot be measured join the class's suspects through their own parents.
    pub(super) fn edge_of(&self, class: usize) -> Option<(usize, Vec<usize>)> {
        let members = self.suspects_of(class);
        let tip = self.tip_of(&members)?;
        let mut before = Vec::new();
        let mut seen = vec![false; self.graph.len()];
        let mut open = members;
        let is_member: Vec<bool> = {
            let mut mark = vec![false; self.graph.len()];
            open.iter().for_each(|&m| mark[m] = true);
            mark
        };
        while let Some(node) = open.pop() {
            for parent in self.graph.parents(node) {
                if is_member[parent] || std::mem::replace(&mut seen[parent], true) {
                    continue;
                }
                if self.untestable[parent] {
                    // The last that could show that the step is not before it.
                    if self.graph.is_boundary(parent) {
                        return None;
                    }
                    open.push(parent);
                } else {
                    before.push(parent);
                }
            }
        }
        before.sort_unstable();
        Some((tip, before))
    }

    /// Where a step of these suspects shows: the one that can be measured and contains all of them, else the first
    /// measured kernel that does.
    fn tip_of(&self, suspects: &[usize]) -> Option<usize> {
        let last = *suspects.iter().max()?;
        let is_good_tip = |node: usize| {
            let inside = self.graph.ancestors(node);
            suspects.iter().all(|&s| inside[s])
        };
        if !self.untestable[last] && is_good_tip(last) {
            return Some(last);
        }
        let mut measured: Vec<usize> = self.belief.kernels().iter().map(|k| k.node).collect();
        measured.sort_unstable();
        measured.into_iter().find(|&node| node >= last && !self.untestable[node] && is_good_tip(node))
    }

    pub(super) fn confirm(&mut self, costs: Costs) -> Step {
        let Some(going) = self.confirming.clone() else { return self.over(Ending::Stuck) };
        let all: Vec<usize> = going.parents.iter().copied().chain([going.tip]).collect();
        // What was to be measured cannot be: the search draws the edge anew.
        if all.iter().any(|&n| self.untestable[n]) {
            return Step::Decide(Decision::Confirmed(None));
        }
        let done = |node: usize| self.fresh(node, &going).len();
        let complete = all.iter().map(|&n| done(n)).min().unwrap_or(0);
        let level = all.iter().all(|&n| done(n) == complete);
        if complete > 0
            && level
            && let Some(result) = self.judge_confirmation(&going, complete)
        {
            return Step::Decide(Decision::Confirmed(result));
        }
        let node = self.next_of_block(&all, going.first_stage, done);
        self.measure(node, self.runs_per_boot(costs), going.stage, Why::Confirmation)
    }

    /// Means and runs of a kernel's fresh boots, in order.
    fn fresh(&self, node: usize, going: &Confirming) -> Vec<(f64, usize)> {
        let boots = self.all.get(&node).map_or(&[][..], Vec::as_slice);
        let stages = going.first_stage..=going.stage;
        let of = |b: &BootRuns| {
            let sum: f64 = b.runs.iter().map(|r| r.0).sum();
            (sum / b.runs.len() as f64, b.runs.len())
        };
        boots.iter().filter(|b| stages.contains(&b.stage)).map(of).collect()
    }

    /// Whether the fresh boots of this edge have shown the step already, so that only boots of other kernels can make
    /// it surer that this is the culprit.
    pub(super) fn waits_for_mass(&self, tip: usize, parents: &[usize]) -> bool {
        let same = self.confirming.as_ref().filter(|c| c.tip == tip && c.parents == parents);
        same.is_some_and(|going| {
            let is_shown = self.weakest_step(going).is_some_and(|factor| factor >= CONFIRM_FACTOR);
            is_shown && !self.is_sure_of(going)
        })
    }

    /// Log Bayes factor of the step over each parent from the fresh boots: the smallest.
    fn weakest_step(&self, going: &Confirming) -> Option<f64> {
        let leader = self.belief.leader();
        let levels = self.belief.levels(leader);
        let step = levels.bad.mean - levels.good.mean;
        let grid = self.belief.grid()?;
        let later = self.fresh(going.tip, going);
        let factor = |parent: &usize| {
            let earlier = self.fresh(*parent, going);
            let of = |(a, b): (&(f64, usize), &(f64, usize))| (a.0 - b.0, a.1.min(b.1));
            Pairs { differences: later.iter().zip(&earlier).map(of).collect() }.log_bayes(
                grid,
                &levels.noise,
                step,
            )
        };
        Some(going.parents.iter().map(factor).fold(f64::INFINITY, f64::min))
    }

    /// `Some(result)` once the confirmation is over.
    fn judge_confirmation(&self, going: &Confirming, pairs: usize) -> Option<Option<bool>> {
        let weakest = self.weakest_step(going)?;
        if weakest >= CONFIRM_FACTOR && pairs >= LEAST_PAIRS {
            // The step is there; whether it is the culprit's, other kernels tell.
            return Some(self.is_sure_of(going).then_some(true));
        }
        if weakest <= -CONFIRM_FACTOR || pairs >= CONFIRM_PAIRS {
            return Some(Some(false));
        }
        (self.mass_of_edge(going, self.belief.classes().1) < CONFIRM_UNTIL).then_some(None)
    }

    /// Whether the culprit is surely the step's: if builds do not differ of themselves, and if they may.
    fn is_sure_of(&self, going: &Confirming) -> bool {
        let asked = self.options.confidence;
        self.mass_of_edge(going, &self.belief.weights_as_built()) >= asked
            && self.mass_of_edge(going, self.belief.classes().1) >= asked
    }

    /// Mass of the candidates whose step lies between the confirmation's parents and tip.
    fn mass_of_edge(&self, going: &Confirming, weights: &[f64]) -> f64 {
        let kernels = self.belief.kernels();
        let at = |node: usize| kernels.iter().position(|k| k.node == node);
        let tip = at(going.tip);
        let parents: Vec<Option<usize>> = going.parents.iter().map(|&p| at(p)).collect();
        let (classes, _) = self.belief.classes();
        let fits = |class: usize| {
            tip.is_some_and(|t| self.belief.makes_bad(class, t))
                && !parents.iter().flatten().any(|&p| self.belief.makes_bad(class, p))
        };
        (0..classes.len()).filter(|&c| fits(c)).map(|c| weights[c]).sum()
    }
}
