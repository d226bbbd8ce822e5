//! What a profile asks for around a run, over whole sessions: which runs count, what is told beside the verdict.

use crate::common::sim::{Sim, id, normal, plan};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use sched_bisect::lab::stage::IDLE;
use sched_bisect::model::{ConclusionKind, Find, Relative};
use sched_bisect::report::{Report, text};
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
    text(&Report::of(&sim.dag, &sim.state)).split_whitespace().collect::<Vec<_>>().join(" ")
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
