//! Random numbers as pure functions of what they stand for, so that every strategy sees the same machine.

/// What a random number stands for; numbers of different kinds are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Draw {
    /// A run's noise.
    Run = 1,
    /// A boot's luck.
    Boot,
    /// A boot's mode.
    Mode,
    /// Whether a run is an outlier.
    Outlier,
    /// The next step of a wandering drift.
    Drift,
    /// A build's luck.
    Build,
    /// Whether a commit builds.
    Builds,
    /// Where a culprit is.
    Culprit,
    /// In which order two culprits come.
    Order,
    /// How far off the stated size of the change is.
    Claim,
}

/// A number in (0, 1) for a key: uniform, the same at every call (SplitMix64's finaliser, Steele et al. 2014, over the
/// parts of the key).
pub(super) fn uniform(seed: u64, draw: Draw, key: [u64; 3]) -> f64 {
    let mut hash = mix(0x243F_6A88_85A3_08D3 ^ seed);
    for part in [draw as u64].into_iter().chain(key) {
        hash = mix(hash ^ part);
    }
    ((hash >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// A standard normal number for a key (Box & Muller 1958).
pub(super) fn normal(seed: u64, draw: Draw, key: [u64; 3]) -> f64 {
    let radius = (-2.0 * uniform(seed, draw, key).ln()).sqrt();
    let turn = uniform(!seed, draw, key);
    radius * (std::f64::consts::TAU * turn).cos()
}

fn mix(value: u64) -> u64 {
    let mut x = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_mean_0_variance_1_and_tails() {
        let values: Vec<f64> = (0..40_000).map(|at| normal(7, Draw::Run, [at, 0, 0])).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / n;
        let far = values.iter().filter(|v| v.abs() > 2.0).count() as f64 / n;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
        assert!((far - 0.0455).abs() < 0.005, "{far}");
    }

    #[test]
    fn every_part_of_the_key_counts() {
        let base = uniform(1, Draw::Run, [1, 2, 3]);
        let others = [
            uniform(2, Draw::Run, [1, 2, 3]),
            uniform(1, Draw::Boot, [1, 2, 3]),
            uniform(1, Draw::Run, [0, 2, 3]),
            uniform(1, Draw::Run, [1, 3, 2]),
        ];
        assert!(others.iter().all(|&other| other != base));
        assert_eq!(uniform(1, Draw::Run, [1, 2, 3]), base);
    }
}
