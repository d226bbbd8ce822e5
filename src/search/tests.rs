//! Tests of what the search keeps to itself: fresh pairs, three levels, contradictions, chances.

use super::belief::{Belief, Scope};
use super::graph::Graph;
use super::steps::{contradiction, two_steps};
use super::testable::Testable;
use super::verify::Pairs;
use crate::stats::{Grid, Noise, Tail};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::sync::Arc;

const STEP: f64 = 0.05;

/// Log Bayes factor from which three levels, or a step, are believed: 20.
const BELIEVED: f64 = 2.996;

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

// ---- fresh, interleaved pairs ----

fn noise(tail: Tail) -> Noise {
    Noise { s: 0.01, rho: 0.0, tau: 0.0, tail }
}

fn factor_under(noise: Vec<Noise>, posterior: &[f64], differences: &[(f64, usize)], step: f64) -> f64 {
    let grid = Grid::new((-0.1, 0.2), 41, noise, |_| 1.0);
    Pairs { differences: differences.to_vec() }.log_bayes(&grid, posterior, step)
}

fn factor(differences: &[f64], step: f64) -> f64 {
    let single: Vec<(f64, usize)> = differences.iter().map(|d| (*d, 1)).collect();
    factor_under(vec![noise(Tail::Heavy)], &[1.0], &single, step)
}

#[test]
fn pairs_that_show_the_step_speak_for_it_and_all_others_against() {
    let about = |mean: f64| [-0.006, 0.003, 0.0, 0.004].map(|d| mean + d);
    assert!(factor(&about(STEP), STEP) > BELIEVED);
    assert!(factor(&about(0.0), STEP) < -BELIEVED);
    // The other sign is no step either.
    assert!(factor(&about(-STEP), STEP) < -BELIEVED);
    // An improvement is a step downwards.
    assert!(factor(&about(-STEP), -STEP) > BELIEVED && factor(&about(STEP), -STEP) < -BELIEVED);
    let mirrored = about(0.03).map(|d| -d);
    assert!((factor(&mirrored, -STEP) - factor(&about(0.03), STEP)).abs() < 1e-12);
    assert!(factor(&[], STEP).abs() < 1e-12, "no pair says nothing");
}

#[test]
fn the_evidence_of_pairs_is_that_of_the_definition() {
    // Log-normal about the step (sd 0.3), to three sds; two normal runs differ with twice their variance.
    let (difference, sd) = (0.03, 0.01 * 2.0_f64.sqrt());
    let density = |size: f64| (-0.5 * ((difference - size) / sd).powi(2)).exp();
    let (mut sum, mut weight) = (0.0, 0.0);
    for i in 0..=60_000 {
        let z = f64::from(i) / 10_000.0 - 3.0;
        let p = (-0.5 * z * z).exp();
        sum += p * density(STEP * (0.3 * z).exp());
        weight += p;
    }
    let expected = (sum / weight / density(0.0)).ln();
    let found = factor_under(vec![noise(Tail::Normal)], &[1.0], &[(difference, 1)], STEP);
    assert!((found - expected).abs() < 1e-2, "{found} {expected}");
}

#[test]
fn a_machine_that_drifts_is_no_step_and_hides_none() {
    // Kernels in turn, one boot after the other; over the 40 boots the machine drifts by 20 sds of a run.
    let taken = |step: f64, drift: f64| {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let differences: Vec<f64> = (0..20)
            .map(|pair| {
                // Whose turn comes first is drawn.
                let later_first = normal(&mut rng) > 0.0;
                let at = |second: bool| drift * (2.0 * f64::from(pair) + f64::from(u8::from(second)));
                let (a, b) = (0.01 * normal(&mut rng), 0.01 * normal(&mut rng));
                (step + at(!later_first) + a) - (at(later_first) + b)
            })
            .collect();
        factor(&differences, STEP)
    };
    for step in [0.0, STEP] {
        let (steady, drifting) = (taken(step, 0.0), taken(step, 0.005));
        assert!(steady.abs() > BELIEVED && drifting.abs() > BELIEVED, "{steady} {drifting}");
        assert_eq!(steady > 0.0, drifting > 0.0, "{step}");
    }
}

#[test]
fn pairs_of_more_runs_say_more_and_an_outlier_little() {
    let of_runs = |runs| {
        let all: Vec<(f64, usize)> = [0.05, 0.047, 0.052].map(|d| (d, runs)).to_vec();
        factor_under(vec![noise(Tail::Heavy)], &[1.0], &all, STEP)
    };
    assert!(of_runs(4) > of_runs(2) && of_runs(2) > of_runs(1));
    // Where boots vary more than runs, further runs say next to nothing.
    let boots = Noise { rho: 2.0, ..noise(Tail::Heavy) };
    let of = |runs| factor_under(vec![boots], &[1.0], &[(0.05, runs), (0.047, runs)], STEP);
    assert!(of(8) < 1.5 * of(1), "{} {}", of(8), of(1));
    let clear = [0.05, 0.048, 0.053, 0.051];
    let with_outlier = [&clear[..], &[-3.0]].concat();
    assert!((factor(&with_outlier, STEP) - factor(&clear, STEP)).abs() < 0.5);
}

#[test]
fn what_another_build_would_change_is_not_asked_of_pairs() {
    let wide = Noise { s: 10.0, tau: 0.3, ..noise(Tail::Heavy) };
    let pairs = [(0.05, 1), (0.048, 1)];
    let alone = factor_under(vec![noise(Tail::Heavy)], &[1.0], &pairs, STEP);
    let both = factor_under(vec![noise(Tail::Heavy), wide], &[0.5, 0.5], &pairs, STEP);
    assert!((alone - both).abs() < 1e-9, "{alone} {both}");
}

// ---- more than one step ----

/// What is believed of these kernels of a graph, each booted so often, whose level is `level`.
fn believe(
    graph: &Arc<Graph>,
    kernels: &[usize],
    boots: u64,
    level: impl Fn(usize) -> f64,
    seed: u64,
) -> Belief {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let last = graph.len() - 1;
    let prior: Vec<f64> = (0..=last).map(|n| f64::from(u8::from(!graph.is_boundary(n)))).collect();
    let scope = Scope { good: None, bad: last };
    let mut belief =
        Belief::new(Arc::clone(graph), (scope, 0), 2.0 * STEP, vec![(0.0, 0.7), (0.3, 0.3)], &prior, true);
    let mut number = 0;
    let mut take = |belief: &mut Belief, node: usize| {
        number += 1;
        belief.observe(node, number, 0, &[(level(node) + 0.005 * normal(&mut rng), 0)]);
    };
    for boot in 0..boots * 2 {
        take(&mut belief, if boot % 2 == 0 { 0 } else { last });
    }
    belief.begin();
    for &node in kernels {
        (0..boots).for_each(|_| take(&mut belief, node));
        belief.settle();
    }
    belief
}

fn line(count: usize) -> Arc<Graph> {
    let parents: Vec<Vec<usize>> = (0..count).map(|n| n.checked_sub(1).into_iter().collect()).collect();
    Arc::new(Graph::new(&parents, (0..count).map(|n| n == 0).collect()))
}

#[test]
fn three_levels_are_seen_with_the_kernels_between_and_their_levels() {
    let level = |node: usize| [0.0, STEP, 2.0 * STEP][usize::from(node >= 5) + usize::from(node >= 9)];
    for seed in 0..20 {
        let belief = believe(&line(13), &[4, 6, 7, 10], 3, level, seed);
        let two = two_steps(&belief).expect("there are three levels");
        assert!(two.evidence > BELIEVED, "{seed}: {}", two.evidence);
        let mut between: Vec<usize> = two.between.iter().map(|&k| belief.kernels()[k].node).collect();
        between.sort_unstable();
        assert_eq!(between, [6, 7], "{seed}");
        for (found, expected) in two.levels.iter().zip([0.0, STEP, 2.0 * STEP]) {
            assert!((found.mean - expected).abs() < 0.01, "{seed}: {found:?}");
        }
    }
}

#[test]
fn two_levels_are_not_taken_for_three() {
    let level = |node: usize| if node >= 6 { 2.0 * STEP } else { 0.0 };
    let falsely = (0..100).filter(|seed| {
        let belief = believe(&line(13), &[3, 5, 6, 7, 9], 3, level, *seed);
        two_steps(&belief).is_some_and(|two| two.evidence > BELIEVED)
    });
    // One in twenty at most, by the factor that is asked; and that of nested pairs.
    let falsely = falsely.count();
    assert!(falsely <= 2, "{falsely} of 100");
}

#[test]
fn with_the_ends_alone_there_is_nothing_to_see() {
    assert_eq!(two_steps(&believe(&line(13), &[], 3, |n| if n > 0 { STEP } else { 0.0 }, 1)), None);
}

#[test]
fn a_bad_kernel_inside_a_good_one_is_a_contradiction() {
    let level = |node: usize| if [4, 12].contains(&node) { 2.0 * STEP } else { 0.0 };
    for seed in 0..20 {
        // Both 8 and 10 contain it: the latest is told.
        let belief = believe(&line(13), &[2, 4, 8, 10], 3, level, seed);
        assert_eq!(contradiction(&belief), Some((4, 10)), "{seed}");
    }
}

#[test]
fn what_one_step_explains_is_no_contradiction() {
    let level = |node: usize| if node >= 6 { 2.0 * STEP } else { 0.0 };
    for seed in 0..100 {
        let belief = believe(&line(13), &[3, 5, 6, 9], 2, level, seed);
        assert_eq!(contradiction(&belief), None, "{seed}");
    }
    // Bad and good side by side: neither contains the other.
    let parents = [vec![], vec![0], vec![0], vec![1], vec![2], vec![3, 4]];
    let fork = Arc::new(Graph::new(&parents, (0..6).map(|n| n == 0).collect()));
    let level = |node: usize| if [2, 4, 5].contains(&node) { 2.0 * STEP } else { 0.0 };
    assert_eq!(contradiction(&believe(&fork, &[1, 2, 3, 4], 3, level, 1)), None);
}

#[test]
fn a_kernel_whose_boots_are_in_doubt_contradicts_nothing() {
    // Nearer to bad than to good, but not as far as 1000 to 1.
    let level =
        |node: usize| [0.0, 1.2 * STEP, 2.0 * STEP][usize::from(node == 4) + 2 * usize::from(node == 12)];
    for seed in 0..20 {
        assert_eq!(contradiction(&believe(&line(13), &[4, 8], 1, level, seed)), None, "{seed}");
    }
}

// ---- what can be measured ----

/// Chances after these trials (node, failed).
fn chances(graph: &Graph, tried: &[(usize, bool)]) -> Vec<f64> {
    let mut testable = Testable::new();
    tried.iter().for_each(|&(node, failed)| testable.observe(node, failed));
    testable.settle(graph);
    (0..graph.len()).map(|node| testable.chance(node)).collect()
}

#[test]
fn as_long_as_nothing_failed_everything_can_be_measured() {
    assert_eq!(chances(&line(20), &[]), vec![1.0; 20]);
    assert_eq!(chances(&line(20), &[(3, false), (9, false)]), vec![1.0; 20]);
}

#[test]
fn the_nearer_to_a_failure_the_smaller_the_chance() {
    let told = chances(&line(40), &[(20, true)]);
    assert!(told.windows(2).take(20).all(|w| w[1] < w[0]), "{told:?}");
    assert!(told.windows(2).skip(20).all(|w| w[1] > w[0]), "{told:?}");
    assert!(told.iter().all(|chance| (0.01..=1.0).contains(chance)));
    // A second one makes all of it less likely, a kernel that could be measured more.
    let worse = chances(&line(40), &[(20, true), (24, true)]);
    assert!(told.iter().zip(&worse).all(|(a, b)| b < a), "{worse:?}");
    let better = chances(&line(40), &[(20, true), (24, false)]);
    assert!(told.iter().zip(&better).all(|(a, b)| b > a), "{better:?}");
    let hopeless: Vec<(usize, bool)> = (0..20).map(|n| (n, true)).collect();
    assert_eq!(chances(&line(21), &hopeless)[10], 0.01, "and yet it is not zero");
}

#[test]
fn what_is_broken_on_a_branch_says_little_of_what_is_beside_it() {
    // 0 - 1 - 2 - 3 and 0 - 4 - 5 - 6, merged in 7.
    let parents = [vec![], vec![0], vec![1], vec![2], vec![0], vec![4], vec![5], vec![3, 6]];
    let graph = Graph::new(&parents, (0..8).map(|n| n == 0).collect());
    let told = chances(&graph, &[(2, true)]);
    assert!(told[1] < 0.7 * told[5] && told[3] < 0.7 * told[6], "{told:?}");
}

#[test]
fn it_does_not_matter_when_trials_are_summed() {
    let graph = line(30);
    let tried = [(4, false), (9, true), (12, false), (20, true), (22, true)];
    let mut step_by_step = Testable::new();
    for (node, failed) in tried {
        step_by_step.observe(node, failed);
        step_by_step.settle(&graph);
    }
    let at_once = chances(&graph, &tried);
    assert!((0..30).all(|node| (step_by_step.chance(node) - at_once[node]).abs() < 1e-12));
    assert_eq!(step_by_step.failures(), 3);
}
