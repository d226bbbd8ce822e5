//! More than one step in a scope: evidence for three levels, and kernels that no single step explains.

use super::belief::{Belief, Level, Levels};
use crate::stats::{log_sum_exp, median};

/// Kernels beyond which three levels are not looked for: the sums would be over too many pairs.
const MOST_KERNELS: usize = 40;

/// Classes likewise.
const MOST_CLASSES: usize = 64;

/// Squared misfit of one step, over that of two, in noise variances, from which the exact evidence is computed.
const MISFIT: f64 = 4.0;

/// Log odds from which a kernel's own boots call it good or bad, whatever its neighbours are: 1000 to 1.
const SURE: f64 = 6.9;

/// Two steps on one line of ancestry.
#[derive(Debug, Clone, PartialEq)]
pub struct TwoSteps {
    /// Log Bayes factor against one step.
    pub evidence: f64,
    /// Kernels (by place in the belief) between the two steps.
    pub between: Vec<usize>,
    /// Levels before, between and after.
    pub levels: [Level; 3],
}

/// Looks for three levels; `None` where there is nothing to see or too much to look at.
pub fn two_steps(belief: &Belief) -> Option<TwoSteps> {
    let (classes, _) = belief.classes();
    let kernels = belief.kernels().len();
    if !(3..=MOST_KERNELS).contains(&kernels) || classes.len() > MOST_CLASSES {
        return None;
    }
    let pairs = nested(belief);
    if pairs.is_empty() || !misfits(belief, &pairs) {
        return None;
    }
    exact(belief, &pairs)
}

/// Pairs (earlier, later) of classes of which the later's bad kernels are some of the earlier's.
fn nested(belief: &Belief) -> Vec<(usize, usize)> {
    let (classes, _) = belief.classes();
    let kernels = belief.kernels().len();
    let within = |later: usize, earlier: usize| {
        let mut less = false;
        for kernel in 0..kernels {
            match (belief.makes_bad(later, kernel), belief.makes_bad(earlier, kernel)) {
                (true, false) => return false,
                (false, true) => less = true,
                (true, true) | (false, false) => {}
            }
        }
        less
    };
    let count = classes.len();
    let all = (0..count).flat_map(|a| (0..count).map(move |b| (a, b)));
    all.filter(|&(earlier, later)| earlier != later && within(later, earlier)).collect()
}

/// Whether two steps fit the boot means clearly better than one: cheap, by squares.
fn misfits(belief: &Belief, pairs: &[(usize, usize)]) -> bool {
    let levels = belief.levels(belief.leader());
    let variance = levels.scale * levels.scale;
    let means: Vec<(f64, f64)> = belief
        .kernels()
        .iter()
        .map(|k| {
            let boots = belief.boot_means(k.node);
            (boots.len() as f64, median(&boots))
        })
        .collect();
    let squares = |inside: &dyn Fn(usize) -> bool| {
        let of = || means.iter().enumerate().filter(|(at, _)| inside(*at)).map(|(_, m)| m);
        let weight: f64 = of().map(|m| m.0).sum();
        let mean = of().map(|m| m.0 * m.1).sum::<f64>() / weight.max(1e-9);
        of().map(|m| m.0 * (m.1 - mean).powi(2)).sum::<f64>()
    };
    let one = (0..belief.classes().0.len())
        .map(|c| squares(&|k| belief.makes_bad(c, k)) + squares(&|k| !belief.makes_bad(c, k)))
        .fold(f64::INFINITY, f64::min);
    let two = pairs
        .iter()
        .map(|&(a, b)| {
            squares(&|k| belief.makes_bad(b, k))
                + squares(&|k| !belief.makes_bad(a, k))
                + squares(&|k| belief.makes_bad(a, k) && !belief.makes_bad(b, k))
        })
        .fold(f64::INFINITY, f64::min);
    one - two > MISFIT * variance
}

fn exact(belief: &Belief, pairs: &[(usize, usize)]) -> Option<TwoSteps> {
    let grid = belief.grid()?;
    let (classes, _) = belief.classes();
    let kernels = belief.kernels().len();
    let total: f64 = classes.iter().map(|c| c.prior).sum();
    // Build effects could make any kernel a level of its own; three levels are looked for among kernels as they were built.
    let as_built: Vec<usize> = (0..grid.noise.len()).filter(|&s| grid.noise[s].tau == 0.0).collect();
    // Flat prior of the middle level over a few claims.
    let width = (6.0 * belief.claim().abs()).ln();
    let side = |inside: &dyn Fn(usize) -> bool| {
        let sum = belief.pooled((0..kernels).filter(|&k| inside(k)));
        (belief.one_level(&sum), sum)
    };
    let mut best: Option<(f64, usize, usize)> = None;
    let mut all = Vec::new();
    for &(earlier, later) in pairs {
        let (good, _) = side(&|k| !belief.makes_bad(earlier, k));
        let (bad, _) = side(&|k| belief.makes_bad(later, k));
        let (middle, _) = side(&|k| belief.makes_bad(earlier, k) && !belief.makes_bad(later, k));
        let log: Vec<f64> =
            as_built.iter().map(|&s| good[s] + bad[s] + middle[s] + grid.log_prior[s]).collect();
        let prior = (classes[earlier].prior / total).ln() + (classes[later].prior / total).ln();
        let value = log_sum_exp(&log) + 3.0 * grid.step.ln() - width + prior;
        all.push(value);
        if best.is_none_or(|(before, ..)| value > before) {
            best = Some((value, earlier, later));
        }
    }
    let one: Vec<f64> = (0..classes.len())
        .map(|c| belief.flat_evidence(c, &as_built) + (classes[c].prior / total).ln())
        .collect();
    let evidence = log_sum_exp(&all) - log_sum_exp(&one) + std::f64::consts::LN_2;
    let (_, earlier, later) = best?;
    let is_between = |k: usize| belief.makes_bad(earlier, k) && !belief.makes_bad(later, k);
    let between: Vec<usize> = (0..kernels).filter(|&k| is_between(k)).collect();
    let level = |inside: &dyn Fn(usize) -> bool| belief.level_of_pool(&side(inside).1);
    let levels = [
        level(&|k| !belief.makes_bad(earlier, k)),
        level(&is_between),
        level(&|k| belief.makes_bad(later, k)),
    ];
    Some(TwoSteps { evidence, between, levels })
}

/// Log odds of bad against good from a kernel's own boots, at the believed levels.
pub fn own_odds(belief: &Belief, kernel: usize) -> f64 {
    if belief.grid().is_none() {
        return 0.0;
    }
    let levels = belief.levels(belief.leader());
    odds(belief, kernel, &levels, (levels.bad.mean, levels.good.mean))
}

/// Log odds of one level against another from a kernel's own boots, under the noise believed in `levels`.
pub fn odds(belief: &Belief, kernel: usize, levels: &Levels, (level, other): (f64, f64)) -> f64 {
    let Some(grid) = belief.grid() else { return 0.0 };
    let sum = belief.pooled(std::iter::once(kernel));
    let width = grid.levels.len();
    let at = |mean: f64| {
        let place = ((mean - grid.levels[0]) / grid.step).round().clamp(0.0, (width - 1) as f64) as usize;
        let rows = sum.chunks_exact(width).zip(&levels.noise);
        log_sum_exp(&rows.map(|(row, p)| row[place] + p.max(1e-300).ln()).collect::<Vec<_>>())
    };
    at(level) - at(other)
}

/// A kernel that is surely bad although one that contains it is surely good, as (bad, good) nodes: the pair with the
/// latest good one.
pub fn contradiction(belief: &Belief) -> Option<(usize, usize)> {
    let odds: Vec<f64> = (0..belief.kernels().len()).map(|k| own_odds(belief, k)).collect();
    let node = |k: usize| belief.kernels()[k].node;
    let (_, end) = belief.ends();
    let sure = |sign: f64| {
        let odds = &odds;
        (0..odds.len()).filter(move |&k| sign * odds[k] > SURE).map(node)
    };
    let mut good: Vec<usize> = sure(-1.0).filter(|&n| n != end && belief.is_candidate(n)).collect();
    good.sort_unstable();
    good.into_iter().rev().find_map(|good| {
        let inside = belief.graph().ancestors(good);
        sure(1.0).find(|&bad| inside[bad]).map(|bad| (bad, good))
    })
}
