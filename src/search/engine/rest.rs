//! What a culprit leaves of the difference, and where it lies.

use super::{Decision, Ending, Engine, Found, MOST_SCOPES, Narrowing, Scope, Step};

/// Sds from which what a culprit leaves of the difference is a difference of its own.
const REST: f64 = 3.5;

impl Engine {
    /// After a culprit: the part of the scope in which more of the difference is, if there is one.
    pub(super) fn rest_of_difference(&self) -> Option<Step> {
        let newest = self.found.last()?;
        // Asked once, right after it was found.
        if self.narrowed.iter().filter(|(_, why)| *why == Narrowing::Rest).count() >= self.found.len() {
            return None;
        }
        if self.narrowed.len() >= MOST_SCOPES {
            return Some(Step::Decide(Decision::Over(Ending::Found)));
        }
        let rest = self.rests(newest).into_iter().filter(|r| self.is_worth_finding(r.size, r.sd));
        match rest.max_by(|a, b| a.size.abs().total_cmp(&b.size.abs())) {
            Some(rest) => Some(Step::Decide(Decision::Narrowed(rest.scope, Narrowing::Rest))),
            None => Some(Step::Decide(Decision::Over(Ending::Found))),
        }
    }

    fn is_worth_finding(&self, size: f64, sd: f64) -> bool {
        size.abs() >= self.options.minimum && size.abs() >= REST * sd
    }

    /// What lies between a culprit and those found before it, or the ends.
    fn rests(&self, found: &Found) -> Vec<Rest> {
        let mut rests = Vec::new();
        let others = || self.found.iter().filter(|f| f.tip != found.tip);
        if let [parent] = found.parents[..]
            && !self.graph.is_boundary(parent)
        {
            let inside = self.graph.ancestors(parent);
            let before = others().map(|f| f.tip).filter(|&tip| inside[tip]).max();
            let from = before.unwrap_or(self.good);
            if from != parent {
                rests.extend(self.rest(from, parent, Scope { good: before, bad: parent }));
            }
        }
        let after = others().filter(|f| self.graph.reaches(found.tip, f.tip)).min_by_key(|f| f.tip);
        let to = match after.map(|f| &f.parents[..]) {
            None => Some(self.bad),
            Some([parent]) => Some(*parent),
            Some(_) => None,
        };
        if let Some(to) = to.filter(|&to| to != found.tip) {
            rests.extend(self.rest(found.tip, to, Scope { good: Some(found.tip), bad: to }));
        }
        rests
    }

    fn rest(&self, from: usize, to: usize, scope: Scope) -> Option<Rest> {
        let (from, to) = (self.boot_means(from), self.boot_means(to));
        if from.len() < 2 || to.len() < 2 {
            return None;
        }
        let levels = self.belief.levels(self.belief.leader());
        let variance = levels.scale * levels.scale * (1.0 / from.len() as f64 + 1.0 / to.len() as f64);
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        Some(Rest { scope, size: mean(&to) - mean(&from), sd: (variance + 2.0 * levels.build).sqrt() })
    }
}

/// A part of the range and the difference over it.
struct Rest {
    scope: Scope,
    size: f64,
    sd: f64,
}
