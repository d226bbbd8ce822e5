//! Guards on the data that the engine takes out of them: drift, what first runs of a boot are off, two modes of boots.

use super::Engine;
use crate::search::belief::BootRuns;
use crate::stats::{self, median};
use std::collections::BTreeSet;

impl Engine {
    /// Looks for drift in all runs of the scope, and for a first run of boots that is off, and takes both out of the runs.
    pub(super) fn follow_time(&mut self) {
        let levels = self.belief.levels(self.belief.leader());
        let mut rows = self.belief.residuals();
        let off = self.first.map_or(0.0, |first| first.effect);
        if off != 0.0 {
            let first: BTreeSet<u32> = self.first_places().collect();
            rows.iter_mut().filter(|row| first.contains(&row.0)).for_each(|row| row.1 -= off);
        }
        let found = stats::drift(&rows, levels.run + levels.boot, self.runs as usize);
        let acted = found.step > 0.0 || self.drift.step > 0.0 || self.first.is_some();
        self.drift = found;
        self.taken.clone_from(&self.drift.path);
        self.first = self.first_run_is_off(levels.run_variance.sqrt());
        if let Some(first) = self.first {
            for place in self.first_places().collect::<Vec<_>>() {
                self.taken[place as usize] += first.effect;
            }
        }
        if acted || self.first.is_some() {
            self.belief.set_drift(self.taken.clone());
        }
    }

    /// Whether the first runs of boots lie off the later ones; drift must be taken out, and nothing else.
    fn first_run_is_off(&self, run_sd: f64) -> Option<stats::FirstRun> {
        let boots = self.all.values().flatten().filter(|b| b.runs.len() > 1);
        let levels = |b: &BootRuns| b.runs.iter().map(|run| self.level_of(run)).collect::<Vec<f64>>();
        let boots: Vec<Vec<f64>> = boots.map(levels).collect();
        stats::first_run(&boots.iter().map(Vec::as_slice).collect::<Vec<_>>(), run_sd)
    }

    /// The place in time of the first run of each boot.
    fn first_places(&self) -> impl Iterator<Item = u32> + '_ {
        self.all.values().flatten().filter_map(|b| b.runs.first()).map(|run| run.1)
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
            let runs: Vec<f64> = b.runs.iter().map(|run| self.level_of(run)).collect();
            (b.runs[0].1, median(&runs))
        };
        self.all
            .values()
            .map(|boots| boots.iter().filter(|b| !b.runs.is_empty()).map(boot).collect())
            .collect()
    }

    /// A run less what is taken out at its place in time.
    pub(super) fn level_of(&self, run: &(f64, u32)) -> f64 {
        run.0 - self.taken.get(run.1 as usize).copied().unwrap_or(0.0)
    }
}
