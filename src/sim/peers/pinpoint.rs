//! Chromium's Pinpoint: compare neighbours, repeat while unsure, look between those that differ.

mod same;

use super::super::{Found, Kind, Lab, World};
use super::compare::{kolmogorov_smirnov, mann_whitney, quartile_range};
use super::nearest;
use std::collections::BTreeMap;

/// Boots of a commit at first ...
const FIRST: usize = 10;

/// ... and at most; doubled while a comparison is unsure.
const LAST: usize = 160;

/// Commits after which a search is given up: two are compared as different everywhere.
const MAX_COMMITS: usize = 60;

/// Rounds after which a search is given up.
const MAX_ROUNDS: usize = 400;

/// p value up to which two commits differ, in the final report ...
const DIFFERENT: f64 = 0.01;

/// ... and while searching, which is laxer.
const DIFFERENT_WHILE_SEARCHING: f64 = 0.05;

/// Least p value from which two commits are the same, while searching.
const SAME_WHILE_SEARCHING: f64 = 0.10;

/// Least spread that the asked change is divided by.
const LEAST_SPREAD: f64 = 1e-3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    Different,
    Unsure,
    Same,
}

/// Source of the rule: Chromium's catapult, dashboard/pinpoint/models/job_state.py (which commits are repeated and added)
/// and models/compare (the smaller p value of Mann-Whitney and Kolmogorov-Smirnov against a low and a high threshold).
/// The high threshold is defined there by simulation: the p value of Mann-Whitney that samples which do differ by the
/// asked size exceed once in a hundred times; `same` holds a table made here. Each attempt is a fresh boot. On lines.
pub fn search(world: &World) -> Found {
    let mut lab = Lab::new(world);
    let mut job = Job { asked: world.claim().abs(), values: BTreeMap::new() };
    job.attempt(&mut lab, world.graph().good(), FIRST);
    job.attempt(&mut lab, world.graph().tip(), FIRST);
    for _ in 0..MAX_ROUNDS {
        if !job.round(&mut lab) {
            break;
        }
        if job.values.len() > MAX_COMMITS {
            return Found::without(&lab, Kind::GaveUp, f64::NAN);
        }
    }
    let different: Vec<(usize, usize)> = job
        .neighbours()
        .into_iter()
        .filter(|&pair| job.compare(pair, false) == Compared::Different)
        .collect();
    let found: Vec<Vec<usize>> = different
        .into_iter()
        .filter(|&(low, high)| between(&mut lab, low, high).is_none())
        .map(|(low, high)| (low + 1..=high).collect())
        .collect();
    if found.is_empty() {
        Found::without(&lab, Kind::NoDifference, f64::NAN)
    } else {
        Found::culprits(&lab, found, f64::NAN)
    }
}

/// The commit to look at between two, if one builds.
fn between(lab: &mut Lab, low: usize, high: usize) -> Option<usize> {
    nearest(lab, usize::midpoint(low, high), low, high)
}

struct Job {
    /// Size of the change looked for.
    asked: f64,
    /// What was measured, by commit.
    values: BTreeMap<usize, Vec<f64>>,
}

impl Job {
    fn attempt(&mut self, lab: &mut Lab, node: usize, boots: usize) {
        let values = self.values.entry(node).or_default();
        values.extend((0..boots).map(|_| lab.measure(node)));
    }

    fn neighbours(&self) -> Vec<(usize, usize)> {
        let nodes: Vec<usize> = self.values.keys().copied().collect();
        nodes.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    fn compare(&self, (low, high): (usize, usize), searching: bool) -> Compared {
        let (x, y) = (&self.values[&low], &self.values[&high]);
        let spread = quartile_range(x).max(quartile_range(y)).max(LEAST_SPREAD);
        let p = kolmogorov_smirnov(x, y).min(mann_whitney(x, y));
        let mut different = DIFFERENT;
        let mut same = same::threshold(self.asked / spread, usize::midpoint(x.len(), y.len()));
        if searching {
            different = DIFFERENT_WHILE_SEARCHING;
            same = same.max(SAME_WHILE_SEARCHING);
        }
        if p <= different {
            Compared::Different
        } else if p <= same {
            Compared::Unsure
        } else {
            Compared::Same
        }
    }

    /// Compares all neighbours; repeats the unsure, looks between the different. Whether anything was done.
    fn round(&mut self, lab: &mut Lab) -> bool {
        let (mut repeat, mut add) = (Vec::new(), Vec::new());
        for (low, high) in self.neighbours() {
            match self.compare((low, high), true) {
                Compared::Unsure => {
                    let (a, b) = (self.values[&low].len(), self.values[&high].len());
                    if a <= b && a < LAST {
                        repeat.push(low);
                    }
                    if b <= a && b < LAST {
                        repeat.push(high);
                    }
                }
                Compared::Different => add.extend(between(lab, low, high)),
                Compared::Same => {}
            }
        }
        repeat.dedup();
        for &node in &repeat {
            self.attempt(lab, node, self.values[&node].len());
        }
        for &node in &add {
            self.attempt(lab, node, FIRST);
        }
        !repeat.is_empty() || !add.is_empty()
    }
}
