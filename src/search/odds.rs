//! What a kernel's own boots say, whatever its neighbours show.

use super::belief::Belief;
use crate::stats::log_sum_exp;

impl Belief {
    /// Log odds of the bad level against the good one from these boots alone (runs in log units, positive = worse), at the
    /// levels and noise believed now; 0 before there are any.
    pub fn log_odds(&self, boots: &[Vec<f64>]) -> f64 {
        let Some(grid) = self.grid() else { return 0.0 };
        let levels = self.levels(self.leader());
        let mut sum = vec![0.0; grid.size()];
        boots.iter().for_each(|runs| grid.add_boot(runs, &mut sum));
        let width = grid.levels.len();
        let at = |mean: f64| {
            let place = ((mean - grid.levels[0]) / grid.step).round().clamp(0.0, (width - 1) as f64) as usize;
            let rows = sum.chunks_exact(width).zip(&levels.noise);
            log_sum_exp(&rows.map(|(row, p)| row[place] + p.max(1e-300).ln()).collect::<Vec<_>>())
        };
        at(levels.bad.mean) - at(levels.good.mean)
    }
}
