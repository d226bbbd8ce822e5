//! Two samples: rank tests and spread, as Pinpoint uses them.

use statrs::function::erf::erfc;

/// Two-sided p value of the Mann-Whitney U test in its normal approximation with continuity correction. Values without
/// ties; both samples non-empty.
pub(super) fn mann_whitney(x: &[f64], y: &[f64]) -> f64 {
    let (a, b) = (x.len() as f64, y.len() as f64);
    let mut all: Vec<(f64, bool)> =
        x.iter().map(|&v| (v, true)).chain(y.iter().map(|&v| (v, false))).collect();
    all.sort_by(|p, q| p.0.total_cmp(&q.0));
    let ranks: f64 = all.iter().zip(1u32..).filter(|(v, _)| v.1).map(|(_, rank)| f64::from(rank)).sum();
    let u = a * b + a * (a + 1.0) / 2.0 - ranks;
    let larger = u.max(a * b - u);
    let z = (larger - (a * b / 2.0 + 0.5)) / (a * b * (a + b + 1.0) / 12.0).sqrt();
    erfc(z.abs() / std::f64::consts::SQRT_2)
}

/// Two-sided p value of the Kolmogorov-Smirnov test by its limiting distribution (Kolmogorov 1933) with Stephens's
/// (1970) correction for small samples.
pub(super) fn kolmogorov_smirnov(x: &[f64], y: &[f64]) -> f64 {
    let (a, b) = (x.len() as f64, y.len() as f64);
    let mut all: Vec<(f64, f64)> =
        x.iter().map(|&v| (v, 1.0 / a)).chain(y.iter().map(|&v| (v, -1.0 / b))).collect();
    all.sort_by(|p, q| p.0.total_cmp(&q.0));
    let (mut apart, mut largest) = (0.0_f64, 0.0_f64);
    for (_, step) in all {
        apart += step;
        largest = largest.max(apart.abs());
    }
    let root = (a * b / (a + b)).sqrt();
    let z = (root + 0.12 + 0.11 / root) * largest;
    let mut sum = 0.0;
    for k in 1..200 {
        let term = (-2.0 * (z * f64::from(k)).powi(2)).exp();
        sum += if k % 2 == 1 { term } else { -term };
        if term < 1e-16 {
            break;
        }
    }
    (2.0 * sum).clamp(0.0, 1.0)
}

/// Interquartile range, quartiles by linear interpolation.
pub(super) fn quartile_range(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (sorted.len() - 1) as f64;
        let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        low + place.fract() * (high - low)
    };
    at(0.75) - at(0.25)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the prototype, which agree with scipy's to the digits shown.
    #[test]
    fn p_values_are_those_of_the_published_formulas() {
        let x: Vec<f64> = (10..30).map(f64::from).collect();
        let y: Vec<f64> = (0..10).chain(30..40).map(|v| f64::from(v) + 0.5).collect();
        assert!((mann_whitney(&x, &y) - 0.989_2).abs() < 1e-3, "{}", mann_whitney(&x, &y));
        assert!((kolmogorov_smirnov(&x, &y) - 0.008_2).abs() < 1e-3, "{}", kolmogorov_smirnov(&x, &y));
        assert!((quartile_range(&[1.0, 2.0, 3.0, 4.0]) - 1.5).abs() < 1e-12);
    }
}
