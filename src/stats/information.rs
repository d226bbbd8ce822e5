//! How much a measurement is expected to tell.

/// Points of the quadrature.
const POINTS: usize = 72;

/// How many standard deviations around each component are covered.
const REACH: f64 = 4.5;

/// Step of the quadrature over the sharpest component's sd from which it misses that component.
const COARSE: f64 = 1.0;

/// One component of a normal mixture: what the next measurement would give if one answer were right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Component {
    /// Probability of that answer; need not sum to one over the components.
    pub weight: f64,
    /// Mean of the measurement, log units.
    pub mean: f64,
    /// Its variance, the uncertainty of the mean included; > 0.
    pub variance: f64,
}

/// Mutual information, in bits, between the component and one draw of the mixture: entropy of the mixture less the mean
/// entropy of the components (Cover and Thomas, "Elements of Information Theory", 8.6). By the midpoint rule, over
/// all components at once or, where one is too sharp for that, about each; never negative.
pub fn mutual_information(mixture: &[Component]) -> f64 {
    let total: f64 = mixture.iter().map(|c| c.weight).sum();
    let live: Vec<(f64, f64, f64, f64)> = mixture
        .iter()
        .filter(|c| c.weight > 0.0)
        .map(|c| (c.weight / total, c.mean, c.variance.sqrt().recip(), c.variance.sqrt()))
        .collect();
    if live.len() < 2 {
        return 0.0;
    }
    let low = live.iter().map(|(_, mean, _, sd)| mean - REACH * sd).fold(f64::INFINITY, f64::min);
    let high = live.iter().map(|(_, mean, _, sd)| mean + REACH * sd).fold(f64::NEG_INFINITY, f64::max);
    let step = (high - low) / POINTS as f64;
    let sharpest = live.iter().map(|(_, _, _, sd)| *sd).fold(f64::INFINITY, f64::min);
    if step > COARSE * sharpest {
        return by_component(&live);
    }
    let root = std::f64::consts::TAU.sqrt().recip();
    let mut density = [0.0; POINTS];
    for (weight, mean, precision, _) in &live {
        let height = weight * precision * root;
        let first = (low - mean) * precision;
        for (i, density) in density.iter_mut().enumerate() {
            let z = first + (i as f64 + 0.5) * step * precision;
            // Beyond this the exponential adds nothing to the others.
            if z.abs() < 8.0 {
                *density += height * (-0.5 * z * z).exp();
            }
        }
    }
    let mixed: f64 = density.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum::<f64>() * step;
    let constant = 0.5 * (std::f64::consts::TAU * std::f64::consts::E).ln();
    let own: f64 = live.iter().map(|(weight, _, _, sd)| weight * (sd.ln() + constant)).sum();
    ((mixed - own) / std::f64::consts::LN_2).max(0.0)
}

/// The same as the mean over the components (weight, mean, 1 / sd, sd) of how far each is from the mixture (8.5 there).
fn by_component(live: &[(f64, f64, f64, f64)]) -> f64 {
    let density = |y: f64| -> f64 {
        let each = live.iter().filter_map(|(weight, mean, precision, _)| {
            let z = (y - mean) * precision;
            (z.abs() < 8.0).then(|| weight * precision * (-0.5 * z * z).exp())
        });
        each.sum()
    };
    let step = 2.0 * REACH / POINTS as f64;
    let root = std::f64::consts::TAU.sqrt().recip();
    let told = live.iter().map(|(weight, mean, precision, sd)| {
        let points = (0..POINTS).map(|i| {
            let z = -REACH + (i as f64 + 0.5) * step;
            let own = (-0.5 * z * z).exp();
            own * root * (precision * own / density(mean + z * sd)).ln()
        });
        weight * points.sum::<f64>() * step
    });
    (told.sum::<f64>() / std::f64::consts::LN_2).max(0.0)
}
