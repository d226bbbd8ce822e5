//! A linear contrast of group means with unequal variances.

use statrs::distribution::{ContinuousCDF, StudentsT};
use thiserror::Error;

/// Standard deviation below which a group's boots are taken to be this apart, in log units (1e-6 = one part in a
/// million). A metric without noise (an instruction count) would otherwise divide by zero; it is far below any
/// effect worth finding.
const SD_FLOOR: f64 = 1e-6;

/// Why no estimate can be given.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StatsError {
    /// Fewer than two boots in a group: there is no spread to judge by.
    #[error("judge {0} boot(s): at least 2 are needed on each side")]
    TooFew(usize),
    /// A value is not finite.
    #[error("judge a value that is not finite")]
    NotFinite,
}

/// Boot means of one kernel, in log units of the metric (natural logarithm).
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Boots; >= 2.
    pub n: usize,
    /// Mean of the boot means.
    pub mean: f64,
    /// Sample variance of the boot means (n - 1 in the denominator); >= the floor's square.
    pub variance: f64,
}

impl Group {
    /// Summarises the boot means of one kernel. Errors: fewer than two, or one that is not finite.
    pub fn of(boot_means: &[f64]) -> Result<Self, StatsError> {
        let n = boot_means.len();
        if n < 2 {
            return Err(StatsError::TooFew(n));
        }
        if boot_means.iter().any(|v| !v.is_finite()) {
            return Err(StatsError::NotFinite);
        }
        let mean = boot_means.iter().sum::<f64>() / n as f64;
        let variance = boot_means.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        Ok(Self { n, mean, variance: variance.max(SD_FLOOR * SD_FLOOR) })
    }

    /// Squared standard error of the mean.
    pub fn se2(&self) -> f64 {
        self.variance / self.n as f64
    }
}

/// A weighted sum of groups' means, with its standard error and degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// Value in log units.
    pub value: f64,
    /// Standard error; > 0.
    pub se: f64,
    /// Degrees of freedom by Welch-Satterthwaite; >= 1.
    pub df: f64,
}

/// A value with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Point.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Contrast {
    /// `sum(weight * mean)`. Standard error and degrees of freedom after Welch (1947) and Satterthwaite (1946).
    /// Assumes independent boots with about normal means of any, unequal variances; ties and equal values are
    /// covered by the floor of [`Group`].
    pub fn of(terms: &[(f64, &Group)]) -> Self {
        let value = terms.iter().map(|(w, g)| w * g.mean).sum();
        let se2: f64 = terms.iter().map(|(w, g)| w * w * g.se2()).sum();
        let spread: f64 =
            terms.iter().map(|(w, g)| (w * w * g.se2()).powi(2) / (g.n.max(2) - 1) as f64).sum();
        Self { value, se: se2.sqrt(), df: (se2 * se2 / spread).max(1.0) }
    }

    /// The same with a variance that was estimated elsewhere, from all kernels together, with `df` degrees of freedom.
    pub fn pooled(terms: &[(f64, &Group)], df: f64) -> Self {
        Self { df: df.max(1.0), ..Self::of(terms) }
    }

    /// Probability of a value this large or larger if the true contrast were zero (one-sided Student t), in `[0, 1]`.
    pub fn p_above_zero(&self) -> f64 {
        student(self.df).sf(self.value / self.se)
    }

    /// Two-sided interval that misses the true contrast with probability `alpha`.
    pub fn interval(&self, alpha: f64) -> Estimate {
        let half = t_quantile(self.df, alpha / 2.0) * self.se;
        Estimate { value: self.value, low: self.value - half, high: self.value + half }
    }
}

/// Upper quantile of Student's t: the value exceeded with probability `tail`, in (0, 0.5].
pub(crate) fn t_quantile(df: f64, tail: f64) -> f64 {
    // By bisection on the survival function: `inverse_cdf(1 - tail)` loses the small tails to rounding.
    let distribution = student(df);
    let (mut low, mut high) = (0.0, 1.0);
    while distribution.sf(high) > tail && high < 1e12 {
        low = high;
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if distribution.sf(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// Probability that Student's t with `df` degrees of freedom exceeds `t`; one-sided.
pub fn t_tail(df: f64, t: f64) -> f64 {
    student(df).sf(t)
}

fn student(df: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, df).expect("location 0, scale 1 and df >= 1 are valid parameters")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b} within {tolerance}");
    }

    #[test]
    fn quantiles_agree_with_the_printed_table() {
        // Standard t table, one-sided.
        close(t_quantile(4.0, 0.005), 4.604, 5e-4);
        close(t_quantile(10.0, 0.05), 1.812, 5e-4);
        close(t_quantile(2.0, 0.0005), 31.599, 5e-3);
        close(t_quantile(30.0, 0.025), 2.042, 5e-4);
    }

    #[test]
    fn the_difference_of_two_groups_is_welchs_test() {
        // Expected figures computed independently with Python's statistics module.
        let a = Group::of(&[27.5, 21.0, 19.0, 23.6, 17.0, 17.9]).expect("enough");
        let b = Group::of(&[27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2]).expect("enough");
        let contrast = Contrast::of(&[(1.0, &a), (-1.0, &b)]);
        close(contrast.value / contrast.se, -1.308_424_285, 1e-8);
        close(contrast.df, 6.829_566_381, 1e-8);
    }

    #[test]
    fn one_boot_gives_no_estimate() {
        assert_eq!(Group::of(&[1.0]), Err(StatsError::TooFew(1)));
        assert_eq!(Group::of(&[1.0, f64::NAN]), Err(StatsError::NotFinite));
    }

    #[test]
    fn a_metric_without_noise_is_judged_by_its_difference_alone() {
        let same = Group::of(&[2.0, 2.0, 2.0]).expect("enough");
        let other = Group::of(&[2.1, 2.1, 2.1]).expect("enough");
        assert!(Contrast::of(&[(1.0, &other), (-1.0, &same)]).p_above_zero() < 1e-6);
        close(Contrast::of(&[(1.0, &same), (-1.0, &same)]).p_above_zero(), 0.5, 1e-9);
    }
}
