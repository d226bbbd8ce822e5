//! Where the grid of levels and noise lies: about what is believed, as fine as the sharpest level needs.

use super::claim::prior_of_change;
use super::{Belief, Level, bit};
use crate::stats::{Grid, Modes, Noise, Tail, median};

/// Levels of a grid: fewest and most. Between them, as many as the sharpest level needs.
const LEVELS: (usize, usize) = (41, 161);

/// Grid step over the sd of the sharpest level.
const STEP: f64 = 0.6;

/// Sds of a level that the grid reaches beyond it.
const MARGIN: f64 = 7.0;

/// Noise scales: how many, and the widest factor between the middle and an end.
const SCALES: usize = 7;
const WIDEST: f64 = 4.0;

/// Boot sds over run sd that are weighed once boots of several runs can tell them apart.
const RHOS: [f64; 6] = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0];

/// How runs may scatter, each as likely.
const TAILS: [Tail; 2] = [Tail::Heavy, Tail::Normal];

/// Build sd over the effect looked for: the largest weighed.
const MOST_TAU: f64 = 0.15;

/// Noise below this share of the difference of the levels is taken to be that large: nothing hangs on it, and the grid
/// need not resolve it.
const FINEST: f64 = 1.0 / 25.0;

/// A first guess of the scale is not below this share of the effect looked for, nor below this in log units.
const LEAST_SCALE: (f64, f64) = (1e-3, 1e-9);

impl Belief {
    /// Once a boot is over: lays the grid anew where the data have grown by a third.
    pub fn settle(&mut self) {
        if self.grid.is_some() && self.boots >= self.regrid_at {
            self.lay();
        }
    }

    /// Lays the first grid from the boots of the two ends; each has at least one.
    pub fn begin(&mut self) {
        let (good, bad, scale) = self.pilot();
        let fewest = self.end_boots().0.min(self.end_boots().1).max(1);
        let pad = 8.0 * scale / (fewest as f64).sqrt() + 2.0 * scale;
        self.lay_over((good.min(bad) - pad, good.max(bad) + pad), 121, scale, WIDEST);
    }

    /// Robust levels of the ends and scale of one boot, from their boot means.
    pub fn pilot(&self) -> (f64, f64, f64) {
        let (good, bad) = self.ends();
        let (good, bad) = (self.boot_means(good), self.boot_means(bad));
        let (a, b) = (median(&good), median(&bad));
        let residuals: Vec<f64> = good.iter().map(|v| v - a).chain(bad.iter().map(|v| v - b)).collect();
        let freedom = residuals.len().saturating_sub(2).max(1) as f64;
        let sd = (residuals.iter().map(|r| r * r).sum::<f64>() / freedom).sqrt();
        let mad = 1.4826 * 1.3 * median(&residuals.iter().map(|r| r.abs()).collect::<Vec<_>>());
        let robust = if mad > 0.0 { sd.min(3.0 * mad) } else { sd };
        let least = (LEAST_SCALE.0 * self.claim.abs()).max(LEAST_SCALE.1).max(FINEST * (b - a).abs());
        (a, b, robust.max(least))
    }

    /// Lays the grid around the levels as they are believed now.
    fn lay(&mut self) {
        let levels = self.levels(self.leader());
        let sd = |level: Level| level.variance.sqrt();
        let margin = MARGIN * sd(levels.good).max(sd(levels.bad)).max(0.05 * levels.scale);
        let low = levels.good.mean.min(levels.bad.mean) - margin;
        let high = levels.good.mean.max(levels.bad.mean) + margin;
        let sharpest = sd(levels.good).min(sd(levels.bad));
        let count = ((high - low) / (STEP * sharpest)).clamp(LEVELS.0 as f64, LEVELS.1 as f64) as usize;
        let scale = levels.scale.max(FINEST * (levels.bad.mean - levels.good.mean).abs());
        let factor = (4.0 * self.scale_sd(&levels.noise)).exp().clamp(1.5, WIDEST);
        self.lay_over((low, high), count, scale, factor);
    }

    /// Sd of the logarithm of the noise scale.
    fn scale_sd(&self, posterior: &[f64]) -> f64 {
        let grid = self.grid.as_ref().expect("a grid is laid");
        let log = |n: &Noise| n.total().ln();
        let mean: f64 = grid.noise.iter().zip(posterior).map(|(n, p)| p * log(n)).sum();
        let square: f64 = grid.noise.iter().zip(posterior).map(|(n, p)| p * (log(n) - mean).powi(2)).sum();
        // Two neighbouring scales may hold all the mass: what lies between them is not known.
        let ratio = self.grid.as_ref().map_or(0.0, |g| (g.noise[1].s / g.noise[0].s).ln().abs());
        square.sqrt().max(0.5 * ratio)
    }

    fn lay_over(&mut self, range: (f64, f64), count: usize, scale: f64, factor: f64) {
        let rhos: &[f64] = if self.several_runs { &RHOS } else { &RHOS[..1] };
        let mut noise = Vec::new();
        for &(tau, _) in &self.taus {
            for (rho, tail) in rhos.iter().flat_map(|&rho| TAILS.map(|tail| (rho, tail))) {
                for i in 0..SCALES {
                    let by = factor.powf(2.0 * i as f64 / (SCALES - 1) as f64 - 1.0);
                    let s = scale * by / rho.hypot(1.0);
                    // A build effect near the one looked for would leave nothing to find.
                    noise.push(Noise { s, rho, tau: tau.min(MOST_TAU * self.claim.abs() / s), tail });
                }
            }
        }
        let weight_of = |differ: bool| {
            self.taus.iter().filter(|(tau, _)| (*tau > 0.0) == differ).map(|t| t.1).sum::<f64>()
        };
        let weight = |n: &Noise| weight_of(n.tau > 0.0);
        let modes = self.grid.as_ref().and_then(|g| g.modes);
        let mut grid = Grid::new(range, count, noise, weight);
        grid.modes = modes;
        self.prior_of_change = prior_of_change(&grid, self.claim);
        self.grid = Some(grid);
        self.regrid_at = self.boots + (self.boots * 3 / 10).max(1);
        self.recompute();
    }

    /// Everything that depends on the grid.
    fn recompute(&mut self) {
        let size = self.grid.as_ref().map_or(0, Grid::size);
        for kernel in 0..self.kernels.len() {
            (self.kernels[kernel].raw, self.kernels[kernel].settled) = (vec![0.0; size], 0);
            self.likelihood(kernel);
        }
        let grid = self.grid.as_ref().expect("a grid is laid");
        let claim = self.coupled.then_some(self.claim);
        for class in &mut self.classes {
            class.good.clear(grid.size());
            class.bad.clear(grid.size());
            for (at, kernel) in self.kernels.iter().enumerate() {
                let side = if bit(&class.pattern, at) { &mut class.bad } else { &mut class.good };
                side.add(&kernel.likelihood);
            }
            class.good.refresh(grid);
            class.bad.refresh(grid);
            class.weigh(grid, claim);
        }
        self.normalise();
    }

    /// Replaces the drift (by the runs' place in time) and lays the grid anew.
    pub fn set_drift(&mut self, drift: Vec<f64>) {
        self.drift = drift;
        self.lay();
    }

    /// Replaces the modes of boots and lays the grid anew. `sd`: of a boot within its mode, or of one boot without modes.
    pub fn set_modes(&mut self, modes: Option<Modes>, sd: f64) {
        let Some(grid) = &mut self.grid else { return };
        let before = std::mem::replace(&mut grid.modes, modes);
        let gap = |modes: Option<Modes>| modes.map_or(0.0, |m| m.gap);
        // Levels and noise lie elsewhere then: what was believed of them says nothing.
        if (gap(before) - gap(modes)).abs() > sd {
            let reach = gap(before).abs().max(gap(modes).abs());
            let (low, high) = (grid.levels[0], grid.levels[grid.levels.len() - 1]);
            self.lay_over((low - reach, high + reach), LEVELS.1, sd, WIDEST);
        }
        self.lay();
    }
}
