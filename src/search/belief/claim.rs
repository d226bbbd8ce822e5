//! How large a change is expected to be, given the claim: the prior of the difference of two levels.

use super::Level;
use crate::stats::Grid;

/// Prior of a change in claims: sd of the logarithm of its size; share of the wide part and its scale.
const CLAIM_SD: f64 = 0.5;
const WIDE: (f64, f64) = (0.1, 2.0);

/// Density of the claim's prior, smoothed by the uncertainty of a difference, in units of the claim: with it the levels of a
/// class are not independent, and a split that needs a difference far from the claimed one is less likely. Gauss and
/// Hermite's rule of 5 points.
pub(super) fn agreement(difference: Level, claim: f64) -> f64 {
    const HERMITE: [(f64, f64); 5] = [
        (-2.856_970_013_872_806, 0.011_257_411_327_720_69),
        (-1.355_626_179_974_266, 0.222_075_922_005_612_7),
        (0.0, 0.533_333_333_333_333_3),
        (1.355_626_179_974_266, 0.222_075_922_005_612_7),
        (2.856_970_013_872_806, 0.011_257_411_327_720_69),
    ];
    let sd = difference.variance.sqrt();
    let at = |z: f64| likely_size((difference.mean + sd * z) / claim);
    HERMITE.iter().map(|(z, weight)| weight * at(*z)).sum::<f64>().max(f64::MIN_POSITIVE)
}

/// Prior density of a change of `r` claims: 90 % log-normal, 10 % Cauchy of either sign.
fn likely_size(r: f64) -> f64 {
    let wide = 1.0 / (std::f64::consts::PI * WIDE.1 * (1.0 + (r / WIDE.1).powi(2)));
    let root = std::f64::consts::TAU.sqrt();
    let near = if r > 0.0 { (-0.5 * (r.ln() / CLAIM_SD).powi(2)).exp() / (r * CLAIM_SD * root) } else { 0.0 };
    (1.0 - WIDE.0) * near + WIDE.0 * wide
}

/// Prior density of the change from the level of the row to that of the column: 90 % log-normal about the claim, 10 %
/// wide (Cauchy, so that a change far beyond the claim is still one) and of either sign, nothing below 0.3 of the claim, so
/// that "no change" can win with few boots.
pub(super) fn prior_of_change(grid: &Grid, claim: f64) -> Vec<f64> {
    /// Share of the wide part beyond the gap of 0.3.
    const BEYOND: f64 = 0.905;
    const LEAST: f64 = 0.3;
    let density = |r: f64| if r.abs() < LEAST { 0.0 } else { likely_size(r) / BEYOND / claim.abs() };
    let width = grid.levels.len();
    // The density depends on the distance alone.
    let by_distance: Vec<f64> =
        (0..2 * width - 1).map(|i| density((i as f64 - (width - 1) as f64) * grid.step / claim)).collect();
    (0..width)
        .flat_map(|from| (0..width).map(move |to| to + width - 1 - from))
        .map(|i| by_distance[i])
        .collect()
}
