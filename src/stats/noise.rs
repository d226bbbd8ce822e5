//! The likelihood of a boot's runs over a grid of levels and noise hypotheses.
//!
//! Model of one boot of one kernel (log units of the metric): `y_k = level + u + b + e_k`, with run noise `e ~ t_5` of
//! scale `s`, boot effect `b ~ N(0, (rho s)^2)` and build effect `u ~ N(0, (tau s)^2)`, the last shared by all boots of
//! the kernel. Levels of variance as in Kalibera and Jones, "Rigorous benchmarking in reasonable time" (2013); Student's t
//! so that an outlier is an outlier (Lange, Little and Taylor 1989).

/// Degrees of freedom of the run noise. The density below uses that `(NU + 1) / 2` is 3.
const NU: f64 = 5.0;

/// Squared standardised residual beyond which a run says nothing more (632 scales): keeps products finite.
const Z2_CAP: f64 = 4e5;

/// Boot sd over run scale beyond which the boot effect is integrated out about the peak of the boot's runs (Laplace's
/// approximation): the nodes of a rule over the boot effect lie too far apart there, and how runs scatter matters little.
const WIDE_BOOTS: f64 = 2.0;

/// The same for several runs, which know their boot better: boot variance over the variance of their mean, in squared scales.
/// From here on the peak is nearer to the integral than the nodes, with each number of runs.
const WIDE_FOR_RUNS: f64 = 4.0;

/// Steps of the search for that peak.
const PEAK_STEPS: usize = 30;

/// Runs whose densities can be multiplied without leaving the range of a double.
const FAST_RUNS: usize = 16;

/// Variance of the normal that tells as much of a level as one such run, in squared scales: the inverse of the Fisher
/// information, `(NU + 3) / (NU + 1)`.
const RUN_INFORMATION: f64 = (NU + 3.0) / (NU + 1.0);

/// Logarithm of the ratio of the densities of the standard normal and of Student's t with 5 degrees of freedom at zero: the
/// constants that the likelihoods below leave out.
const NORMAL_OVER_T: f64 = 0.049_681_1;

/// Nodes and weights of Gauss and Hermite's rule of 7 points for a standard normal (Abramowitz and Stegun, 25.4.46).
const HERMITE: [(f64, f64); 7] = [
    (-3.750_439_717_725_742, 5.482_688_559_722_184e-4),
    (-2.366_759_410_734_541, 3.075_712_396_758_645e-2),
    (-1.154_405_394_739_968_2, 0.240_123_178_605_012_53),
    (0.0, 0.457_142_857_142_857_14),
    (1.154_405_394_739_968_2, 0.240_123_178_605_012_53),
    (2.366_759_410_734_541, 3.075_712_396_758_645e-2),
    (3.750_439_717_725_742, 5.482_688_559_722_184e-4),
];

/// One hypothesis on the noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Scale of the run noise, log units; > 0.
    pub s: f64,
    /// Boot sd over `s`; >= 0.
    pub rho: f64,
    /// Build sd over `s`; >= 0.
    pub tau: f64,
    /// How runs scatter.
    pub tail: Tail,
}

/// How runs scatter about their boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Student's t with 5 degrees of freedom: outliers are expected.
    Heavy,
    /// Normal.
    Normal,
}

impl Tail {
    /// Variance of the normal that tells as much of a level as one run, in squared scales.
    pub fn information(self) -> f64 {
        match self {
            Self::Heavy => RUN_INFORMATION,
            Self::Normal => 1.0,
        }
    }

    /// Standard deviation of a run, in scales.
    pub fn sd(self) -> f64 {
        match self {
            Self::Heavy => (NU / (NU - 2.0)).sqrt(),
            Self::Normal => 1.0,
        }
    }
}

impl Noise {
    /// Whether the boot effect is wide beside what so many runs leave open of it.
    fn is_wide(&self, runs: usize) -> bool {
        self.rho > WIDE_BOOTS || (runs > 1 && self.rho * self.rho * runs as f64 >= WIDE_FOR_RUNS)
    }

    /// Scale of one boot of one run, build effect apart.
    pub fn total(&self) -> f64 {
        self.s * self.rho.hypot(1.0)
    }
}

/// Two modes of a boot: with probability `share` it lies `gap` above its kernel's level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modes {
    /// Distance of the second mode, log units; either sign.
    pub gap: f64,
    /// Share of boots in it, in (0, 1).
    pub share: f64,
}

/// Levels and noise hypotheses over which everything is summed.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Levels, log units, evenly spaced; at least two.
    pub levels: Vec<f64>,
    /// Distance of two levels; > 0.
    pub step: f64,
    /// Noise hypotheses.
    pub noise: Vec<Noise>,
    /// Their prior, as logarithms that sum to one in probability.
    pub log_prior: Vec<f64>,
    /// Two modes of boots, when the data show them.
    pub modes: Option<Modes>,
}

/// `exp` sums without overflow: `ln(sum(exp(x)))`; `-inf` for nothing.
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return max;
    }
    max + values.iter().map(|v| (v - max).exp()).sum::<f64>().ln()
}

impl Grid {
    /// `count` levels from `low` to `high` under these hypotheses, weighted by `weight` (not normalised).
    pub fn new(
        (low, high): (f64, f64),
        count: usize,
        noise: Vec<Noise>,
        weight: impl Fn(&Noise) -> f64,
    ) -> Self {
        let step = (high - low) / (count - 1) as f64;
        let levels = (0..count).map(|i| low + step * i as f64).collect();
        let total: f64 = noise.iter().map(&weight).sum();
        let log_prior = noise.iter().map(|n| (weight(n) / total).ln()).collect();
        Self { levels, step, noise, log_prior, modes: None }
    }

    /// Entries of a likelihood: hypothesis by hypothesis, level by level.
    pub fn size(&self) -> usize {
        self.levels.len() * self.noise.len()
    }

    /// Adds the log likelihood of a boot's runs (build effect apart) to `out`, which has [`Grid::size`] entries.
    /// Constants that no hypothesis changes are left out. `runs` are finite.
    pub fn add_boot(&self, runs: &[f64], out: &mut [f64]) {
        if runs.is_empty() {
            return;
        }
        let width = self.levels.len();
        let mut density = vec![0.0; width];
        let mut product = vec![0.0; width];
        for (noise, row) in self.noise.iter().zip(out.chunks_exact_mut(width)) {
            if noise.tail == Tail::Normal {
                self.add_normal(runs, noise, row);
                continue;
            }
            let scale = runs.len() as f64 * noise.s.ln();
            if noise.is_wide(runs.len()) {
                self.add_wide(runs, noise, row);
                continue;
            }
            if runs.len() > FAST_RUNS {
                self.add_many(runs, noise, row);
                continue;
            }
            density.fill(0.0);
            match self.modes {
                None => self.mix(runs, noise, (0.0, 1.0), &mut density, &mut product),
                Some(Modes { gap, share }) => {
                    self.mix(runs, noise, (0.0, 1.0 - share), &mut density, &mut product);
                    self.mix(runs, noise, (gap, share), &mut density, &mut product);
                }
            }
            for (value, density) in row.iter_mut().zip(&density) {
                *value += density.ln() - scale;
            }
        }
    }

    /// Normal runs with a normal boot effect: in closed form, from the runs' mean and their spread about it.
    fn add_normal(&self, runs: &[f64], noise: &Noise, row: &mut [f64]) {
        let r = runs.len() as f64;
        let mean = runs.iter().sum::<f64>() / r;
        let spread: f64 = runs.iter().map(|run| (run - mean).powi(2)).sum();
        let joint = 1.0 + r * noise.rho * noise.rho;
        let precision = r / (noise.s * noise.s * joint);
        let constant =
            r * NORMAL_OVER_T - r * noise.s.ln() - 0.5 * joint.ln() - 0.5 * spread / (noise.s * noise.s);
        self.add_bell((mean, precision, constant), row);
    }

    /// Heavy-tailed runs of a boot whose effect is wide beside them.
    fn add_wide(&self, runs: &[f64], noise: &Noise, row: &mut [f64]) {
        let (mean, log, information) = peak(runs, noise.s);
        let boot = (noise.rho * noise.s).powi(2);
        let constant = log - 0.5 * (1.0 + boot * information).ln();
        self.add_bell((mean, 1.0 / (1.0 / information + boot), constant), row);
    }

    /// Adds a normal likelihood: where it peaks, how sharply, and how high.
    fn add_bell(&self, (mean, precision, constant): (f64, f64, f64), row: &mut [f64]) {
        let at = |level: f64, shift: f64| -0.5 * precision * (mean - shift - level).powi(2);
        for (value, level) in row.iter_mut().zip(&self.levels) {
            *value += constant
                + match self.modes {
                    None => at(*level, 0.0),
                    Some(Modes { gap, share }) => {
                        log_sum_exp(&[(1.0 - share).ln() + at(*level, 0.0), share.ln() + at(*level, gap)])
                    }
                };
        }
    }

    /// Adds `weight` times the density of the runs, moved down by `shift`, at every level.
    fn mix(
        &self,
        runs: &[f64],
        noise: &Noise,
        (shift, weight): (f64, f64),
        density: &mut [f64],
        product: &mut [f64],
    ) {
        let one = [(0.0, 1.0)];
        let nodes: &[(f64, f64)] = if noise.rho == 0.0 { &one } else { &HERMITE };
        let inverse = 1.0 / noise.s;
        for (node, share) in nodes {
            product.fill(1.0);
            for run in runs {
                let at = (run - shift) * inverse - noise.rho * node;
                for (product, level) in product.iter_mut().zip(&self.levels) {
                    let z = at - level * inverse;
                    *product *= 1.0 + (z * z).min(Z2_CAP) / NU;
                }
            }
            let weight = weight * share;
            for (density, q) in density.iter_mut().zip(product.iter()) {
                *density += weight / (q * q * q);
            }
        }
    }

    /// Many runs of one boot: a logarithm of each product of as many as a double has room for.
    fn add_many(&self, runs: &[f64], noise: &Noise, row: &mut [f64]) {
        let scale = runs.len() as f64 * noise.s.ln();
        let one = [(0.0, 1.0)];
        let nodes: &[(f64, f64)] = if noise.rho == 0.0 { &one } else { &HERMITE };
        let of_node = |level: f64, (node, share): &(f64, f64)| {
            let factor = |run: &f64| {
                let z = (run - level) / noise.s - noise.rho * node;
                1.0 + (z * z).min(Z2_CAP) / NU
            };
            let log = |some: &[f64]| some.iter().map(factor).product::<f64>().ln();
            share.ln() - 3.0 * runs.chunks(FAST_RUNS).map(log).sum::<f64>()
        };
        let at = |level: f64| {
            let logs: [f64; HERMITE.len()] =
                std::array::from_fn(|i| nodes.get(i).map_or(f64::NEG_INFINITY, |node| of_node(level, node)));
            log_sum_exp(&logs)
        };
        for (value, level) in row.iter_mut().zip(&self.levels) {
            let mixed = match self.modes {
                None => at(*level),
                Some(Modes { gap, share }) => {
                    log_sum_exp(&[(1.0 - share).ln() + at(*level), share.ln() + at(level + gap)])
                }
            };
            *value += mixed - scale;
        }
    }

    /// The likelihood of a kernel's level from that of its boots: the build effect integrated out, hypothesis by
    /// hypothesis. Both slices have [`Grid::size`] entries.
    pub fn with_build_effect(&self, boots: &[f64], out: &mut [f64]) {
        let width = self.levels.len();
        for ((noise, boots), out) in
            self.noise.iter().zip(boots.chunks_exact(width)).zip(out.chunks_exact_mut(width))
        {
            if noise.tau == 0.0 {
                out.copy_from_slice(boots);
            } else {
                smooth(boots, out, noise.tau * noise.s / self.step);
            }
        }
    }
}

/// Where runs of Student's t with 5 degrees of freedom and scale `s` most likely have their centre (by reweighting: Lange,
/// Little and Taylor 1989), their log likelihood there, and the information about it.
fn peak(runs: &[f64], s: f64) -> (f64, f64, f64) {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut centre = sorted[sorted.len() / 2];
    let square = |run: &f64, centre: f64| ((run - centre) / s).powi(2).min(Z2_CAP);
    for _ in 0..PEAK_STEPS {
        let weighted = runs.iter().map(|run| (1.0 / (NU + square(run, centre)), run));
        let (total, sum) = weighted.fold((0.0, 0.0), |(t, v), (w, run)| (t + w, v + w * run));
        centre = sum / total;
    }
    let log: f64 = runs.iter().map(|run| -3.0 * (1.0 + square(run, centre) / NU).ln() - s.ln()).sum();
    let curvature = |z2: f64| (NU + 1.0) * (NU - z2) / (NU + z2).powi(2);
    let seen: f64 = runs.iter().map(|run| curvature(square(run, centre))).sum();
    // Between two groups of runs the curvature vanishes; what so many runs tell on average bounds it.
    let usual = runs.len() as f64 / RUN_INFORMATION;
    (centre, log, seen.clamp(0.25 * usual, 1.6 * usual) / (s * s))
}

/// Convolves a likelihood, given and returned as logarithms, with a normal of `sd` grid steps. Beyond the grid it is
/// taken to vanish.
fn smooth(log: &[f64], out: &mut [f64], sd: f64) {
    let reach = (3.5 * sd).ceil() as usize;
    let kernel: Vec<f64> = (0..=reach).map(|i| (-0.5 * (i as f64 / sd).powi(2)).exp()).collect();
    let total = 2.0 * kernel.iter().sum::<f64>() - kernel[0];
    let max = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let plain: Vec<f64> = log.iter().map(|v| (v - max).exp()).collect();
    for (at, out) in out.iter_mut().enumerate() {
        let from = at.saturating_sub(reach);
        let to = (at + reach + 1).min(plain.len());
        let sum: f64 = (from..to).map(|i| plain[i] * kernel[i.abs_diff(at)]).sum();
        // The smallest positive number keeps a level that is out of reach finite.
        *out = max + (sum / total).max(f64::MIN_POSITIVE).ln();
    }
}
