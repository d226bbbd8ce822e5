//! The place of a run in its boot: whether first runs differ from later ones in every boot.
//!
//! A rest of warm-up, a cold cache, a machine that gets hot: the first run of a boot may lie off, in all kernels alike. Boots of
//! one run then show the first run's level and boots of several another, and the two cannot be compared.

use super::median::median;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Boots that show an effect at least.
const LEAST_BOOTS: usize = 10;

/// Probability of so large an effect by chance from which it is believed: that of 4 sds, as it is asked after many boots.
const CHANCE: f64 = 6e-5;

/// Share of the sd of a run below which nothing hangs on it.
const LEAST_SIZE: f64 = 0.3;

/// Share of boots cut off at either end: a boot with an outlier among its runs bends nothing.
const TRIM: f64 = 0.2;

/// What the first run of a boot is off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FirstRun {
    /// First run less later ones, log units.
    pub effect: f64,
    /// Half the width of its interval, which does not reach zero, log units.
    pub within: f64,
    /// Boots of several runs that show it.
    pub boots: usize,
}

/// The mean over boots of "first run less the median of the later ones": trimmed, with the sd of the winsorised differences and
/// Student's t (Tukey and McLaughlin 1963). `boots`: runs in order, of each boot that had several, log units, finite; `run_sd`: of a run.
/// `None` with fewer than 10 boots, below 0.3 sd of a run, or where it may be chance (6e-5).
pub fn first_run(boots: &[&[f64]], run_sd: f64) -> Option<FirstRun> {
    let several = boots.iter().filter(|runs| runs.len() > 1);
    let mut differences: Vec<f64> = several.map(|runs| runs[0] - median(&runs[1..])).collect();
    let n = differences.len();
    if n < LEAST_BOOTS {
        return None;
    }
    differences.sort_by(f64::total_cmp);
    let cut = (TRIM * n as f64) as usize;
    let kept = &differences[cut..n - cut];
    let effect = kept.iter().sum::<f64>() / kept.len() as f64;
    let drawn_in = differences.iter().map(|d| d.clamp(kept[0], kept[kept.len() - 1]));
    let middle = drawn_in.clone().sum::<f64>() / n as f64;
    let variance = drawn_in.map(|d| (d - middle).powi(2)).sum::<f64>() / (n as f64 - 1.0);
    let error = (variance / n as f64).sqrt() / (1.0 - 2.0 * cut as f64 / n as f64);
    let students = StudentsT::new(0.0, 1.0, kept.len() as f64 - 1.0).ok()?;
    let within = error * students.inverse_cdf(1.0 - 0.5 * CHANCE);
    (effect.abs() > within && effect.abs() > LEAST_SIZE * run_sd).then_some(FirstRun {
        effect,
        within,
        boots: n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    fn boots(seed: u64, count: usize, first: f64) -> Vec<Vec<f64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let mut boot = |runs: usize| -> Vec<f64> {
            let level = 3.0 * normal();
            (0..runs).map(|k| level + normal() + if k == 0 { first } else { 0.0 }).collect()
        };
        (0..count).map(|at| boot(1 + at % 4)).collect()
    }

    fn found(boots: &[Vec<f64>]) -> Option<FirstRun> {
        let runs: Vec<&[f64]> = boots.iter().map(Vec::as_slice).collect();
        first_run(&runs, 1.0)
    }

    #[test]
    fn a_first_run_that_is_off_is_found_with_its_size() {
        for first in [2.0, -2.0] {
            let all: Vec<FirstRun> = (0..50).filter_map(|seed| found(&boots(seed, 60, first))).collect();
            assert!(all.len() >= 48 && all.iter().all(|f| f.boots == 45), "{}", all.len());
            let inside = all.iter().filter(|f| (f.effect - first).abs() < f.within).count();
            assert_eq!(inside, all.len());
        }
    }

    #[test]
    fn equal_runs_few_boots_and_outliers_have_no_first_run_effect() {
        assert_eq!((0..1000).filter(|&seed| found(&boots(seed, 40, 0.0)).is_some()).count(), 0);
        assert_eq!(found(&boots(1, 12, 9.0)), None, "nine boots of several runs");
        assert_eq!(found(&boots(1, 4000, 0.25)), None, "below a third of a run's sd");
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut some = boots(2, 60, 0.0);
        some.iter_mut().filter(|_| rng.random_bool(0.15)).for_each(|boot| boot[0] += 50.0);
        assert_eq!(found(&some), None);
    }

    #[test]
    fn runs_without_noise_show_their_effect() {
        let exact = vec![vec![1.5, 1.0, 1.0]; 12];
        assert_eq!(found(&exact), Some(FirstRun { effect: 0.5, within: 0.0, boots: 12 }));
        assert_eq!(found(&vec![vec![1.0, 1.0]; 12]), None);
    }
}
