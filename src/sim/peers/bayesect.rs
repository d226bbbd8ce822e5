//! git-bayesect: each measurement is a yes or no, each end has an unknown rate of yes.

use super::super::{Found, Kind, Lab, World};
use super::{END_BOOTS, ends, middle};
use std::collections::{BTreeMap, BTreeSet};

/// Probability of one commit at which the search ends.
const CONFIDENCE: f64 = 0.99;

/// Runs after which it is given up.
const MAX_RUNS: u32 = 600;

/// Both parameters of the prior of either rate (Jeffreys).
const PRIOR: f64 = 0.5;

/// Commits tried inside a stretch whose commits look alike; all of a short one.
const INSIDE: usize = 16;

/// Length up to which a stretch is short.
const SHORT: usize = 12;

/// A stretch less probable than this is not looked into: its commits tell what its ends tell.
const NEGLIGIBLE: f64 = 1e-7;

/// Expected entropies nearer than this, relatively, are a tie: then the commit nearest to the middle of the range.
const TIE: f64 = 1e-12;

/// Source of the rule: hauntsaninja/git_bayesect, `Bisector` (README.md and git_bayesect.py): the posterior of the culprit with
/// the rates of "slow" on both sides integrated over beta priors, and the commit whose answer leaves the least expected
/// entropy. A run is "slow" beyond the middle between five boots of each end. What does not build gets prior 0. On
/// lines; commits between measured ones are alike and handled as stretches.
pub fn search(world: &World) -> Found {
    let mut lab = Lab::new(world);
    let (good, bad) = ends(world, &mut lab, END_BOOTS);
    let (middle, higher) = middle(&good, &bad);
    let tip = world.graph().tip();
    let mut counts = Counts { tip, seen: BTreeMap::new(), dead: BTreeSet::new(), beta: LogBeta::new() };
    for (node, values) in [(0, good), (tip, bad)] {
        for value in values {
            counts.record(node, (value > middle) == higher);
        }
    }
    while lab.runs() < MAX_RUNS {
        let stretches = counts.stretches();
        let likeliest = stretches.iter().filter(|s| s.live > 0.0).max_by(|a, b| a.each.total_cmp(&b.each));
        let Some(likeliest) = likeliest else { break };
        if likeliest.each >= CONFIDENCE && likeliest.live <= 1.0 {
            return named(&lab, &counts, likeliest);
        }
        let node = counts.choose(&stretches);
        if !lab.build(node) {
            counts.dead.insert(node);
            continue;
        }
        let value = lab.measure(node);
        counts.record(node, (value > middle) == higher);
    }
    Found::without(&lab, Kind::GaveUp, f64::NAN)
}

/// The one commit of a stretch that is not dead, with the dead ones before it: they cannot be told from it.
fn named(lab: &Lab, counts: &Counts, stretch: &Stretch) -> Found {
    let dead = |node: &usize| counts.dead.contains(node);
    let Some(culprit) = (stretch.first..=stretch.last).rev().find(|node| !dead(node)) else {
        return Found::without(lab, Kind::GaveUp, f64::NAN);
    };
    if culprit == 0 {
        return Found::without(lab, Kind::NoDifference, stretch.each);
    }
    let before = (0..culprit).rev().find(|node| !dead(node)).unwrap_or(0);
    Found::culprits(lab, vec![(before + 1..=culprit).collect()], stretch.each)
}

/// Answers by commit of a line; the culprit is one of 0 to `tip`, 0 standing for "slow from the start".
struct Counts {
    tip: usize,
    /// Slow and not slow.
    seen: BTreeMap<usize, [usize; 2]>,
    dead: BTreeSet<usize>,
    beta: LogBeta,
}

/// Logarithm of the beta function at counts plus [`PRIOR`], from tables: it is asked for at every commit after every run.
struct LogBeta {
    /// `ln gamma(PRIOR + k)`, up to a constant.
    one: Vec<f64>,
    /// `ln gamma(2 PRIOR + k)`, up to a constant.
    both: Vec<f64>,
}

impl LogBeta {
    fn new() -> Self {
        // By gamma(x + 1) = x gamma(x).
        let table = |start: f64| {
            let logs = (0..=MAX_RUNS).scan(0.0, |sum, k| {
                let now = *sum;
                *sum += (start + f64::from(k)).ln();
                Some(now)
            });
            logs.collect()
        };
        Self { one: table(PRIOR), both: table(2.0 * PRIOR) }
    }

    /// Up to a constant.
    fn of(&self, [slow, not]: [usize; 2]) -> f64 {
        self.one[slow] + self.one[not] - self.both[slow + not]
    }
}

/// Commits that split the measured ones alike if one of them is the culprit.
struct Stretch {
    first: usize,
    last: usize,
    /// Commits that are not dead.
    live: f64,
    /// Probability of each of them.
    each: f64,
    /// Mean rate of "slow" from the culprit on.
    after: f64,
    /// Mean rate of "slow" before it.
    before: f64,
}

impl Counts {
    fn record(&mut self, node: usize, slow: bool) {
        self.seen.entry(node).or_default()[usize::from(!slow)] += 1;
    }

    fn stretches(&self) -> Vec<Stretch> {
        let total = self.seen.values().fold([0; 2], |sum, c| [sum[0] + c[0], sum[1] + c[1]]);
        let mut before = [0; 2];
        let mut first = 0;
        let mut stretches = Vec::new();
        let mut logs = Vec::new();
        for (&node, count) in &self.seen {
            let after = [total[0] - before[0], total[1] - before[1]];
            let dead = self.dead.range(first..=node).count();
            logs.push(self.beta.of(after) + self.beta.of(before));
            let rate = |[slow, not]: [usize; 2]| (PRIOR + slow as f64) / (2.0 * PRIOR + (slow + not) as f64);
            stretches.push(Stretch {
                first,
                last: node,
                live: (node + 1 - first - dead) as f64,
                each: 0.0,
                after: rate(after),
                before: rate(before),
            });
            before = [before[0] + count[0], before[1] + count[1]];
            first = node + 1;
        }
        let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mass: f64 = stretches.iter().zip(&logs).map(|(s, log)| s.live * (log - highest).exp()).sum();
        for (stretch, log) in stretches.iter_mut().zip(&logs) {
            stretch.each = (log - highest).exp() / mass;
        }
        stretches
    }

    /// The commit whose answer leaves the least expected entropy.
    fn choose(&self, stretches: &[Stretch]) -> usize {
        let sums = Sums::of(stretches);
        let middle = self.tip / 2;
        let mut best: Option<(f64, usize)> = None;
        let likely = |stretch: &Stretch| stretch.live * stretch.each > NEGLIGIBLE;
        for (at, stretch) in stretches.iter().enumerate().filter(|(_, stretch)| likely(stretch)) {
            for node in inside(stretch) {
                if self.dead.contains(&node) {
                    continue;
                }
                let share = (node + 1 - stretch.first) as f64 / (stretch.last + 1 - stretch.first) as f64;
                let left = sums.expected_entropy(stretches, at, share);
                let better = best.is_none_or(|(least, chosen)| {
                    let tie = (left - least).abs() <= TIE * least.abs().max(1e-3);
                    if tie { node.abs_diff(middle) < chosen.abs_diff(middle) } else { left < least }
                });
                if better {
                    best = Some((left, node));
                }
            }
        }
        best.map_or(self.tip, |(_, node)| node)
    }
}

/// Commits of a stretch that are tried: all of a short one.
fn inside(stretch: &Stretch) -> Vec<usize> {
    let length = stretch.last + 1 - stretch.first;
    if length <= SHORT {
        return (stretch.first..=stretch.last).collect();
    }
    let mut nodes: Vec<usize> = (1..INSIDE).map(|at| stretch.first + length * at / INSIDE - 1).collect();
    nodes.extend([stretch.first, stretch.last - 1, stretch.last]);
    nodes
}

/// `w` and `w log2 w` of the joint probabilities, summed over the stretches before each: an answer (slow, not slow) and a
/// culprit there, if the asked commit comes at or after the culprit (`new`) or before it (`old`).
struct Sums {
    /// By answer: sums over the stretches before index, `new`.
    new: [Vec<[f64; 2]>; 2],
    /// By answer: sums over the stretches before index, `old`.
    old: [Vec<[f64; 2]>; 2],
}

/// Joint probability of an answer with one culprit of a stretch, and its `w log2 w`.
fn joint(each: f64, rate: f64, answer: usize) -> [f64; 2] {
    let w = each * if answer == 0 { rate } else { 1.0 - rate };
    [w, if w > 0.0 { w * w.log2() } else { 0.0 }]
}

impl Sums {
    fn of(stretches: &[Stretch]) -> Self {
        let along = |rate: fn(&Stretch) -> f64, answer: usize| {
            let mut sum = [0.0; 2];
            let mut sums = vec![sum];
            for stretch in stretches {
                let [w, log] = joint(stretch.each, rate(stretch), answer);
                sum = [sum[0] + stretch.live * w, sum[1] + stretch.live * log];
                sums.push(sum);
            }
            sums
        };
        let both = |rate: fn(&Stretch) -> f64| [along(rate, 0), along(rate, 1)];
        Self { new: both(|s| s.after), old: both(|s| s.before) }
    }

    /// Expected entropy after asking the commit that has `share` of stretch `at` at or before it.
    fn expected_entropy(&self, stretches: &[Stretch], at: usize, share: f64) -> f64 {
        let stretch = &stretches[at];
        let mut expected = 0.0;
        for answer in 0..2 {
            let (new, old) = (&self.new[answer], &self.old[answer]);
            let inside = joint(stretch.each, stretch.after, answer);
            let outside = joint(stretch.each, stretch.before, answer);
            let sum = |part: usize| {
                new[at][part]
                    + stretch.live * (share * inside[part] + (1.0 - share) * outside[part])
                    + old[stretches.len()][part]
                    - old[at + 1][part]
            };
            let (mass, logs) = (sum(0), sum(1));
            if mass > 0.0 {
                expected += mass * mass.log2() - logs;
            }
        }
        expected
    }
}
