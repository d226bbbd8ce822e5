//! Guards on the data that the engine takes out of them: drift, two modes of boots.

use super::Engine;
use crate::search::belief::{BootRuns, median};
use crate::stats;

impl Engine {
    /// Looks for drift in all runs of the scope, and takes it out of them.
    pub(super) fn follow_drift(&mut self) {
        let levels = self.belief.levels(self.belief.leader());
        let rows = self.belief.residuals();
        let found = stats::drift(&rows, levels.run + levels.boot, self.runs as usize);
        if found.step > 0.0 || self.drift.step > 0.0 {
            self.belief.set_drift(found.path.clone());
        }
        self.drift = found;
    }

    /// Looks for two modes in the boots of all kernels, each time the data have grown by a third; the belief weighs them from
    /// then on.
    pub(super) fn follow_modes(&mut self) {
        self.modes_at = self.boots + (self.boots * 3 / 10).max(1);
        let before = self.modes.take();
        self.modes = stats::find_modes(&self.boots_in_time());
        if self.modes.is_some() || before.is_some() {
            self.lay_modes();
        }
    }

    /// Gives the belief the modes that were found. Where kernels have different shares of them, the share may be what the
    /// culprit changed: then means are compared, as without modes.
    pub(super) fn lay_modes(&mut self) {
        let even = self.modes.filter(|found| found.is_even);
        let is_new = even.is_some() || self.belief.grid().is_some_and(|grid| grid.modes.is_some());
        if is_new {
            let sd = even.map_or_else(|| self.belief.pilot().2, |found| found.sd);
            self.belief.set_modes(even.map(|found| found.modes), sd);
        }
    }

    /// Each kernel's boots: place in time and median, drift removed, so that an outlier among a boot's runs is no mode.
    fn boots_in_time(&self) -> Vec<stats::Boots> {
        let boot = |b: &BootRuns| {
            let runs: Vec<f64> = b.runs.iter().map(|run| self.without_drift(run)).collect();
            (b.runs[0].1, median(&runs))
        };
        self.all
            .values()
            .map(|boots| boots.iter().filter(|b| !b.runs.is_empty()).map(boot).collect())
            .collect()
    }

    /// A run less the drift at its time.
    pub(super) fn without_drift(&self, run: &(f64, u32)) -> f64 {
        run.0 - self.drift.path.get(run.1 as usize).copied().unwrap_or(0.0)
    }
}
