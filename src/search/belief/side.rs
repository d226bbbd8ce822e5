//! The sums of a class's two sides, and their levels integrated out.

use super::Level;
use crate::stats::Grid;

/// The kernels on one side of a class: sums over the grid and what follows from them, by noise hypothesis.
#[derive(Debug, Clone, Default)]
pub(super) struct Side {
    pub(super) sum: Vec<f64>,
    pub(super) log: Vec<f64>,
    pub(super) mean: Vec<f64>,
    pub(super) square: Vec<f64>,
}

impl Side {
    pub(super) fn clear(&mut self, size: usize) {
        self.sum.clear();
        self.sum.resize(size, 0.0);
    }

    pub(super) fn add(&mut self, change: &[f64]) {
        for (sum, change) in self.sum.iter_mut().zip(change) {
            *sum += change;
        }
    }

    /// Integrates the level out, hypothesis by hypothesis.
    pub(super) fn refresh(&mut self, grid: &Grid) {
        self.log.clear();
        self.mean.clear();
        self.square.clear();
        for row in self.sum.chunks_exact(grid.levels.len()) {
            let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (mut total, mut mean, mut square) = (0.0, 0.0, 0.0);
            for (value, level) in row.iter().zip(&grid.levels) {
                // Below e^-36 nothing is added to a double.
                if value - max > -36.0 {
                    let e = (value - max).exp();
                    total += e;
                    mean += e * level;
                    square += e * level * level;
                }
            }
            self.log.push(max + total.ln());
            self.mean.push(mean / total);
            self.square.push(square / total);
        }
    }

    /// The level under one noise hypothesis.
    pub(super) fn at(&self, noise: usize) -> Level {
        let mean = self.mean[noise];
        Level { mean, variance: self.square[noise] - mean * mean }
    }

    pub(super) fn level(&self, noise: &[f64]) -> Level {
        let over = |values: &[f64]| values.iter().zip(noise).map(|(v, p)| v * p).sum::<f64>();
        let mean = over(&self.mean);
        Level { mean, variance: over(&self.square) - mean * mean }
    }
}
