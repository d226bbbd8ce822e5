//! Whether anything changed at all, and what speaks for a class whatever is believed of the change or of builds.

use super::{Belief, Class};
use crate::stats::log_sum_exp;

impl Belief {
    /// Log Bayes factor of "the two levels differ" against "one level", at the leading class.
    pub fn log_bayes_change(&self) -> f64 {
        let class = &self.classes[self.leader()];
        self.log_bayes_of(&class.good.sum, &class.bad.sum)
    }

    /// The same of any two sums of log likelihoods over the grid.
    fn log_bayes_of(&self, good: &[f64], bad: &[f64]) -> f64 {
        let grid = self.grid.as_ref().expect("evidence is over a grid");
        let width = grid.levels.len();
        let rows = good.chunks_exact(width).zip(bad.chunks_exact(width)).zip(&grid.log_prior);
        let (mut two, mut one) = (Vec::new(), Vec::new());
        // Whether these two kernels differ as they were built: what another build would do is not asked.
        for (((good, bad), log_prior), _) in rows.zip(&grid.noise).filter(|(_, noise)| noise.tau == 0.0) {
            let max = |row: &[f64]| row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (top_good, top_bad) = (max(good), max(bad));
            let good_e: Vec<f64> = good.iter().map(|v| (v - top_good).exp()).collect();
            let bad_e: Vec<f64> = bad.iter().map(|v| (v - top_bad).exp()).collect();
            let mut sum = 0.0;
            for (row, g) in self.prior_of_change.chunks_exact(width).zip(&good_e) {
                if *g > 1e-14 {
                    sum += g * row.iter().zip(&bad_e).map(|(p, b)| p * b).sum::<f64>();
                }
            }
            two.push(sum.max(f64::MIN_POSITIVE).ln() + top_good + top_bad + log_prior);
            let both: Vec<f64> = good.iter().zip(bad).map(|(a, b)| a + b).collect();
            one.push(log_sum_exp(&both) + log_prior);
        }
        log_sum_exp(&two) - log_sum_exp(&one) + grid.step.ln()
    }

    /// Probability that nothing changed, given its prior probability.
    pub fn p_no_change(&self, prior: f64) -> f64 {
        let leader = self.leader();
        let total: f64 = self.classes.iter().map(|c| c.prior).sum();
        let class_prior = self.classes[leader].prior / total;
        // p(data | change) = p(data | class) p(class) / p(class | data)
        let odds = self.log_bayes_change() + class_prior.ln()
            - self.weights_as_built()[leader].max(1e-12).ln()
            + ((1.0 - prior) / prior).ln();
        1.0 / (1.0 + odds.clamp(-700.0, 700.0).exp())
    }

    /// Log evidence of a class under some noise hypotheses, whatever the size of its step.
    pub fn flat_evidence(&self, class: usize, noise: &[usize]) -> f64 {
        let grid = self.grid.as_ref().expect("evidence is over a grid");
        let class = &self.classes[class];
        let log: Vec<f64> =
            noise.iter().map(|&s| class.good.log[s] + class.bad.log[s] + grid.log_prior[s]).collect();
        log_sum_exp(&log) + 2.0 * grid.step.ln()
    }

    /// Weights of the classes if builds do not differ of themselves.
    pub fn weights_as_built(&self) -> Vec<f64> {
        let grid = self.grid.as_ref().expect("evidence is over a grid");
        let log = |class: &Class| {
            let rows = class.by_noise.iter().zip(&grid.noise).filter(|(_, noise)| noise.tau == 0.0);
            log_sum_exp(&rows.map(|(log, _)| *log).collect::<Vec<_>>()) + class.prior.ln()
        };
        let all: Vec<f64> = self.classes.iter().map(log).collect();
        let total = log_sum_exp(&all);
        all.iter().map(|v| (v - total).exp()).collect()
    }
}
