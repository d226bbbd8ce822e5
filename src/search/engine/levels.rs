//! More than one step in a scope: three levels, or a bad kernel inside a good one. The search goes on in the part that holds
//! the larger step.

use super::{
    CONFIRM_FROM, Costs, Decision, Engine, LOOK_EVERY, MOST_SCOPES, Narrowing, Scope, Step, THREE_LEVELS, Why,
};
use crate::search::steps::{self, TwoSteps};

/// Log odds from which a kernel is surely of the middle level and not of the one beyond it.
const SURELY_MIDDLE: f64 = 3.0;

/// Build sds from a level on that no build of one kernel is taken to explain.
const BEYOND_BUILDS: f64 = 5.0;

/// Log odds by which a neighbour's boots are to tell the middle level from the others.
const NEIGHBOUR_ODDS: f64 = 7.0;

/// Fewest and most boots of that neighbour.
const NEIGHBOUR_BOOTS: (usize, usize) = (2, 20);

/// What the neighbours of a single kernel in the middle say.
enum Neighbours {
    /// They lie there too, or none can be measured, or no build could put a kernel there.
    Agree,
    /// The kernel stands alone: its build, not its commit.
    Deny,
    /// One of them is to be measured first.
    Ask(Step),
}

impl Engine {
    /// Every few boots, and before a culprit is confirmed: are there three levels, or a bad kernel inside a good one?
    pub(super) fn look_for_more(&self, costs: Costs) -> Option<Step> {
        let is_due = self.boots.is_multiple_of(LOOK_EVERY)
            || self.belief.classes().1[self.belief.leader()] >= CONFIRM_FROM;
        if self.narrowed.len() >= MOST_SCOPES || self.taken_back > 0 || !is_due {
            return None;
        }
        let two = steps::two_steps(&self.belief).filter(|two| two.evidence > THREE_LEVELS);
        if let Some(two) = two {
            match self.neighbours(&two, costs) {
                Neighbours::Agree => return self.larger_step(&two),
                Neighbours::Ask(step) => return Some(step),
                Neighbours::Deny => {}
            }
        }
        let (bad, good) = steps::contradiction(&self.belief)?;
        let narrower = Scope { good: Some(good), ..self.belief.scope() };
        Some(Step::Decide(Decision::Narrowed(narrower, Narrowing::NotMonotonic { bad, good })))
    }

    /// The part of the scope with the larger step of the asked sign. It ends as far into the middle as kernels surely lie
    /// there: the step may be right before the first of them, and builds of one kernel alone would leave that open.
    fn larger_step(&self, two: &TwoSteps) -> Option<Step> {
        let scope = self.belief.scope();
        let sign = self.options.claim.signum();
        let [before, middle, after] = two.levels.map(|level| sign * level.mean);
        let is_first = middle - before >= after - middle;
        let beyond = if is_first { two.levels[2] } else { two.levels[0] };
        let kernels = self.belief.kernels();
        let is_sure =
            |&k: &usize| steps::odds(&self.belief, k, two.levels[1].mean, beyond.mean) >= SURELY_MIDDLE;
        let sure = || two.between.iter().copied().filter(is_sure).map(|k| kernels[k].node);
        let outermost = if is_first { sure().max() } else { sure().min() };
        let anchor = outermost.or_else(|| self.most_booted(two).map(|k| kernels[k].node))?;
        let narrower =
            if is_first { Scope { bad: anchor, ..scope } } else { Scope { good: Some(anchor), ..scope } };
        Some(Step::Decide(Decision::Narrowed(narrower, Narrowing::ThreeLevels(anchor))))
    }

    fn most_booted(&self, two: &TwoSteps) -> Option<usize> {
        two.between.iter().copied().max_by_key(|&k| self.belief.kernels()[k].boots.len())
    }

    /// A single kernel in the middle may owe its level to how it was built. Its neighbours, one commit away, are other
    /// builds of nearly the same: they decide.
    fn neighbours(&self, two: &TwoSteps, costs: Costs) -> Neighbours {
        let [before, middle, after] = two.levels.map(|level| level.mean);
        let is_sure = |&k: &usize| {
            [before, after].iter().all(|&o| steps::odds(&self.belief, k, middle, o) >= SURELY_MIDDLE)
        };
        let sure: Vec<usize> = two.between.iter().copied().filter(is_sure).collect();
        if sure.len() > 1 {
            return Neighbours::Agree;
        }
        let Some(alone) = sure.first().copied().or_else(|| self.most_booted(two)) else {
            return Neighbours::Deny;
        };
        let gap = (middle - before).abs().min((after - middle).abs());
        if gap > BEYOND_BUILDS * self.belief.widest_build() {
            return Neighbours::Agree;
        }
        let scale = self.belief.levels(self.belief.leader()).scale;
        let wanted = (2.0 * NEIGHBOUR_ODDS * (scale / gap).powi(2)).ceil() as usize;
        let wanted = wanted.clamp(NEIGHBOUR_BOOTS.0, NEIGHBOUR_BOOTS.1);
        let node = self.belief.kernels()[alone].node;
        let mut seen = false;
        let near = self.graph.parents(node).chain(self.graph.children(node));
        for near in near.filter(|&n| self.belief.is_candidate(n)) {
            let boots = self.all.get(&near).map_or(0, Vec::len);
            let can_be = if boots > 0 { !self.untestable[near] } else { self.may_build(near) };
            if boots < wanted && can_be {
                return Neighbours::Ask(self.measure(near, self.runs_per_boot(costs), 0, Why::Neighbour));
            }
            seen |= boots > 0;
        }
        if seen { Neighbours::Deny } else { Neighbours::Agree }
    }
}
