//! Evidence of a step between two kernels from fresh, interleaved boots alone.

use crate::stats::{Grid, Modes, Noise, Tail, log_sum_exp};

/// Sd of the logarithm of the step about its believed size.
const SD: f64 = 0.3;

/// Points over the step's size, to three sds either way.
const POINTS: usize = 41;

/// Differences "later less earlier kernel" of boots taken one after the other, in which slow drift cancels.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs {
    /// (difference of the boot means, log units; runs in the smaller boot).
    pub differences: Vec<(f64, usize)>,
}

impl Pairs {
    /// Log Bayes factor of "they differ by about `step`" (log-normal) against "they do not differ". `posterior`: of the
    /// grid's noise hypotheses. Of the two kernels as they were built: what another build of them would change is weighed
    /// by the posterior over culprits, which knows more kernels than these two.
    pub fn log_bayes(&self, grid: &Grid, posterior: &[f64], step: f64) -> f64 {
        let sizes: Vec<(f64, f64)> = (0..POINTS)
            .map(|i| {
                let z = 6.0 * i as f64 / (POINTS - 1) as f64 - 3.0;
                (step * (SD * z).exp(), -0.5 * z * z)
            })
            .collect();
        let total = log_sum_exp(&sizes.iter().map(|s| s.1).collect::<Vec<_>>());
        let (mut differ, mut same) = (Vec::new(), Vec::new());
        for (noise, p) in grid.noise.iter().zip(posterior).filter(|(noise, _)| noise.tau == 0.0) {
            let prior = p.max(1e-12).ln();
            let log_at = |size: f64| self.log(noise, grid.modes, size);
            let at: Vec<f64> = sizes.iter().map(|(size, log)| log_at(*size) + log - total).collect();
            differ.push(log_sum_exp(&at) + prior);
            same.push(log_at(0.0) + prior);
        }
        log_sum_exp(&differ) - log_sum_exp(&same)
    }

    fn log(&self, noise: &Noise, modes: Option<Modes>, step: f64) -> f64 {
        let each = self.differences.iter().map(|(difference, runs)| {
            let scale = noise.s * (2.0 * (noise.rho * noise.rho + 1.0 / *runs as f64)).sqrt();
            let density = |shift: f64| {
                let z = (difference - step - shift) / scale;
                match noise.tail {
                    Tail::Heavy => -3.0 * (1.0 + z * z / 5.0).ln(),
                    Tail::Normal => -0.5 * z * z,
                }
            };
            let mixed = modes.map_or_else(
                || density(0.0),
                |Modes { gap, share }| {
                    // Either of the two boots may be in the second mode, or both, or none.
                    let one = (share * (1.0 - share)).ln();
                    let same = (1.0 - 2.0 * share * (1.0 - share)).ln();
                    log_sum_exp(&[same + density(0.0), one + density(gap), one + density(-gap)])
                },
            );
            mixed - scale.ln()
        });
        each.sum()
    }
}
