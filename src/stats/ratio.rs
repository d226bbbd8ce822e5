//! The share of one difference in another, with its interval.

use super::contrast::{Contrast, Estimate, Group, t_quantile};

/// A share: `numerator / denominator` of two differences of kernels.
pub type Share = Estimate;

/// Share of `whole.0 - whole.1` that `part.0 - part.1` makes up, with the interval that misses it with probability
/// `alpha`. All groups are on one scale. A kernel may stand in both differences; pass the same reference then.
///
/// Interval after Fieller (1954) with the degrees of freedom of the denominator's contrast; where the denominator is
/// not clearly different from zero at that level, no bounded interval exists and `None` is given.
///
/// `df`: degrees of freedom of the groups' variance where it was estimated from all kernels together.
pub fn share(part: (&Group, &Group), whole: (&Group, &Group), alpha: f64, df: Option<f64>) -> Option<Share> {
    let contrast = |later, reference| {
        let terms = [(1.0, later), (-1.0, reference)];
        df.map_or_else(|| Contrast::of(&terms), |df| Contrast::pooled(&terms, df))
    };
    let (numerator, denominator) = (contrast(part.0, part.1), contrast(whole.0, whole.1));
    let covariance = covariance(part, whole);
    let t2 = t_quantile(denominator.df.min(numerator.df), alpha / 2.0).powi(2);
    let (va, vb) = (numerator.se.powi(2), denominator.se.powi(2));
    let (a, b) = (numerator.value, denominator.value);
    let leading = b * b - t2 * vb;
    if leading <= 0.0 {
        return None;
    }
    let middle = a * b - t2 * covariance;
    let root = (middle * middle - leading * (a * a - t2 * va)).max(0.0).sqrt();
    Some(Share { value: a / b, low: (middle - root) / leading, high: (middle + root) / leading })
}

/// Covariance of the two differences: a kernel that stands in both contributes its squared standard error.
fn covariance(part: (&Group, &Group), whole: (&Group, &Group)) -> f64 {
    let signed =
        |side: (&Group, &Group)| [(1.0, std::ptr::from_ref(side.0)), (-1.0, std::ptr::from_ref(side.1))];
    let mut sum = 0.0;
    for (weight, group) in signed(part) {
        for (other_weight, other) in signed(whole) {
            if std::ptr::eq(group, other) {
                let se2 = if std::ptr::eq(group, part.0) { part.0.se2() } else { part.1.se2() };
                sum += weight * other_weight * se2;
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(mean: f64, sd: f64, n: usize) -> Group {
        Group { n, mean, variance: sd * sd }
    }

    #[test]
    fn the_whole_difference_is_a_share_of_one_without_width() {
        let (good, bad) = (group(0.0, 0.01, 5), group(0.1, 0.01, 5));
        let share = share((&bad, &good), (&bad, &good), 0.01, None).expect("a clear difference");
        assert!((share.value - 1.0).abs() < 1e-12);
        assert!((share.high - share.low).abs() < 1e-6, "{share:?}");
    }

    #[test]
    fn half_restored_is_half_with_an_interval_around_it() {
        let (good, bad, reverted) = (group(0.0, 0.002, 5), group(0.08, 0.002, 5), group(0.04, 0.002, 5));
        let share = share((&bad, &reverted), (&bad, &good), 0.01, None).expect("a clear difference");
        assert!((share.value - 0.5).abs() < 1e-12);
        assert!(share.low > 0.4 && share.low < 0.5 && share.high > 0.5 && share.high < 0.6, "{share:?}");
    }

    #[test]
    fn a_share_of_nothing_has_no_interval() {
        let (good, bad) = (group(0.0, 0.01, 3), group(0.001, 0.01, 3));
        assert_eq!(share((&bad, &good), (&good, &bad), 0.01, None), None);
    }
}
