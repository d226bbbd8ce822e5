//! Slow drift of the machine, common to all kernels: a random walk under the residuals of the runs.

/// Variances of the walk's step per run that are weighed, over the variance of a run. Larger ones would eat the noise.
const STEPS: [f64; 4] = [0.0, 0.003, 0.01, 0.03];

/// Log likelihood by which a drift must be better than none: a prior on none.
const RELUCTANCE: f64 = 2.0;

/// A residual is taken to be at most so many sds from what the filter expects, so that an outlier bends no drift and a long
/// drift is followed wherever it goes.
const CUT: f64 = 4.0;

/// Residuals whose median is the filter's start.
const START: usize = 5;

/// A drift that the data show.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// Variance of its step per run over the variance of a run; one of a few values, 0 for none.
    pub step: f64,
    /// Log likelihood ratio against no drift.
    pub evidence: f64,
    /// Its value at each place in time, log units, mean zero over the runs.
    pub path: Vec<f64>,
}

/// Finds the drift by Kalman filter and Rauch-Tung-Striebel smoother over a local level (Durbin and Koopman, "Time Series
/// Analysis by State Space Methods", 2.2 to 2.4). `rows`: (place in time, residual, variance of what the residual's
/// kernel is), in order of time; `variance`: of one run. The path has an entry for each place up to `length`.
pub fn drift(rows: &[(u32, f64, f64)], variance: f64, length: usize) -> Drift {
    let mut at = vec![None; length];
    for (place, residual, own) in rows {
        at[*place as usize] = Some((*residual, *own));
    }
    let mut first: Vec<f64> = rows.iter().take(START).map(|r| r.1).collect();
    first.sort_by(f64::total_cmp);
    let start = first.get(first.len() / 2).copied().unwrap_or(0.0);
    let none = filter(&at, variance, 0.0, start).0;
    let mut best = Drift { step: 0.0, evidence: 0.0, path: vec![0.0; length] };
    for step in STEPS.into_iter().skip(1) {
        let (log, filtered) = filter(&at, variance, step, start);
        let evidence = log - none;
        if evidence > RELUCTANCE && evidence > best.evidence {
            best = Drift { step, evidence, path: smooth(&filtered, step * variance) };
        }
    }
    best
}

/// Log likelihood and, at each place, the filtered mean and variance.
fn filter(at: &[Option<(f64, f64)>], variance: f64, step: f64, start: f64) -> (f64, Vec<(f64, f64)>) {
    let (mut mean, mut spread, mut log) = (start, 4.0 * variance, 0.0);
    let mut filtered = Vec::with_capacity(at.len());
    for (place, seen) in at.iter().enumerate() {
        if place > 0 {
            spread += step * variance;
        }
        if let Some((residual, own)) = seen {
            let total = spread + variance + own;
            let reach = CUT * total.sqrt();
            let error = (residual - mean).clamp(-reach, reach);
            log -= 0.5 * (total.ln() + error * error / total);
            let gain = spread / total;
            mean += gain * error;
            spread *= 1.0 - gain;
        }
        filtered.push((mean, spread));
    }
    (log, filtered)
}

fn smooth(filtered: &[(f64, f64)], step: f64) -> Vec<f64> {
    let mut path: Vec<f64> = filtered.iter().map(|f| f.0).collect();
    for place in (0..path.len().saturating_sub(1)).rev() {
        let gain = filtered[place].1 / (filtered[place].1 + step);
        path[place] += gain * (path[place + 1] - path[place]);
    }
    let mean = path.iter().sum::<f64>() / path.len().max(1) as f64;
    path.iter_mut().for_each(|p| *p -= mean);
    path
}
