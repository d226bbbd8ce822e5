//! Two modes of boots: whether the boots of each kernel lie about one level or about two.
//!
//! A boot may end up in one of two states (memory laid out one way or the other, a frequency governor that did or did not
//! settle), whatever the kernel. Such boots are two sharp groups, not one blurred one: told apart they say more of the level.

use super::noise::Modes;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Boots from which modes are looked for, over the kernels that have enough of their own.
const LEAST_BOOTS: usize = 12;

/// Boots of a kernel from which it is looked at: its level is fitted too, and fits anything with fewer.
const LEAST_OF_KERNEL: usize = 6;

/// Boots that the rarer mode has at least, and their share: what is rarer is an outlier, which Student's t allows for.
const LEAST_OF_MODE: (f64, f64) = (3.0, 0.15);

/// Distance of the modes in sds within a mode: nearer ones do not show as two.
const LEAST_GAP: f64 = 2.5;

/// Log likelihood by which two modes must be better than one, beside Schwarz's penalty for two more parameters: a mixture wins
/// by chance more often than a regular test, and it is asked again and again. Measured in tests/it/modes.rs.
const MARGIN: f64 = 1.5;

/// Starts of the fit: share of boots in the upper mode. One more divides each kernel's boots in the middle between the ends.
const STARTS: [f64; 5] = [0.15, 0.3, 0.5, 0.7, 0.85];

/// Steps of each fit.
const STEPS: usize = 80;

/// Sd within a mode over that of all boots: no fit is sharper, so that equal values do not look like a proof.
const SHARPEST: f64 = 0.02;

/// Sds by which the modes may take turns less often than by chance.
const TURNS: f64 = 2.5;

/// Probability of shares so different by chance from which a mode is taken to belong to some kernels more than to others.
const UNEVEN: f64 = 0.01;

/// Logarithm of the normalising constants: normal, and Student's t with 5 and with 2 degrees of freedom.
const NORMAL: f64 = -0.918_938_533_204_672_7;
const T: [(f64, f64); 2] = [(5.0, -0.968_619_637_500_532_3), (2.0, -1.039_720_770_839_918)];

/// The boots of a kernel: (place in time, level in log units).
pub type Boots = Vec<(u32, f64)>;

/// Two modes that the boots show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundModes {
    /// Distance and share of the rarer mode.
    pub modes: Modes,
    /// Sd of a boot within its mode, log units.
    pub sd: f64,
    /// Log likelihood ratio against one mode, less Schwarz's penalty; >= the margin.
    pub evidence: f64,
    /// Boots that were looked at.
    pub boots: usize,
    /// Whether all kernels may have the same share of boots in each mode. If not, the share may be what changed, and the
    /// means must be compared.
    pub is_even: bool,
}

/// Looks for two modes, common to all kernels, about the kernel's own levels: a mixture of two normals of one sd, by
/// expectation and maximisation (Dempster, Laird and Rubin 1977) from several starts, against one normal and Student's t, by
/// Schwarz's criterion with a margin. `None` with fewer than 12 boots of kernels with at least 6, without a mode of at least
/// 3 boots and 15 %, with modes nearer than 2.5 sds, or with modes that follow each other in time, as a machine does whose
/// level moved. Deterministic; values are finite.
pub fn find_modes(kernels: &[Boots]) -> Option<FoundModes> {
    let kernels: Vec<&Boots> = kernels.iter().filter(|k| k.len() >= LEAST_OF_KERNEL).collect();
    let boots: usize = kernels.iter().map(|k| k.len()).sum();
    if boots < LEAST_BOOTS {
        return None;
    }
    let values: Vec<Vec<f64>> = kernels.iter().map(|k| k.iter().map(|b| b.1).collect()).collect();
    let (one, sd) = one_mode(&values);
    if sd <= 0.0 {
        return None;
    }
    let starts = STARTS.into_iter().map(Some).chain([None]);
    let fits = starts.map(|share| Fit::of(&values, |k| upper(k, share), SHARPEST * sd));
    let fit = fits.max_by(|a, b| a.log.total_cmp(&b.log))?;
    let evidence = fit.log - one - penalty(boots, kernels.len());
    let rarer = fit.share.min(1.0 - fit.share);
    let is_clear = evidence >= MARGIN
        && fit.gap.abs() >= LEAST_GAP * fit.sd
        && rarer >= LEAST_OF_MODE.1
        && rarer * boots as f64 >= LEAST_OF_MODE.0
        && takes_turns(&fit.in_order(&kernels));
    is_clear.then(|| {
        // The commoner mode is the kernel's level.
        let (gap, share) = if fit.share <= 0.5 { (fit.gap, fit.share) } else { (-fit.gap, 1.0 - fit.share) };
        let is_even = fit.is_even();
        FoundModes { modes: Modes { gap, share }, sd: fit.sd, evidence, boots, is_even }
    })
}

/// Schwarz's ln(n) for two more parameters, larger where few boots are left beside the kernels' levels, gap, share and sd: as
/// Hurvich and Tsai (1989) enlarge Akaike's; and ln(2) a kernel, whose level may be read as either mode's.
fn penalty(boots: usize, kernels: usize) -> f64 {
    let n = boots as f64;
    let levels = kernels as f64;
    n.ln() * n / (n - levels - 3.0) + levels * std::f64::consts::LN_2
}

/// Log likelihood of the better of a normal and of Student's t about each kernel's level, and the sd of the normal.
fn one_mode(kernels: &[Vec<f64>]) -> (f64, f64) {
    let n: usize = kernels.iter().map(Vec::len).sum();
    let mean = |k: &Vec<f64>| k.iter().sum::<f64>() / k.len() as f64;
    let squares: f64 = kernels.iter().map(|k| k.iter().map(|v| (v - mean(k)).powi(2)).sum::<f64>()).sum();
    let sd = (squares / n as f64).sqrt();
    if sd <= 0.0 {
        return (0.0, 0.0);
    }
    let normal = n as f64 * (NORMAL - 0.5 - sd.ln());
    let heavy = T.into_iter().map(|t| heavy_tailed(kernels, t, sd));
    (heavy.fold(normal, f64::max), sd)
}

/// Log likelihood of Student's t about each kernel's level, by reweighting (Lange, Little and Taylor 1989).
fn heavy_tailed(kernels: &[Vec<f64>], (nu, constant): (f64, f64), sd: f64) -> f64 {
    let n: usize = kernels.iter().map(Vec::len).sum();
    let mut levels: Vec<f64> = kernels.iter().map(|k| middle(k)).collect();
    let mut scale = sd;
    for _ in 0..STEPS {
        let mut squares = 0.0;
        for (kernel, level) in kernels.iter().zip(&mut levels) {
            let weight = |v: &f64, level: f64| (nu + 1.0) / (nu + ((v - level) / scale).powi(2));
            let total: f64 = kernel.iter().map(|v| weight(v, *level)).sum();
            *level = kernel.iter().map(|v| weight(v, *level) * v).sum::<f64>() / total;
            squares += kernel.iter().map(|v| weight(v, *level) * (v - *level).powi(2)).sum::<f64>();
        }
        scale = (squares / n as f64).sqrt().max(SHARPEST * sd);
    }
    let log = |z: f64| constant - scale.ln() - 0.5 * (nu + 1.0) * (z * z / nu).ln_1p();
    let each =
        kernels.iter().zip(&levels).map(|(k, level)| k.iter().map(|v| log((v - level) / scale)).sum::<f64>());
    each.sum()
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// A mixture of two normals of one sd about each kernel's level.
struct Fit {
    gap: f64,
    share: f64,
    sd: f64,
    log: f64,
    /// Probability of the second mode, boot by boot.
    second: Vec<Vec<f64>>,
}

impl Fit {
    /// Begins with what `upper` puts into the second mode.
    fn of(kernels: &[Vec<f64>], upper: impl Fn(&[f64]) -> Vec<f64>, sharpest: f64) -> Self {
        let second = kernels.iter().map(|k| upper(k)).collect();
        let mut fit = Self { gap: 0.0, share: 0.0, sd: 0.0, log: 0.0, second };
        let mut levels: Vec<f64> = kernels.iter().zip(&fit.second).map(|(k, r)| lower_mean(k, r)).collect();
        for _ in 0..STEPS {
            fit.maximise(kernels, &mut levels, sharpest);
            fit.expect(kernels, &levels);
        }
        fit
    }

    /// Gap, share, sd and levels from the boots' modes.
    fn maximise(&mut self, kernels: &[Vec<f64>], levels: &mut [f64], sharpest: f64) {
        let n: usize = kernels.iter().map(Vec::len).sum();
        let rows = || kernels.iter().zip(&self.second);
        let total: f64 = rows().map(|(_, r)| r.iter().sum::<f64>()).sum();
        let above = rows()
            .zip(&*levels)
            .map(|((k, r), level)| k.iter().zip(r).map(|(v, r)| r * (v - level)).sum::<f64>());
        let gap = above.sum::<f64>() / total.max(f64::MIN_POSITIVE);
        let mut squares = 0.0;
        for ((kernel, second), level) in rows().zip(levels.iter_mut()) {
            let sum: f64 = kernel.iter().zip(second).map(|(v, r)| v - r * gap).sum();
            *level = sum / kernel.len() as f64;
            let square = |v: &f64, r: &f64| (1.0 - r) * (v - *level).powi(2) + r * (v - *level - gap).powi(2);
            squares += kernel.iter().zip(second).map(|(v, r)| square(v, r)).sum::<f64>();
        }
        self.gap = gap;
        self.share = (total / n as f64).clamp(1e-6, 1.0 - 1e-6);
        self.sd = (squares / n as f64).sqrt().max(sharpest);
    }

    /// The boots' modes, and the log likelihood.
    fn expect(&mut self, kernels: &[Vec<f64>], levels: &[f64]) {
        self.log = 0.0;
        for ((kernel, second), level) in kernels.iter().zip(&mut self.second).zip(levels) {
            for (value, second) in kernel.iter().zip(second) {
                let log = |weight: f64, z: f64| weight.ln() + NORMAL - self.sd.ln() - 0.5 * z * z;
                let first = log(1.0 - self.share, (value - level) / self.sd);
                let other = log(self.share, (value - level - self.gap) / self.sd);
                let top = first.max(other);
                let both = top + ((first - top).exp() + (other - top).exp()).ln();
                *second = (other - both).exp();
                self.log += both;
            }
        }
    }

    /// Whether each boot is in the second mode, in order of time.
    fn in_order(&self, kernels: &[&Boots]) -> Vec<bool> {
        let boots = kernels.iter().zip(&self.second).flat_map(|(k, r)| k.iter().zip(r));
        let mut boots: Vec<(u32, bool)> = boots.map(|((at, _), r)| (*at, *r > 0.5)).collect();
        boots.sort_unstable();
        boots.into_iter().map(|(_, second)| second).collect()
    }

    /// Pearson's test of one share in all kernels.
    fn is_even(&self) -> bool {
        let each = self.second.iter().map(|second| {
            let n = second.len() as f64;
            let excess = second.iter().sum::<f64>() - n * self.share;
            excess * excess / (n * self.share * (1.0 - self.share))
        });
        let sum: f64 = each.sum();
        match ChiSquared::new(self.second.len() as f64 - 1.0) {
            Ok(by_chance) => by_chance.sf(sum) >= UNEVEN,
            // One kernel has nothing to differ from.
            Err(_) => true,
        }
    }
}

/// 1 for the upper `share` of the values, or for those above the middle of their range; 0 for the others. At least one of each.
fn upper(values: &[f64], share: Option<f64>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    let middle = 0.5 * (values[order[0]] + values[order[values.len() - 1]]);
    let above = values.iter().filter(|v| **v > middle).count();
    let count = share.map_or(above, |share| (share * values.len() as f64).round() as usize);
    let count = count.clamp(1, values.len() - 1);
    let mut second = vec![0.0; values.len()];
    order[..count].iter().for_each(|&at| second[at] = 1.0);
    second
}

fn lower_mean(values: &[f64], second: &[f64]) -> f64 {
    let total: f64 = second.iter().map(|r| 1.0 - r).sum();
    values.iter().zip(second).map(|(v, r)| (1.0 - r) * v).sum::<f64>() / total
}

/// Whether two modes take turns about as often as by chance (Wald and Wolfowitz 1940).
fn takes_turns(second: &[bool]) -> bool {
    let n = second.len() as f64;
    let count = second.iter().filter(|s| **s).count() as f64;
    let changes = second.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
    let expected = 2.0 * count * (n - count) / n;
    let sd = (expected * (expected - 1.0).max(0.0) / (n - 1.0)).sqrt();
    changes >= expected - TURNS * sd
}

impl Modes {
    /// Probability that a boot whose level is `above` the kernel's is in the second mode; `sd` of a boot within a mode.
    pub fn probability(self, above: f64, sd: f64) -> f64 {
        let odds = (above * self.gap - 0.5 * self.gap * self.gap) / (sd * sd);
        1.0 / (1.0 + (1.0 - self.share) / self.share * (-odds.clamp(-700.0, 700.0)).exp())
    }

    /// Variance of a normal that, added to a boot's own, makes it tell as much of the level as the mixture does: the inverse of
    /// the Fisher information of its location, by the midpoint rule. Between 0 and that of the mode, `gap^2 share (1 - share)`.
    pub fn blur(self, variance: f64) -> f64 {
        const POINTS: usize = 120;
        let gap = self.gap.abs() / variance.sqrt();
        let bell = |z: f64| (NORMAL - 0.5 * z * z).exp();
        // Outside the two bells the density vanishes; between bells this far apart too.
        if gap > 12.0 {
            return 0.0;
        }
        let step = (gap + 10.0) / POINTS as f64;
        let information: f64 = (0..POINTS)
            .map(|i| {
                let z = -5.0 + (i as f64 + 0.5) * step;
                let (a, b) = ((1.0 - self.share) * bell(z), self.share * bell(z - gap));
                (a * z + b * (z - gap)).powi(2) / (a + b)
            })
            .sum();
        let most = self.gap * self.gap * self.share * (1.0 - self.share);
        (variance * (1.0 / (information * step) - 1.0)).clamp(0.0, most)
    }
}
