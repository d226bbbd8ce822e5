//! Two modes of boots: found where they are, and nowhere else.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal, StudentT};
use sched_bisect::stats::{FoundModes, Modes, find_modes};

/// So many kernels of so many boots each, measured by turns; `draw` gives a boot's deviation from its kernel's level.
fn kernels(
    seed: u64,
    (count, boots): (usize, usize),
    mut draw: impl FnMut(&mut StdRng, usize) -> f64,
) -> Vec<Vec<(u32, f64)>> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut kernels = vec![Vec::new(); count];
    for at in 0..count * boots {
        let kernel = at % count;
        let value = 7.0 * kernel as f64 + draw(&mut rng, at);
        kernels[kernel].push((at as u32, value));
    }
    kernels
}

fn normal(rng: &mut StdRng) -> f64 {
    StandardNormal.sample(rng)
}

fn modal(rng: &mut StdRng, share: f64, gap: f64) -> f64 {
    normal(rng) + if rng.random_bool(share) { gap } else { 0.0 }
}

/// How often modes are found, of so many tries.
fn found(tries: u64, shape: (usize, usize), draw: impl Fn(&mut StdRng, usize) -> f64) -> Vec<FoundModes> {
    (0..tries).filter_map(|seed| find_modes(&kernels(seed, shape, &draw))).collect()
}

#[test]
fn modes_far_apart_show_with_few_boots_and_near_ones_with_many() {
    for (shape, gap, least) in [((2, 10), 10.0, 90), ((2, 10), 6.0, 60), ((2, 40), 3.5, 60)] {
        let all = found(100, shape, |rng, _| modal(rng, 0.3, gap));
        assert!(all.len() >= least, "{shape:?} {gap}: {}", all.len());
        let mean = |of: fn(&FoundModes) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        let (at, share, sd) = (mean(|f| f.modes.gap.abs()), mean(|f| f.modes.share), mean(|f| f.sd));
        assert!(
            (at / gap - 1.0).abs() < 0.15 && (share - 0.3).abs() < 0.05 && (sd - 1.0).abs() < 0.15,
            "{at} {share} {sd}"
        );
    }
}

#[test]
fn one_mode_is_not_taken_for_two() {
    let heavy = StudentT::new(3.0).expect("three degrees of freedom");
    let outlier = |rng: &mut StdRng| normal(rng) + if rng.random_bool(0.05) { 5.0 } else { 0.0 };
    for shape in [(2, 6), (2, 10), (2, 30), (2, 100), (6, 6), (20, 6)] {
        let of = |draw: &dyn Fn(&mut StdRng, usize) -> f64| found(200, shape, draw).len();
        let counts = (of(&|rng, _| normal(rng)), of(&|rng, _| heavy.sample(rng)), of(&|rng, _| outlier(rng)));
        assert!(counts.0 <= 1 && counts.1 <= 2 && counts.2 <= 3, "{shape:?}: {counts:?}");
    }
}

#[test]
fn a_level_that_moved_is_no_mode() {
    // The second half of the boots is higher: that is the machine, and another guard's.
    assert_eq!(found(100, (2, 10), |rng, at| normal(rng) + if at >= 10 { 10.0 } else { 0.0 }), []);
}

#[test]
fn a_mode_that_some_kernels_have_more_than_others_is_told() {
    let all = found(50, (2, 20), |rng, at| modal(rng, if at % 2 == 0 { 0.1 } else { 0.7 }, 8.0));
    let uneven = all.iter().filter(|f| !f.is_even).count();
    assert!(all.len() >= 38 && uneven >= 32, "{} {uneven}", all.len());
    let even = found(50, (2, 20), |rng, _| modal(rng, 0.4, 8.0));
    assert!(even.iter().filter(|f| f.is_even).count() >= 45);
}

#[test]
fn the_commoner_mode_is_the_level() {
    let below = found(1, (2, 20), |rng, _| modal(rng, 0.8, 10.0));
    assert!(below.iter().all(|f| f.modes.gap < 0.0 && f.modes.share < 0.5) && below.len() == 1, "{below:?}");
}

#[test]
fn few_or_equal_boots_have_no_modes() {
    assert_eq!(find_modes(&[]), None);
    assert_eq!(find_modes(&kernels(1, (2, 5), |rng, _| modal(rng, 0.5, 50.0))), None);
    assert_eq!(find_modes(&kernels(1, (6, 3), |rng, _| modal(rng, 0.5, 50.0))), None);
    assert_eq!(find_modes(&kernels(1, (2, 20), |_, _| 1.0)), None);
    // Values of a coarse clock: two ticks, without a spread in either.
    let ticks = found(20, (2, 20), |rng, _| f64::from(u8::from(rng.random_bool(0.5))));
    assert!(ticks.iter().all(|f| (f.modes.gap.abs() - 1.0).abs() < 0.01 && f.sd > 0.0));
}

#[test]
fn what_modes_blur_lies_between_nothing_and_their_own_variance() {
    let modes = |gap| Modes { gap, share: 0.3 };
    assert!(modes(1e-3).blur(1.0) < 1e-5 && modes(40.0).blur(1.0) == 0.0);
    for gap in [1.0, 2.0, 3.0, 5.0] {
        let (blur, most) = (modes(gap).blur(1.0), gap * gap * 0.21);
        assert!(blur > 0.0 && blur < most, "{gap}: {blur} of {most}");
        assert!((modes(-gap).blur(1.0) - blur).abs() < 1e-9);
        assert!((modes(3.0 * gap).blur(9.0) - 9.0 * blur).abs() < 1e-6);
    }
    assert!((modes(4.0).probability(2.0, 1.0) - 0.3).abs() < 1e-12);
    assert!(modes(4.0).probability(4.0, 1.0) > 0.99 && modes(-4.0).probability(4.0, 1.0) < 1e-6);
}
