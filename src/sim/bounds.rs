//! How much must be measured at least, whatever the strategy; and how much one measurement tells.
//!
//! All for a shift of a normal variable: one measurement of a commit is `N(0, 1)` before the culprit and `N(D, 1)`
//! after it. Levels and noise are taken as known, so the bounds hold for those who must learn them too.

use super::Costs;
use std::sync::OnceLock;

/// Nodes of the quadrature over a standard normal variable, from -[`REACH`] to [`REACH`].
const NODES: usize = 361;

/// Ends of the quadrature: what lies beyond has a weight below 1e-18.
const REACH: f64 = 9.0;

/// Runs a boot that are tried for the cheapest measurement.
const RUNS: std::ops::RangeInclusive<u32> = 1..=40;

/// Entropy of a yes-or-no answer, in bits; 0 at 0 and 1.
pub fn entropy(p: f64) -> f64 {
    let term = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
    term(p) + term(1.0 - p)
}

/// Nodes and weights of the standard normal density. The trapezoidal rule, which converges faster than any power of the
/// step for a smooth function that vanishes at both ends.
fn quadrature() -> impl Iterator<Item = (f64, f64)> {
    let step = 2.0 * REACH / (NODES - 1) as f64;
    let scale = step / std::f64::consts::TAU.sqrt();
    (0..NODES).map(move |at| {
        let x = -REACH + step * at as f64;
        (x, scale * (-x * x / 2.0).exp())
    })
}

/// `ln(1 + exp(x))` without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Most bits that one measurement carries about a commit's side, at a separation of `d` standard deviations: the
/// capacity of the binary-input channel with Gaussian noise.
pub fn capacity(d: f64) -> f64 {
    let lost: f64 = quadrature().map(|(x, weight)| weight * softplus(-(d * d / 2.0 + d * x))).sum();
    1.0 - lost / std::f64::consts::LN_2
}

/// Bits that one measurement is expected to tell about a commit that is bad with probability `p`.
pub fn information(p: f64, d: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 || d <= 0.0 {
        return 0.0;
    }
    let odds = (p / (1.0 - p)).ln();
    let left = |log_odds: f64| {
        let q = 1.0 / (1.0 + (-log_odds).exp());
        softplus(-log_odds) * q + softplus(log_odds) * (1.0 - q)
    };
    let after: f64 = quadrature()
        .map(|(x, weight)| {
            let (good, bad) = (odds - d * d / 2.0 + d * x, odds + d * d / 2.0 + d * x);
            weight * ((1.0 - p) * left(good) + p * left(bad))
        })
        .sum();
    (entropy(p) - after / std::f64::consts::LN_2).max(0.0)
}

/// Kullback-Leibler divergence of two yes-or-no answers, in nats.
fn divergence(p: f64, q: f64) -> f64 {
    p * (p / q).ln() + (1.0 - p) * ((1.0 - p) / (1.0 - q)).ln()
}

/// Bits that must be learnt to name one of `n` equal candidates with error probability `delta` (Fano).
fn bits(n: usize, delta: f64) -> f64 {
    ((1.0 - delta) * (n as f64).log2() - entropy(delta)).max(0.0)
}

/// Least expected number of measurements to name one of `n` candidates with error probability `delta`, at `d` standard
/// deviations: the larger of Fano's bound and the two-sided change of measure for the culprit and its parent.
pub fn measurements(n: usize, d: f64, delta: f64) -> f64 {
    let search = bits(n, delta) / capacity(d);
    let confirm = 2.0 * divergence(delta, 1.0 - delta) / (d * d / 2.0);
    search.max(confirm)
}

/// Least expected machine minutes for the same, `d` in standard deviations of a run, `boot` the boot-to-boot standard
/// deviation in the same unit. A new commit tells at most one bit, so at least that many builds; measurements at their
/// cheapest number of runs a boot.
pub fn minutes(n: usize, d: f64, boot: f64, costs: &Costs, delta: f64) -> f64 {
    let bits = bits(n, delta);
    let confirm = 2.0 * divergence(delta, 1.0 - delta);
    let (mut a_bit, mut a_nat) = (f64::INFINITY, f64::INFINITY);
    for runs in RUNS {
        let d = d / (boot * boot + 1.0 / f64::from(runs)).sqrt();
        let cost = costs.boot + f64::from(runs) * costs.run;
        a_bit = a_bit.min(cost / capacity(d));
        a_nat = a_nat.min(cost / (d * d / 2.0));
    }
    let mut builds = bits * costs.build;
    if boot <= 0.0 {
        // One boot of each commit serves any number of runs.
        a_bit = a_bit.min(costs.run / capacity(d));
        a_nat = a_nat.min(costs.run / (d * d / 2.0));
        builds += bits * costs.boot;
    }
    builds + (bits * a_bit).max(confirm * a_nat)
}

/// [`information`] from a table, for those who ask thousands of times; within 1 % of it.
#[derive(Debug)]
pub(super) struct Table {
    /// Rows by log odds of `p` from 0 in steps of [`ODDS_STEP`]; columns by logarithm of `d`.
    bits: Vec<[f64; COLUMNS]>,
}

const ROWS: usize = 81;
const COLUMNS: usize = 90;
const ODDS_STEP: f64 = 0.2;
const NEAREST: f64 = 0.05;
const FARTHEST: f64 = 14.0;

impl Table {
    /// The one table.
    pub fn get() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| {
            let row = |at: usize| {
                let p = 1.0 / (1.0 + (ODDS_STEP * at as f64).exp());
                std::array::from_fn(|column| information(p, NEAREST * (Self::step() * column as f64).exp()))
            };
            Self { bits: (0..ROWS).map(row).collect() }
        })
    }

    fn step() -> f64 {
        (FARTHEST / NEAREST).ln() / (COLUMNS - 1) as f64
    }

    /// Bits; see [`information`].
    pub fn information(&self, p: f64, d: f64) -> f64 {
        let p = p.min(1.0 - p);
        if p <= 0.0 || d <= 0.0 {
            return 0.0;
        }
        let (row, down) = place(((1.0 - p) / p).ln() / ODDS_STEP, ROWS);
        let within = d.clamp(NEAREST, FARTHEST);
        let (column, along) = place((within / NEAREST).ln() / Self::step(), COLUMNS);
        let mix = |row: &[f64; COLUMNS]| (1.0 - along) * row[column] + along * row[column + 1];
        let bits = (1.0 - down) * mix(&self.bits[row]) + down * mix(&self.bits[row + 1]);
        // Far below one standard deviation information grows with the square.
        if d < NEAREST { bits * (d / NEAREST).powi(2) } else { bits }
    }
}

/// The cell of a place on an axis of `length` points, and how far it is through it.
fn place(at: f64, length: usize) -> (usize, f64) {
    let at = at.clamp(0.0, (length - 1) as f64 - 1e-9);
    (at as usize, at.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published figures of the channel, also those of the numerical prototype of this search.
    #[test]
    fn one_measurement_carries_what_the_channel_allows() {
        for (d, bits) in [(0.5, 0.044), (1.0, 0.161), (2.0, 0.486), (4.0, 0.913)] {
            assert!((capacity(d) - bits).abs() < 5e-4, "{d}: {}", capacity(d));
            assert!((information(0.5, d) - capacity(d)).abs() < 1e-6, "an even prior reaches the capacity");
        }
    }

    /// Printed by the prototype for one error in a hundred.
    #[test]
    fn the_bounds_are_those_of_the_prototype() {
        let costs = [(20.0, 3.0, 10.0), (3.0, 1.0, 1.0), (1.0, 0.2, 0.5)];
        let printed = [
            (1024, 2.0, 0.0, 20.21, [428.0, 59.0, 22.0]),
            (1024, 2.0, 1.0, 33.80, [636.0, 97.0, 33.0]),
            (16, 2.0, 1.0, 13.35, [251.0, 38.0, 13.0]),
            (8192, 1.0, 0.0, 79.56, [1090.0, 131.0, 55.0]),
            (128, 4.0, 0.0, 7.50, [233.0, 35.0, 12.0]),
        ];
        for (n, d, boot, least, in_minutes) in printed {
            let separation = d / (1.0_f64 + boot * boot).sqrt();
            assert!((measurements(n, separation, 0.01) - least).abs() < 0.006, "{n} {d} {boot}");
            for ((build, boots, run), want) in costs.into_iter().zip(in_minutes) {
                let costs = Costs { build, boot: boots, run };
                let least = minutes(n, d, boot, &costs, 0.01);
                assert!((least - want).abs() < 0.51, "{n} {d} {boot} {costs:?}: {least}");
            }
        }
        for (p, d, bits) in
            [(0.5, 0.9, 0.132_913), (0.5, 2.1, 0.518_021), (0.07, 0.9, 0.036_886), (0.07, 2.1, 0.165_892)]
        {
            assert!((information(p, d) - bits).abs() < 1e-5, "{p} {d}");
        }
    }

    #[test]
    fn the_table_is_within_one_percent_of_the_integral() {
        for p in [0.5, 0.31, 0.07, 0.004, 0.93] {
            for d in [0.3, 0.9, 2.1, 5.0] {
                let (table, exact) = (Table::get().information(p, d), information(p, d));
                assert!((table / exact - 1.0).abs() < 0.01, "{p} {d}: {table} {exact}");
            }
        }
    }
}
