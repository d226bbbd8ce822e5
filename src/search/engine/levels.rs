//! More than one step in a scope: three levels, or a bad kernel inside a good one. The search goes on in the part that holds
//! the larger step. Tested in tests/it/levels.rs.

use super::{CONFIRM_FROM, Costs, Decision, Engine, MOST_SCOPES, Narrowing, Scope, Step, Why};
use crate::search::belief::Levels;
use crate::search::steps::{self, TwoSteps};

/// Log Bayes factor from which three levels are believed: 20.
const THREE_LEVELS: f64 = 2.995_732_273_553_991;

/// Boots between two looks for them.
const LOOK_EVERY: usize = 4;

/// Log odds from which a kernel is surely of the middle level and not of another.
const SURELY_MIDDLE: f64 = 3.0;

/// Build sds from a level on that no build of one kernel is taken to explain.
const BEYOND_BUILDS: f64 = 5.0;

/// Log odds by which a neighbour's boots are to tell the middle level from the others.
const NEIGHBOUR_ODDS: f64 = 7.0;

/// Fewest and most boots of that neighbour.
const NEIGHBOUR_BOOTS: (usize, usize) = (2, 20);

/// Whether the middle level is more than one kernel's build.
enum Middle {
    /// Several kernels lie there, or no build could put one there, or nothing next to it can be measured.
    Holds,
    /// One kernel stands alone: its build, not its commit.
    Alone,
    /// Something next to it is to be measured first.
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
        if let Some(two) = steps::two_steps(&self.belief).filter(|two| two.evidence > THREE_LEVELS) {
            let levels = self.belief.levels(self.belief.leader());
            match self.middle(&two, &levels, costs) {
                Middle::Holds => return self.larger_step(&two, &levels),
                Middle::Ask(step) => return Some(step),
                Middle::Alone => {}
            }
        }
        let (bad, good) = steps::contradiction(&self.belief)?;
        let narrower = Scope { good: Some(good), ..self.belief.scope() };
        Some(Step::Decide(Decision::Narrowed(narrower, Narrowing::NotMonotonic { bad, good })))
    }

    /// The part of the scope with the larger step of the asked sign. It ends as far into the middle as kernels surely lie
    /// there: the step may be right before the first of them, and builds of one kernel alone would leave that open.
    fn larger_step(&self, two: &TwoSteps, levels: &Levels) -> Option<Step> {
        let scope = self.belief.scope();
        let sign = self.options.claim.signum();
        let [before, middle, after] = two.levels.map(|level| level.mean);
        let is_first = sign * (middle - before) >= sign * (after - middle);
        let beyond = if is_first { after } else { before };
        let sure = self.sure_of_middle(two, levels, &[beyond]);
        let sure = sure.into_iter().map(|k| self.belief.kernels()[k].node);
        let outermost = if is_first { sure.max() } else { sure.min() };
        let anchor = outermost.or_else(|| self.most_booted(two).map(|k| self.belief.kernels()[k].node))?;
        let narrower =
            if is_first { Scope { bad: anchor, ..scope } } else { Scope { good: Some(anchor), ..scope } };
        Some(Step::Decide(Decision::Narrowed(narrower, Narrowing::ThreeLevels(anchor))))
    }

    /// Kernels (by place in the belief) between the two steps that surely lie on the middle level and on none of `others`.
    fn sure_of_middle(&self, two: &TwoSteps, levels: &Levels, others: &[f64]) -> Vec<usize> {
        let middle = two.levels[1].mean;
        let is_sure = |kernel: usize, other: f64| {
            steps::odds(&self.belief, kernel, levels, (middle, other)) >= SURELY_MIDDLE
        };
        two.between.iter().copied().filter(|&k| others.iter().all(|&other| is_sure(k, other))).collect()
    }

    fn most_booted(&self, two: &TwoSteps) -> Option<usize> {
        two.between.iter().copied().max_by_key(|&k| self.belief.kernels()[k].boots.len())
    }

    /// A single kernel in the middle may owe its level to how it was built. Then its neighbours, one commit away, tell.
    fn middle(&self, two: &TwoSteps, levels: &Levels, costs: Costs) -> Middle {
        let [before, middle, after] = two.levels.map(|level| level.mean);
        let sure = self.sure_of_middle(two, levels, &[before, after]);
        let gap = (middle - before).abs().min((after - middle).abs());
        if sure.len() > 1 || gap > BEYOND_BUILDS * self.belief.widest_build() {
            return Middle::Holds;
        }
        let alone = sure.first().copied().or_else(|| self.most_booted(two));
        alone.map_or(Middle::Alone, |kernel| {
            let boots = (2.0 * NEIGHBOUR_ODDS * (levels.scale / gap).powi(2)).ceil() as usize;
            let boots = boots.clamp(NEIGHBOUR_BOOTS.0, NEIGHBOUR_BOOTS.1);
            self.neighbours(self.belief.kernels()[kernel].node, boots, costs)
        })
    }

    /// What kernels one commit away from `node`, other builds of nearly the same, say of it once each has so many boots: they
    /// are not in the middle, or it would not be alone there.
    fn neighbours(&self, node: usize, boots: usize, costs: Costs) -> Middle {
        let mut is_seen = false;
        let near = self.graph.parents(node).chain(self.graph.children(node));
        for near in near.filter(|&n| self.belief.is_candidate(n)) {
            let has = self.all.get(&near).map_or(0, Vec::len);
            let can_be = if has > 0 { !self.untestable[near] } else { self.may_build(near) };
            if has < boots && can_be {
                return Middle::Ask(self.measure(near, self.runs_per_boot(costs), 0, Why::Neighbour));
            }
            is_seen |= has > 0;
        }
        if is_seen { Middle::Alone } else { Middle::Holds }
    }
}
