//! What a profile asks for around a run, over whole sessions: which runs count, what is told beside the verdict.

use crate::common::sim::{Sim, id, normal, plan};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use sched_bisect::lab::stage::IDLE;
use sched_bisect::model::{ConclusionKind, Find, Relative};
use sched_bisect::report::{Look, Report, text};
use sched_bisect::session::{MachineSpec, Plan, Saturation, Steady};
use std::collections::BTreeMap;

/// Boots that are dear and runs that are not: a boot gets several.
fn with_boots(change: impl FnOnce(&mut Plan)) -> Sim {
    let mut plan = plan(5, 0.99, 0.02, Find::Regression, 3);
    plan.recipe.machine = MachineSpec::Command { boot: Some("boot".to_owned()), run: "run".to_owned() };
    (plan.recipe.costs.boot_s, plan.recipe.costs.run_s) = (300.0, 10.0);
    change(&mut plan);
    let mut sim = Sim::new(plan);
    sim.takes_ms = (300_000, 10_000);
    sim
}

/// The report on one line.
fn told(sim: &Sim) -> String {
    text(&Report::of(&sim.dag, &sim.state, &[]), Look::default())
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn case_79_a_boot_counts_from_the_run_on_that_is_like_the_one_before() {
    let mut sim = with_boots(|plan| {
        plan.recipe.setup.steady = Some(Steady { within: Relative(0.02), most: 8 });
    });
    let mut rng = StdRng::seed_from_u64(79);
    let mut taken: BTreeMap<u64, usize> = BTreeMap::new();
    // Only the later kernels warm up so slowly; the level of all is the same.
    let end = sim
        .conclude(&mut |at, boot| {
            let n = taken.entry(boot).or_default();
            *n += 1;
            let warming = [27.7, 22.5].get(*n - 1).filter(|_| at >= 2);
            warming.copied().unwrap_or(19.9) * (0.001 * normal(&mut rng)).exp()
        })
        .clone();
    assert_eq!(end.kind, ConclusionKind::NoDifference, "{}", end.reason);
    for boot in &sim.state.boots {
        let slow = boot.commit != id(0) && boot.commit != id(1);
        assert_eq!(sim.state.warmup(boot), if slow { 3 } else { 1 }, "{:?}", boot.runs);
        assert!(boot.runs.len() > sim.state.warmup(boot), "a boot goes on until some of it counts");
        assert!(boot.runs.windows(2).all(|two| two[0].repetition < two[1].repetition), "in their order");
    }
    let report = told(&sim);
    assert!(report.contains("differs from the one before by no more than 2.0 %"), "{report}");
}

#[test]
fn case_36_a_sut_that_was_idle_is_told_beside_a_verdict_that_stands() {
    let idle = |percent: fn(usize) -> f64| {
        let mut sim = with_boots(|plan| {
            plan.recipe.setup.saturation =
                Some(Saturation { idle: Some(Relative(0.1)), ldg_cpus: None, ramp_up_s: None });
        });
        sim.also = Some((IDLE.to_owned(), percent));
        let mut rng = StdRng::seed_from_u64(36);
        let kind = sim
            .conclude(&mut |at, _| {
                let level = if at >= 3 { 105.0 } else { 100.0 };
                level * (0.002 * normal(&mut rng)).exp()
            })
            .kind;
        assert_eq!(kind, ConclusionKind::Culprit);
        told(&sim)
    };
    let told = idle(|_| 35.0);
    assert!(told.contains("not saturated: the SUT was idle 35 % in runs of"), "{told}");
    assert!(told.contains("(10 % may be)"), "{told}");
    assert!(!idle(|_| 4.0).contains("not saturated"));
}

#[test]
fn case_90_runs_as_short_as_their_clocks_step_are_told_too_short_once_the_endpoints_are_measured() {
    let told = |level: f64| {
        let mut sim = with_boots(|plan| {
            plan.recipe.metric.name = "time".to_owned();
            plan.recipe.reading.parser = "hackbench".to_owned();
        });
        // As hackbench prints it: three digits.
        sim.conclude(&mut |_, boot| (level * 1000.0 + (boot % 2) as f64).round() / 1000.0);
        told(&sim)
    };
    let short = told(0.053);
    let words = "too short for the wanted effect: time is printed in steps of 0.001 s, 1.9 % of 0.053 s; to show 2.0 %, give the \
                 workload more to do";
    assert!(short.contains(words), "{short}");
    assert!(!told(0.53).contains("too short"));
}

#[test]
fn cases_95_and_96_work_that_failed_is_told_beside_a_verdict_that_stands() {
    let told = |parser: &str, metric: &str, failed: &str, count: fn(usize) -> f64| {
        let mut sim = with_boots(|plan| {
            plan.recipe.metric.name = metric.to_owned();
            plan.recipe.reading.parser = parser.to_owned();
        });
        sim.also = Some((failed.to_owned(), count));
        let mut rng = StdRng::seed_from_u64(95);
        let level = |at: usize| if at >= 3 { 1050.0 } else { 1000.0 };
        sim.conclude(&mut |at, _| level(at) * (0.002 * normal(&mut rng)).exp());
        assert_eq!(sim.state.conclusion.as_ref().map(|end| end.kind), Some(ConclusionKind::Culprit));
        told(&sim)
    };
    let one_side = told("sysbench", "tps", "ignored_errors_per_s", |at| if at >= 3 { 40.0 } else { 0.0 });
    let words = "a part of the work failed: ignored_errors_per_s is 0 in runs of";
    assert!(one_side.contains(words), "{one_side}");
    assert!(one_side.contains("(0.0 % and 3.7 % of tps)"), "{one_side}");
    let both = told("pgbench", "transactions", "failed_transactions", |_| 31.0);
    assert!(both.contains("failed_transactions is 31 in runs of"), "{both}");
    let few = told("sysbench", "tps", "ignored_errors_per_s", |_| 0.1);
    assert!(!few.contains("work failed"), "{few}");
}
