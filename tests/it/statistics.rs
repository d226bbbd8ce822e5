//! What the statistics promise, held against simulation. Seeds are fixed: a test gives the same figures each time.

use crate::common::sim::{Sim, id, normal, plan};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sched_bisect::model::{Conclusion, ConclusionKind, Find};
use sched_bisect::session::{EndpointOutcome, Event, Plan};
use sched_bisect::stats::{Contrast, Group, share};

/// Whether `hits` of `trials` is no more than probability `p` allows: within three standard deviations of the binomial.
#[track_caller]
fn assert_at_most(hits: usize, trials: usize, p: f64) {
    let (hits, n) = (hits as f64, trials as f64);
    let limit = n * p + 3.0 * (n * p * (1.0 - p)).sqrt();
    assert!(hits <= limit, "{hits} of {n} are more than {p} allows ({limit:.0})");
}

/// Whether `hits` of `trials` agree with probability `p`, likewise.
#[track_caller]
fn assert_about(hits: usize, trials: usize, p: f64) {
    assert_at_most(hits, trials, p);
    assert_at_most(trials - hits, trials, 1.0 - p);
}

/// Claims of a difference, of either sign, among so many sessions of two equal kernels.
fn false_claims(trials: usize, plan: &Plan, boot_sd: f64, run_sd: f64) -> usize {
    let mut rng = StdRng::seed_from_u64(75);
    let mut claims = 0;
    for _ in 0..trials {
        let mut sim = Sim::new(plan.clone());
        let (mut last, mut level) = (0, 0.0);
        let mut measure = |_: usize, boot: u64| {
            if boot != last {
                (last, level) = (boot, boot_sd * normal(&mut rng));
            }
            (level + run_sd * normal(&mut rng)).exp()
        };
        let is_over = |event: &Event| matches!(event, Event::EndpointsJudged { outcome, .. } if *outcome != EndpointOutcome::Undecided);
        sim.work(&mut measure, is_over);
        claims += usize::from(match sim.state.endpoints.as_ref().expect("they are judged").outcome {
            EndpointOutcome::Change(_) | EndpointOutcome::OppositeSign => true,
            EndpointOutcome::NoDifference | EndpointOutcome::Undecided => false,
        });
    }
    claims
}

#[test]
fn equal_kernels_are_called_different_at_most_as_often_as_the_gate_may() {
    // Case 81: one look after 3 boots, or looks after 3, 6 and 9. The gate has a quarter of 1 - confidence; a confidence
    // this low makes the errors frequent enough to count. A minimum effect of next to nothing lets every claim through.
    for (find, max_boots) in [(Find::Any, 3), (Find::Any, 9), (Find::Regression, 9)] {
        let mut plan = plan(2, 0.6, 1e-6, find, 3);
        plan.recipe.judging.max_boots = max_boots;
        let claims = false_claims(1000, &plan, 0.02, 0.0);
        assert_at_most(claims, 1000, 0.1);
        assert!(claims > 20, "{claims}: the test could not fail");
    }
}

#[test]
fn many_runs_of_one_boot_do_not_make_equal_kernels_different() {
    // Case 75: boots differ by 2 %, runs in a boot by 0.3 %. Runs taken for boots would call 93 % of these different.
    let mut plan = plan(2, 0.6, 1e-6, Find::Any, 5);
    plan.recipe.judging.runs = 10;
    assert_at_most(false_claims(200, &plan, 0.02, 0.003), 200, 0.1);
}

fn sample(rng: &mut StdRng, n: usize, mean: f64, sd: f64) -> Group {
    let values: Vec<f64> = (0..n).map(|_| mean + sd * normal(rng)).collect();
    Group::of(&values).expect("two or more finite values")
}

#[test]
fn an_interval_of_a_difference_misses_it_as_often_as_it_says() {
    for (alpha, seed) in [(0.05, 1), (0.01, 2)] {
        let mut rng = StdRng::seed_from_u64(seed);
        let trials = 2000;
        let misses = (0..trials).filter(|_| {
            let (later, reference) = (sample(&mut rng, 5, 0.05, 0.01), sample(&mut rng, 8, 0.0, 0.015));
            let interval = Contrast::of(&[(1.0, &later), (-1.0, &reference)]).interval(alpha);
            interval.low > 0.05 || interval.high < 0.05
        });
        assert_about(misses.count(), trials, alpha);
    }
}

#[test]
fn an_interval_against_the_middle_of_two_kernels_misses_it_as_often_as_it_says() {
    for (alpha, seed) in [(0.05, 3), (0.01, 4)] {
        let mut rng = StdRng::seed_from_u64(seed);
        let trials = 2000;
        let misses = (0..trials).filter(|_| {
            let good = sample(&mut rng, 5, 0.0, 0.01);
            let bad = sample(&mut rng, 5, 0.1, 0.01);
            let own = sample(&mut rng, 5, 0.1, 0.01);
            let interval = Contrast::of(&[(1.0, &own), (-0.5, &good), (-0.5, &bad)]).interval(alpha);
            interval.low > 0.05 || interval.high < 0.05
        });
        assert_about(misses.count(), trials, alpha);
    }
}

#[test]
fn an_interval_of_a_share_misses_it_as_often_as_it_says() {
    // Half of the difference came back; the reverted kernel and the good one share no boots, bad stands in both.
    for (alpha, seed) in [(0.05, 5), (0.01, 6)] {
        let mut rng = StdRng::seed_from_u64(seed);
        let trials = 2000;
        let mut unbounded = 0;
        let misses = (0..trials).filter(|_| {
            let good = sample(&mut rng, 5, 1.0, 0.01);
            let bad = sample(&mut rng, 5, 1.08, 0.01);
            let reverted = sample(&mut rng, 5, 1.04, 0.01);
            match share((&bad, &reverted), (&bad, &good), alpha) {
                Some(share) => share.low > 0.5 || share.high < 0.5,
                // No bounded interval: it holds every share.
                None => {
                    unbounded += 1;
                    false
                }
            }
        });
        assert_about(misses.count(), trials, alpha);
        assert!(unbounded < trials / 50, "{unbounded} intervals are unbounded");
    }
}

/// How searches of a line end: (right culprit, wrong culprit, no culprit).
fn searches(
    trials: usize,
    plan: &Plan,
    truth: usize,
    level: impl Fn(usize, u64) -> f64,
    sd: f64,
    mut each: impl FnMut(&Conclusion),
) -> (usize, usize, usize) {
    let mut rng = StdRng::seed_from_u64(82);
    let mut ends = (0, 0, 0);
    for _ in 0..trials {
        let mut sim = Sim::new(plan.clone());
        let end = sim.conclude(&mut |at, boot| (level(at, boot) + sd * normal(&mut rng)).exp());
        match &end.commit {
            Some(commit) if *commit == id(truth) => ends.0 += 1,
            Some(_) => ends.1 += 1,
            None => ends.2 += 1,
        }
        each(end);
    }
    ends
}

#[test]
fn a_noisy_search_names_the_wrong_commit_at_most_as_often_as_it_may() {
    // Case 82: 128 commits, a step of 5 %, boots that differ by 1.3 %; errors multiply over the steps.
    let step = |at: usize, _: u64| if at >= 77 { 0.05 } else { 0.0 };
    let mut claimed = 0.0;
    let (right, wrong, none) =
        searches(60, &plan(129, 0.9, 0.02, Find::Regression, 5), 77, step, 0.013, |end| {
            claimed += end.probability.map_or(0.0, |p| 1.0 - p);
        });
    assert_at_most(wrong, right + wrong, 0.1);
    assert!(right > none, "{right} right, {wrong} wrong, {none} without a name");
    assert!(claimed / (right + wrong) as f64 <= 0.1 / 4.0, "what is stated is at least the confidence asked");
}

#[test]
fn a_machine_whose_level_moves_during_the_search_gets_nobody_blamed() {
    // Case 76: after the endpoints every kernel is slower than bad was.
    let moved =
        |at: usize, boot: u64| f64::from(u8::from(at >= 20)) * 0.05 + if boot > 10 { 0.08 } else { 0.0 };
    let (_, wrong, none) =
        searches(30, &plan(33, 0.99, 0.02, Find::Regression, 5), 20, moved, 0.005, |end| {
            if end.commit.is_none() {
                assert_eq!((end.kind, end.exit, end.suspects.len()), (ConclusionKind::CulpritSet, 3, 32));
                assert!(
                    end.reason.contains("not confirmed") && end.reason.contains("level moved"),
                    "{}",
                    end.reason
                );
            }
        });
    assert_at_most(wrong, 30, 0.01);
    assert!(none >= 28, "{none}");
}

#[test]
fn a_difference_made_of_many_small_steps_is_nobodys_fault() {
    // 0.2 % a commit, 6.6 % in all, measured well enough to see each step.
    let (_, wrong, none) = searches(
        20,
        &plan(34, 0.99, 0.02, Find::Regression, 5),
        usize::MAX,
        |at, _| 0.002 * at as f64,
        0.0001,
        |end| {
            assert_eq!((end.kind, end.exit), (ConclusionKind::CulpritSet, 3));
            assert!(end.reason.contains("spread over"), "{}", end.reason);
        },
    );
    assert_eq!((wrong, none), (0, 20));
}

/// The endpoint gate's outcome and effect for these boots of good and bad.
fn gate(good: &[f64], bad: &[f64], minimum: f64) -> (EndpointOutcome, f64, f64) {
    let boots = u32::try_from(good.len()).expect("few");
    let mut sim = Sim::new(plan(2, 0.99, minimum, Find::Regression, boots));
    let mut taken = [0, 0];
    let mut measure = |at: usize, _: u64| {
        taken[at] += 1;
        [good, bad][at][taken[at] - 1]
    };
    sim.work(&mut measure, |event| matches!(event, Event::EndpointsJudged { .. }));
    let judged = sim.state.endpoints.expect("they are judged");
    (judged.outcome, judged.evidence.effect.low, judged.evidence.effect.high)
}

#[test]
fn not_significantly_worse_is_not_the_same_as_good() {
    // Case 74, with a time (positive is worse) and a target of 4 %.
    let at = |mean: f64, sd: f64| [-1.26, -0.63, 0.0, 0.63, 1.26].map(|z| mean * (1.0 + sd * z));
    let good = at(100.0, 0.001);

    let (outcome, low, high) = gate(&good, &at(102.0, 0.02), 0.04);
    assert!(low < 0.0 && high > 0.04, "{low} {high}");
    assert_eq!(outcome, EndpointOutcome::Undecided);

    let (outcome, low, high) = gate(&good, &at(100.1, 0.003), 0.04);
    assert!(low < 0.0 && high < 0.01, "{low} {high}");
    assert_eq!(outcome, EndpointOutcome::NoDifference);

    let (outcome, low, high) = gate(&good, &at(104.0, 0.003), 0.04);
    assert!(low > 0.03 && high > 0.04, "{low} {high}");
    assert!(matches!(outcome, EndpointOutcome::Change(_)), "{outcome:?}");
}

#[test]
fn a_candidate_between_the_ends_stays_undecided_and_becomes_a_suspect() {
    // Case 74 for a candidate: at the middle, with noise, it is neither; with all boots taken it is left, never good.
    let mut rng = StdRng::seed_from_u64(74);
    let mut sim = Sim::new(plan(3, 0.99, 0.04, Find::Regression, 5));
    let end = sim.conclude(&mut |at, _| ([0.0, 0.05, 0.1][at] + 0.01 * normal(&mut rng)).exp()).clone();
    assert_eq!(end.kind, ConclusionKind::CulpritSet);
    assert_eq!(end.suspects.iter().map(|s| s.commit.clone()).collect::<Vec<_>>(), [id(1), id(2)]);
    assert_eq!(end.suspects[0].reason, "undecided after 15 boots");
    let verdicts = sim.decided.iter().filter(|event| matches!(event, Event::Judged { .. }));
    assert_eq!(verdicts.count(), 3, "a look after 5, 10 and 15 boots");
}

#[test]
fn endpoints_that_stay_open_are_not_called_equal() {
    let mut rng = StdRng::seed_from_u64(70);
    let mut sim = Sim::new(plan(3, 0.99, 0.02, Find::Regression, 5));
    let end = sim.conclude(&mut |at, _| ([0.0, 0.0, 0.02][at] + 0.04 * normal(&mut rng)).exp());
    assert_eq!((end.kind, end.exit), (ConclusionKind::NoDifference, 4));
    assert!(end.reason.contains("neither show nor exclude the 2.0 %"), "{}", end.reason);
}
