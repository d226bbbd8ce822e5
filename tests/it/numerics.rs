//! The numerics, held against definitions: integrals done by brute force, closed forms, published distributions.

use rand::SeedableRng;
use rand::rngs::StdRng;
use sched_bisect::stats::{
    Component, Contrast, Drift, Grid, Group, Modes, Noise, Share, Tail, drift, log_sum_exp,
    mutual_information, share, t_tail,
};
use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};

use crate::common::sim::normal;

#[track_caller]
fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b} within {tolerance}");
}

/// Simpson's rule.
fn integral(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    const POINTS: usize = 40_000;
    let step = (high - low) / POINTS as f64;
    let weight = |i: usize| match i {
        0 | POINTS => 1.0,
        _ if i % 2 == 1 => 4.0,
        _ => 2.0,
    };
    (0..=POINTS).map(|i| weight(i) * f(low + step * i as f64)).sum::<f64>() * step / 3.0
}

// ---- information ----

fn component(weight: f64, mean: f64, sd: f64) -> Component {
    Component { weight, mean, variance: sd * sd }
}

fn pair(separation: f64) -> f64 {
    mutual_information(&[component(0.5, 0.0, 1.0), component(0.5, separation, 1.0)])
}

/// By the definition: the mean over both of `log2(p(y | component) / p(y))`.
fn information_by_definition(mixture: &[Component]) -> f64 {
    let total: f64 = mixture.iter().map(|c| c.weight).sum();
    let density = |c: &Component, y: f64| {
        (-0.5 * (y - c.mean).powi(2) / c.variance).exp() / (std::f64::consts::TAU * c.variance).sqrt()
    };
    let reach = mixture.iter().map(|c| c.mean.abs() + 12.0 * c.variance.sqrt()).fold(0.0, f64::max);
    let at = |y: f64| {
        let all: f64 = mixture.iter().map(|c| c.weight / total * density(c, y)).sum();
        let part = |c: &Component| {
            let own = density(c, y);
            if own > 0.0 { c.weight / total * own * (own / all).log2() } else { 0.0 }
        };
        mixture.iter().map(part).sum::<f64>()
    };
    integral(-reach, reach, at)
}

#[test]
fn two_far_answers_of_equal_weight_are_one_bit() {
    close(pair(20.0), 1.0, 1e-3);
    // Of unequal weight: their entropy, the weights' scale apart.
    let entropy = -(0.1 * 0.1_f64.log2() + 0.9 * 0.9_f64.log2());
    close(mutual_information(&[component(1.0, 0.0, 1.0), component(9.0, 15.0, 1.0)]), entropy, 1e-3);
    // Four answers: two bits.
    let four: Vec<Component> = (0..4).map(|i| component(1.0, 10.0 * f64::from(i), 1.0)).collect();
    close(mutual_information(&four), 2.0, 1e-3);
}

#[test]
fn equal_answers_and_a_single_one_tell_nothing() {
    close(pair(0.0), 0.0, 1e-3);
    let equal: Vec<Component> = (1..6).map(|i| component(f64::from(i), 0.3, 0.02)).collect();
    close(mutual_information(&equal), 0.0, 1e-3);
    assert_eq!(mutual_information(&[component(0.4, 1.0, 2.0)]), 0.0);
    assert_eq!(mutual_information(&[component(0.4, 1.0, 2.0), component(0.0, 9.0, 2.0)]), 0.0);
    assert_eq!(mutual_information(&[]), 0.0);
}

#[test]
fn the_farther_apart_two_answers_are_the_more_is_told() {
    let told: Vec<f64> = (0..=80).map(|i| pair(f64::from(i) * 0.1)).collect();
    assert!(told.windows(2).all(|w| w[1] > w[0]), "{told:?}");
    assert!(told.iter().all(|bits| (0.0..=1.0).contains(bits)), "{told:?}");
}

#[test]
fn information_is_that_of_the_definition() {
    for separation in [0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0] {
        for (weight, sd) in [(0.5, 1.0), (0.05, 1.0), (0.3, 1.6), (0.7, 0.6)] {
            let mixture = [component(1.0 - weight, 0.0, 1.0), component(weight, separation, sd)];
            close(mutual_information(&mixture), information_by_definition(&mixture), 2e-4);
        }
    }
    let several = [component(0.2, -0.02, 0.01), component(0.5, 0.0, 0.012), component(0.3, 0.05, 0.02)];
    close(mutual_information(&several), information_by_definition(&several), 2e-4);
}

#[test]
fn information_does_not_depend_on_unit_or_origin() {
    let at = |unit: f64, origin: f64| {
        let of = |w: f64, mean: f64, sd: f64| component(w, origin + unit * mean, unit * sd);
        mutual_information(&[of(0.3, 0.0, 1.0), of(0.7, 1.7, 1.3)])
    };
    // Beyond 4.5 sds nothing is summed: 7e-6 of the mass, times the logarithm of the unit.
    close(at(0.003, 4.6), at(1.0, 0.0), 1e-4);
}

// ---- drift ----

/// Runs of a quiet machine (sd 1) under this drift, one a place.
fn rows(seed: u64, path: &[f64]) -> Vec<(u32, f64, f64)> {
    let mut rng = StdRng::seed_from_u64(seed);
    path.iter().zip(0..).map(|(drift, place)| (place, drift + normal(&mut rng), 0.0)).collect()
}

fn root_mean_square(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), v| (sum + v * v, n + 1.0));
    (sum / n).sqrt()
}

/// Sd of what the found drift leaves of the true one, both about their means.
fn left(found: &Drift, path: &[f64]) -> f64 {
    let mean = path.iter().sum::<f64>() / path.len() as f64;
    root_mean_square(found.path.iter().zip(path).map(|(a, b)| a - (b - mean)))
}

#[test]
fn a_linear_drift_of_two_hundredths_a_run_is_found_and_followed() {
    let path: Vec<f64> = (0..200).map(|at| 0.02 * f64::from(at)).collect();
    for seed in 0..50 {
        let found = drift(&rows(seed, &path), 1.0, path.len());
        assert!(found.step > 0.0 && found.evidence > 2.0, "{seed}: {found:?}");
        // Of a drift with sd 1.15 little is left.
        assert!(left(&found, &path) < 0.5, "{seed}: {}", left(&found, &path));
        close(found.path.iter().sum::<f64>(), 0.0, 1e-9);
    }
}

#[test]
fn components_far_apart_are_told_apart_entirely() {
    for separation in [50.0, 120.0, 1e3, 1e7] {
        close(pair(separation), 1.0, 1e-3);
    }
    let four: Vec<Component> = [0.0, 300.0, 1e4, 2e4].map(|mean| component(1.0, mean, 1.0)).to_vec();
    close(mutual_information(&four), 2.0, 1e-3);
    // A sharp component inside a wide one, of which few points fall into the sharp one.
    let mixture = [component(0.5, 3.0, 1.0), component(0.5, 0.0, 100.0)];
    close(mutual_information(&mixture), information_by_definition(&mixture), 0.1);
}

#[test]
fn a_drift_of_many_sds_is_followed_to_its_end() {
    let path: Vec<f64> = (0..400).map(|at| 0.05 * f64::from(at)).collect();
    for seed in 0..20 {
        let mut rows = rows(seed, &path);
        // Outliers on the way bend it little.
        rows.iter_mut().step_by(40).for_each(|row| row.1 += 30.0);
        let found = drift(&rows, 1.0, path.len());
        assert!(left(&found, &path) < 1.0, "{seed}: {}", left(&found, &path));
    }
}

#[test]
fn a_random_walk_is_found_and_followed() {
    let mut found = 0;
    for seed in 0..50 {
        let mut rng = StdRng::seed_from_u64(1000 + seed);
        let mut level = 0.0;
        let path: Vec<f64> = (0..200)
            .map(|_| {
                level += 0.15 * normal(&mut rng);
                level
            })
            .collect();
        let mean = path.iter().sum::<f64>() / path.len() as f64;
        let all = root_mean_square(path.iter().map(|v| v - mean));
        let told = drift(&rows(seed, &path), 1.0, path.len());
        if told.step > 0.0 {
            found += 1;
            assert!(left(&told, &path) < 0.85 * all, "{seed}: {} of {all}", left(&told, &path));
        }
    }
    assert!(found >= 48, "{found} of 50");
}

#[test]
fn a_steady_machine_has_no_drift() {
    let falsely = |length: usize, spread: f64| {
        let of = |seed: &u64| {
            let mut rows = rows(*seed, &vec![0.0; length]);
            rows.iter_mut().for_each(|row| row.1 *= spread);
            let found = drift(&rows, spread * spread, length);
            assert!(found.step > 0.0 || found.path == vec![0.0; length]);
            found.step > 0.0
        };
        (0..200).filter(of).count()
    };
    for length in [20, 60, 200] {
        let found = falsely(length, 0.01);
        assert!(found <= 4, "{found} of 200 with {length} runs");
    }
}

#[test]
fn outliers_and_kernels_of_unknown_side_are_no_drift() {
    let mut steady = rows(3, &[0.0; 100]);
    steady[50].1 = 1e4;
    steady[51].1 = -1e6;
    assert_eq!(drift(&steady, 1.0, 100).step, 0.0);
    // A kernel that may lie four sds higher, measured at the end: its residuals speak of it, not of the machine.
    let mut late = rows(4, &[0.0; 100]);
    late[80..].iter_mut().for_each(|row| row.1 += 2.5);
    assert!(drift(&late, 1.0, 100).step > 0.0);
    late[80..].iter_mut().for_each(|row| row.2 = 50.0);
    assert_eq!(drift(&late, 1.0, 100).step, 0.0);
}

#[test]
fn a_drift_is_known_at_places_without_runs_and_where_there_are_none() {
    let path: Vec<f64> = (0..300).map(|at| 0.02 * f64::from(at)).collect();
    let some: Vec<(u32, f64, f64)> = rows(5, &path).into_iter().filter(|row| row.0 % 3 == 0).collect();
    let found = drift(&some, 1.0, 300);
    assert!(found.step > 0.0 && found.path.len() == 300);
    assert!(left(&found, &path) < 0.8, "{}", left(&found, &path));
    assert_eq!(drift(&[], 1.0, 0), Drift { step: 0.0, evidence: 0.0, path: Vec::new() });
    assert_eq!(drift(&[], 1.0, 2), Drift { step: 0.0, evidence: 0.0, path: vec![0.0; 2] });
}

// ---- the likelihood of a boot ----

fn grid(noise: Noise) -> Grid {
    Grid::new((-0.1, 0.15), 26, vec![noise], |_| 1.0)
}

/// Log likelihood of these runs at each level, relative to as many runs at their own center.
fn of_boot(grid: &Grid, runs: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; grid.size()];
    grid.add_boot(runs, &mut out);
    out
}

/// The same by the definition: the boot effect integrated out.
fn by_definition(noise: &Noise, runs: &[f64], level: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, 5.0).expect("valid");
    let n = Normal::new(0.0, 1.0).expect("valid");
    let run = |z: f64| match noise.tail {
        Tail::Heavy => t.pdf(z),
        Tail::Normal => n.pdf(z),
    };
    // Constants that no hypothesis changes are left out: Student's t at its center.
    let each = |b: f64| {
        runs.iter().map(|y| run((y - level - b) / noise.s) / (noise.s * t.pdf(0.0))).product::<f64>()
    };
    let sd = noise.rho * noise.s;
    if sd == 0.0 {
        return each(0.0).ln();
    }
    integral(-9.0 * sd, 9.0 * sd, |b| each(b) * n.pdf(b / sd) / sd).ln()
}

#[test]
fn a_boots_likelihood_is_that_of_the_definition() {
    let runs = [0.011, 0.032, -0.004];
    for tail in [Tail::Heavy, Tail::Normal] {
        // The rule of seven points resolves a boot effect of up to one run sd and few runs; the constants have six digits.
        for (rho, within) in [(0.0, 2e-5), (0.5, 2e-3), (1.0, 0.1)] {
            let noise = Noise { s: 0.02, rho, tau: 0.0, tail };
            let grid = grid(noise);
            let found = of_boot(&grid, &runs);
            let top = found.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for (value, level) in found.iter().zip(&grid.levels).filter(|(v, _)| **v > top - 8.0) {
                let within = if tail == Tail::Normal { 2e-5 } else { within };
                close(*value, by_definition(&noise, &runs, *level), within);
            }
        }
    }
}

#[test]
fn a_boot_of_many_runs_and_one_of_few_are_weighed_alike() {
    // Beyond 16 runs another way of computing is taken; a run far out says next to nothing either way.
    let mut rng = StdRng::seed_from_u64(11);
    for count in [16, 17, 40] {
        let runs: Vec<f64> = (0..count).map(|_| 0.03 + 0.02 * normal(&mut rng)).collect();
        for tail in [Tail::Heavy, Tail::Normal] {
            let noise = Noise { s: 0.02, rho: 0.0, tau: 0.0, tail };
            let grid = grid(noise);
            for (value, level) in of_boot(&grid, &runs).iter().zip(&grid.levels) {
                let expected: f64 = runs.iter().map(|run| by_definition(&noise, &[*run], *level)).sum();
                close(*value, expected, 5e-6 * count as f64);
            }
        }
    }
}

#[test]
fn a_boot_effect_is_integrated_out_for_any_number_of_runs() {
    // On average a fifth of the natural logarithm's unit, at worst one, over all levels that are not out of the question.
    let mut rng = StdRng::seed_from_u64(5);
    for (rho, count) in [0.5, 1.0, 2.0].into_iter().flat_map(|rho| [1, 2, 4, 8, 16, 30].map(|n| (rho, n))) {
        let noise = Noise { s: 0.02, rho, tau: 0.0, tail: Tail::Heavy };
        let grid = grid(noise);
        let mut errors = Vec::new();
        for _ in 0..10 {
            let boot = 0.7 * rho * noise.s * normal(&mut rng);
            let runs: Vec<f64> = (0..count).map(|_| boot + noise.s * normal(&mut rng)).collect();
            let found = of_boot(&grid, &runs);
            let top = found.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let likely = found.iter().zip(&grid.levels).filter(|(value, _)| **value > top - 8.0);
            errors.extend(likely.map(|(value, level)| (value - by_definition(&noise, &runs, *level)).abs()));
        }
        let worst = errors.iter().copied().fold(0.0, f64::max);
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        assert!(worst < 1.0 && mean < 0.2, "rho {rho}, {count} runs: {worst} at worst, {mean} on average");
    }
}

#[test]
fn boots_of_two_modes_are_a_mixture() {
    for tail in [Tail::Heavy, Tail::Normal] {
        let noise = Noise { s: 0.01, rho: 0.5, tau: 0.0, tail };
        let plain = grid(noise);
        let mut modal = grid(noise);
        modal.modes = Some(Modes { gap: 0.03, share: 0.25 });
        let runs = [0.041, 0.038];
        let (low, high) = (of_boot(&plain, &runs), of_boot(&plain, &[0.011, 0.008]));
        for ((found, low), high) in of_boot(&modal, &runs).iter().zip(&low).zip(&high) {
            close(*found, log_sum_exp(&[0.75_f64.ln() + low, 0.25_f64.ln() + high]), 1e-9);
        }
    }
}

#[test]
fn nothing_measured_changes_nothing_and_an_outlier_little() {
    let noise = Noise { s: 0.02, rho: 0.5, tau: 0.0, tail: Tail::Heavy };
    let grid = grid(noise);
    assert_eq!(of_boot(&grid, &[]), vec![0.0; grid.size()]);
    let range = |runs: &[f64]| {
        let of = of_boot(&grid, runs);
        of.iter().copied().fold(f64::NEG_INFINITY, f64::max)
            - of.iter().copied().fold(f64::INFINITY, f64::min)
    };
    assert!(range(&[1e6]) < 1e-3 && range(&[0.02]) > 5.0, "{} {}", range(&[1e6]), range(&[0.02]));
}

#[test]
fn builds_that_do_not_differ_leave_a_likelihood_as_it_is() {
    let grid = grid(Noise { s: 0.01, rho: 0.0, tau: 0.0, tail: Tail::Heavy });
    let boots = of_boot(&grid, &[0.02, 0.03]);
    let mut out = vec![7.0; grid.size()];
    grid.with_build_effect(&boots, &mut out);
    assert_eq!(out, boots);
}

#[test]
fn a_build_effect_is_integrated_out() {
    // Exact for normal boots: the variances add.
    let (s, tau, mean) = (0.01, 0.8, 0.025);
    let noise = vec![Noise { s, rho: 0.0, tau, tail: Tail::Normal }];
    let grid = Grid::new((-0.075, 0.125), 401, noise, |_| 1.0);
    let mut out = vec![0.0; grid.size()];
    grid.with_build_effect(&of_boot(&grid, &[mean]), &mut out);
    let total = s * tau.hypot(1.0);
    let top = out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (value, level) in out.iter().zip(&grid.levels).filter(|(_, level)| (**level - mean).abs() < 0.03) {
        close(value - top, -0.5 * ((level - mean) / total).powi(2), 0.01);
    }
    close(top - of_boot(&grid, &[mean])[200], (s / total).ln(), 0.01);
}

#[test]
fn the_more_builds_differ_the_less_a_kernels_boots_say_of_its_level() {
    let ranges: Vec<f64> = [0.0, 0.3, 1.0, 3.0, 30.0]
        .iter()
        .map(|&tau| {
            let grid = grid(Noise { s: 0.01, rho: 0.0, tau, tail: Tail::Normal });
            let mut out = vec![0.0; grid.size()];
            grid.with_build_effect(&of_boot(&grid, &[0.02, 0.021, 0.019]), &mut out);
            out.iter().copied().fold(f64::NEG_INFINITY, f64::max)
                - out.iter().copied().fold(f64::INFINITY, f64::min)
        })
        .collect();
    assert!(ranges.windows(2).all(|w| w[1] < w[0]), "{ranges:?}");
    assert!(ranges[4] < 0.2, "thirty run sds between builds leave nothing to see: {ranges:?}");
}

// ---- shares ----

fn group(mean: f64, sd: f64, n: usize) -> Group {
    Group { n, mean, variance: sd * sd }
}

#[test]
fn a_share_has_the_sign_of_its_parts() {
    let (good, bad, mid) = (group(0.0, 0.002, 6), group(0.08, 0.002, 6), group(0.02, 0.002, 6));
    let told = |part, whole| share(part, whole, 0.01, None).expect("a clear difference");
    close(told((&mid, &good), (&bad, &good)).value, 0.25, 1e-12);
    close(told((&good, &mid), (&bad, &good)).value, -0.25, 1e-12);
    close(told((&good, &mid), (&good, &bad)).value, 0.25, 1e-12);
    let whole = told((&good, &bad), (&bad, &good));
    assert!((whole.value + 1.0).abs() < 1e-12 && (whole.high - whole.low).abs() < 1e-6, "{whole:?}");
    for share in [told((&good, &mid), (&bad, &good)), told((&mid, &good), (&bad, &good))] {
        let Share { value, low, high } = share;
        assert!(low < value && value < high && high - low < 0.3, "{share:?}");
    }
}

#[test]
fn a_share_of_a_difference_that_may_be_none_has_no_interval() {
    let (good, mid) = (group(0.0, 0.01, 4), group(0.05, 0.01, 4));
    let told = |to: f64, alpha| share((&mid, &good), (&group(to, 0.01, 4), &good), alpha, None);
    // The difference's own interval tells: it holds zero or not.
    for (to, alpha) in
        [(0.0, 0.01), (0.01, 0.01), (0.02, 0.05), (-0.01, 0.2), (0.03, 0.01), (0.06, 0.001), (-0.05, 0.01)]
    {
        let other = group(to, 0.01, 4);
        let own = Contrast::of(&[(1.0, &other), (-1.0, &good)]).interval(alpha);
        assert_eq!(told(to, alpha).is_none(), own.low <= 0.0 && own.high >= 0.0, "{to} {alpha} {own:?}");
    }
    assert_eq!(told(0.0, 0.5), None);
}

#[test]
fn a_share_is_the_surer_the_better_its_variance_is_known() {
    let (good, bad, mid) = (group(0.0, 0.005, 3), group(0.08, 0.005, 3), group(0.04, 0.005, 3));
    let width = |df| {
        let share = share((&bad, &mid), (&bad, &good), 0.05, df).expect("a clear difference");
        share.high - share.low
    };
    assert!(width(Some(40.0)) < width(Some(8.0)) && width(Some(8.0)) < width(None));
    // Equal groups: Welch and Satterthwaite's degrees of freedom are theirs together.
    close(width(Some(4.0)), width(None), 1e-9);
}

// ---- contrasts ----

#[test]
fn the_tail_of_students_t_is_the_published_one() {
    for t in [-3.0, 0.0, 0.5, 2.0, 31.599, 1e3] {
        // Closed forms for one and two degrees of freedom.
        let cauchy = if t > 1.0 {
            f64::atan(1.0 / t) / std::f64::consts::PI
        } else {
            0.5 - f64::atan(t) / std::f64::consts::PI
        };
        close(t_tail(1.0, t) / cauchy, 1.0, 1e-9);
        close(t_tail(2.0, t), 0.5 - t / (2.0 * (2.0 + t * t).sqrt()), 1e-9);
        for df in [1.5, 3.0, 7.3, 200.0] {
            close(t_tail(df, t), StudentsT::new(0.0, 1.0, df).expect("valid").sf(t), 1e-15);
            close(t_tail(df, t) + t_tail(df, -t), 1.0, 1e-12);
        }
    }
}

#[test]
fn a_pooled_contrast_has_the_degrees_of_freedom_of_the_pool() {
    let (a, b) = (group(1.0, 0.02, 2), group(1.1, 0.03, 5));
    let terms = [(1.0, &b), (-1.0, &a)];
    let (own, pooled) = (Contrast::of(&terms), Contrast::pooled(&terms, 23.0));
    assert_eq!((pooled.value, pooled.se, pooled.df), (own.value, own.se, 23.0));
    close(own.se, (0.02_f64.powi(2) / 2.0 + 0.03_f64.powi(2) / 5.0).sqrt(), 1e-12);
    // An empty pool is no reason to divide by zero.
    assert_eq!(Contrast::pooled(&terms, 0.0).df, 1.0);

    let t = StudentsT::new(0.0, 1.0, 23.0).expect("valid");
    close(pooled.p_above_zero(), t.sf(0.1 / pooled.se), 1e-12);
    for alpha in [0.2, 0.05, 1e-3, 1e-6] {
        let told = pooled.interval(alpha);
        assert_eq!(told.value, pooled.value);
        close((told.high + told.low) / 2.0, pooled.value, 1e-12);
        close(2.0 * t.sf((told.high - told.value) / pooled.se) / alpha, 1.0, 1e-6);
    }
}

#[test]
fn a_contrast_of_one_boot_a_side_is_finite_with_a_pool() {
    let (a, b) = (group(1.0, 0.02, 1), group(1.1, 0.02, 1));
    let told = Contrast::pooled(&[(1.0, &b), (-1.0, &a)], 9.0).interval(0.01);
    assert!(told.low.is_finite() && told.high.is_finite() && told.low < 0.1 && told.high > 0.1, "{told:?}");
}
