//! Each guard on the data, where it acts, says so in `status` and in the report.

use crate::common::sim::{Sim, id, normal, plan};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sched_bisect::model::Find;
use sched_bisect::report::{Look, Report, status, text};
use sched_bisect::session::{MachineSpec, Plan};
use std::collections::{BTreeMap, BTreeSet};

/// The culprit, of nine commits.
const CULPRIT: usize = 6;

fn nine() -> Plan {
    plan(9, 0.99, 0.02, Find::Regression, 3)
}

/// Level of a kernel, log units: lower is better, the culprit costs 4 %.
fn level(at: usize) -> f64 {
    if at >= CULPRIT { 0.04 } else { 0.0 }
}

/// What `status` and the report say, with every stretch of white space as one space.
fn said(sim: &Sim) -> [String; 2] {
    let flat = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    [flat(status(&sim.dag, &sim.state)), flat(text(&Report::of(&sim.dag, &sim.state, &[]), Look::default()))]
}

/// Fails unless both, and the report's JSON, tell of the guard in these words.
#[track_caller]
fn assert_told(sim: &Sim, guard: &str, words: &[&str]) {
    for said in said(sim) {
        for part in words.iter().copied().chain([guard.replace('_', "-").as_str()]) {
            assert!(said.contains(part), "{part:?} is not in\n{said}");
        }
    }
    let json = Report::of(&sim.dag, &sim.state, &[]).json();
    assert!(json.contains(&format!("\"guard\": \"{guard}\"")), "{json}");
}

#[test]
fn a_quiet_session_has_no_guard_to_tell_of() {
    for seed in 0..5 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut sim = Sim::new(nine());
        sim.conclude(&mut |at, _| 100.0 * (level(at) + 0.01 * normal(&mut rng)).exp());
        assert_eq!(Report::of(&sim.dag, &sim.state, &[]).guards, [], "{seed}");
    }
}

#[test]
fn warm_up_is_told() {
    let mut plan = nine();
    plan.recipe.judging.warmup_runs = 2;
    let mut rng = StdRng::seed_from_u64(1);
    let mut sim = Sim::new(plan);
    sim.conclude(&mut |at, _| 100.0 * (level(at) + 0.002 * normal(&mut rng)).exp());
    assert_told(&sim, "warm_up", &["the first 2 run(s) of each boot are not counted"]);
}

#[test]
fn a_machine_whose_level_jumped_is_told() {
    let mut rng = StdRng::seed_from_u64(2);
    let mut sim = Sim::new(plan(9, 0.99, 0.02, Find::Regression, 6));
    let moved = |boot: u64| if boot > 6 { 0.3 } else { 0.0 };
    sim.conclude(&mut |at, boot| 100.0 * (level(at) + moved(boot) + 0.001 * normal(&mut rng)).exp());
    assert_told(&sim, "voided", &["boots do not count: the machine's level moved by"]);
}

#[test]
fn a_candidate_that_lies_on_two_levels_is_told() {
    // Three boots half way between the endpoints, then boots like good.
    const MOVED: usize = CULPRIT - 1;
    let mut rng = StdRng::seed_from_u64(3);
    let mut boots = BTreeSet::new();
    let mut sim = Sim::new(nine());
    let end = sim
        .conclude(&mut |at, boot| {
            if at == MOVED {
                boots.insert(boot);
            }
            let early = if at == MOVED && boots.len() <= 3 { 0.02 } else { 0.0 };
            100.0 * (level(at) + early + 0.0001 * normal(&mut rng)).exp()
        })
        .clone();
    assert_eq!(end.commit, Some(id(CULPRIT)), "{}", end.reason);
    assert_told(&sim, "voided", &[&format!("the boots of {} lie on two levels", id(MOVED).short())]);
}

#[test]
fn boots_of_two_modes_are_told_with_share_gap_and_number() {
    for seed in 0..3 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut modes: BTreeMap<u64, f64> = BTreeMap::new();
        let mut sim = Sim::new(plan(9, 0.99, 0.02, Find::Regression, 8));
        let end = sim
            .conclude(&mut |at, boot| {
                let mode = *modes.entry(boot).or_insert_with(|| if rng.random_bool(0.3) { 0.1 } else { 0.0 });
                100.0 * (level(at) + mode + 0.004 * normal(&mut rng)).exp()
            })
            .clone();
        assert_eq!(end.commit, Some(id(CULPRIT)), "{seed}: {}", end.reason);
        let found = *sim.planner.engine().modes().expect("modes are found");
        assert!((found.modes.gap - 0.1).abs() < 0.01 && found.is_even, "{found:?}");
        let share =
            format!("{:.0} % of {} boots lie in a second mode", found.modes.share * 100.0, found.boots);
        let gap = format!("{:.1} % worse; boots are compared within modes", found.modes.gap.exp_m1() * 100.0);
        assert_told(&sim, "modes", &[&share, &gap]);
    }
}

#[test]
fn modes_that_only_one_side_has_are_told_and_means_are_compared() {
    // The culprit sends half of the boots into a slow mode: that is the change, not noise to be taken out.
    let mut rng = StdRng::seed_from_u64(5);
    let mut modes: BTreeMap<u64, bool> = BTreeMap::new();
    let mut sim = Sim::new(plan(9, 0.99, 0.02, Find::Regression, 12));
    let end = sim
        .conclude(&mut |at, boot| {
            let slow = *modes.entry(boot).or_insert_with(|| rng.random_bool(0.5)) && at >= CULPRIT;
            100.0 * (if slow { 0.1 } else { 0.0 } + 0.004 * normal(&mut rng)).exp()
        })
        .clone();
    assert_eq!(end.commit, Some(id(CULPRIT)), "{}", end.reason);
    assert_told(&sim, "modes", &["some kernels have more of them than others, so their means are compared"]);
}

#[test]
fn outliers_are_told() {
    let mut rng = StdRng::seed_from_u64(6);
    let mut runs = 0;
    let mut sim = Sim::new(nine());
    sim.conclude(&mut |at, _| {
        runs += 1;
        let outlier = if runs % 9 == 5 { 0.2 } else { 0.0 };
        100.0 * (level(at) + outlier + 0.004 * normal(&mut rng)).exp()
    });
    assert_told(&sim, "outliers", &["far from the others of their kernel and weigh little"]);
}

#[test]
fn drift_is_told() {
    let mut rng = StdRng::seed_from_u64(7);
    let mut runs = 0.0;
    let mut sim = Sim::new(plan(9, 0.99, 0.02, Find::Regression, 10));
    sim.conclude(&mut |at, _| {
        runs += 1.0;
        100.0 * (level(at) + 0.005 * runs + 0.01 * normal(&mut rng)).exp()
    });
    assert_told(&sim, "drift", &["the machine's level moved by", "it is taken out"]);
}

#[test]
fn first_runs_that_are_off_are_taken_out_and_told() {
    let (mut told, mut right) = (0, 0);
    for seed in 0..10 {
        let mut plan = nine();
        plan.recipe.machine = MachineSpec::Command { boot: Some("boot".to_owned()), run: "run".to_owned() };
        (plan.recipe.costs.boot_s, plan.recipe.costs.run_s) = (100.0, 10.0);
        let mut rng = StdRng::seed_from_u64(seed);
        let mut boots: BTreeMap<u64, f64> = BTreeMap::new();
        let mut sim = Sim::new(plan);
        sim.takes_ms = (100_000, 10_000);
        let end = sim
            .conclude(&mut |at, boot| {
                let first = if boots.contains_key(&boot) { 0.0 } else { 0.03 };
                let level_of_boot = *boots.entry(boot).or_insert_with(|| 0.02 * normal(&mut rng));
                100.0 * (level(at) + level_of_boot + first + 0.004 * normal(&mut rng)).exp()
            })
            .clone();
        right += usize::from(end.commit == Some(id(CULPRIT)));
        if let Some(first) = sim.planner.engine().first_run() {
            told += 1;
            assert!((first.effect - 0.03).abs() < first.within, "{seed}: {first:?}");
            let boots = format!("{} boots); it is taken out", first.boots);
            assert_told(&sim, "order", &["the first run of a boot is", "% worse than later ones", &boots]);
        }
    }
    assert!(told >= 8 && right >= 9, "{told} told, {right} right of 10");
}
