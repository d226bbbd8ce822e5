//! Whether the SUT was the limit: told beside the verdict, never part of it.
//!
//! A SUT that waits for its load is as fast with a slow kernel as with a fast one. Verdict and numbers stand; the reader is
//! told that the difference may be larger than it looks, or none of the scheduler's.

use crate::lab::stage::IDLE;
use crate::model::CommitId;
use crate::session::{LDG, Run, SUT, State};
use crate::stats::median;

/// Why the load is doubtful, one sentence each; empty: it is not, or nothing was asked.
pub(super) fn not_saturated(state: &State) -> Vec<String> {
    let plan = &state.plan;
    let Some(asked) = plan.recipe.setup.saturation else { return Vec::new() };
    let mut words = Vec::new();
    if let Some(most) = asked.idle {
        let unknown = state.searched().flat_map(|b| &b.runs).find_map(|run| run.settings.get(IDLE));
        words.extend(unknown.map(|why| {
            format!("not known whether the SUT was the limit: {why}; shorten saturation.ramp_up, or lengthen the run")
        }));
        let ends = [(&plan.good.rev, &plan.good.commit), (&plan.bad.rev, &plan.bad.commit)];
        let idle = ends.iter().filter_map(|(rev, commit)| Some((rev, idle_of(state, commit)?)));
        let over: Vec<String> = idle
            .filter(|(_, percent)| *percent > most.0 * 100.0)
            .map(|(rev, percent)| format!("{percent:.0} % in runs of {rev}"))
            .collect();
        if !over.is_empty() {
            words.push(format!(
                "not saturated: the SUT was idle {} ({:.0} % may be); more load may show another difference",
                over.join(", "),
                most.0 * 100.0
            ));
        }
    }
    if let Some(least) = asked.ldg_cpus
        && let Some((ldg, sut)) = state.boots.iter().flat_map(|b| &b.runs).find_map(cpus)
        && f64::from(ldg) < least * f64::from(sut)
    {
        words.push(format!(
            "not saturated: the load generators have {ldg} CPUs for the SUT's {sut}; {least} for each of its CPUs are asked"
        ));
    }
    words
}

fn idle_of(state: &State, commit: &CommitId) -> Option<f64> {
    let boots = state.searched().filter(|b| b.commit == *commit);
    let runs = boots.flat_map(|b| b.runs.iter().skip(state.warmup(b)));
    let idle: Vec<f64> = runs.filter_map(|run| run.metrics.get(IDLE)).copied().collect();
    (!idle.is_empty()).then(|| median(&idle))
}

/// CPUs of all load generators, and of the SUT.
fn cpus(run: &Run) -> Option<(u32, u32)> {
    let count = |role: &str| run.settings.get(&format!("{role}.cpus"))?.parse::<u32>().ok();
    let roles = run.settings.keys().filter_map(|key| key.strip_suffix(".cpus"));
    let ldg: u32 = roles.filter(|role| role.starts_with(LDG)).filter_map(count).sum();
    (ldg > 0).then_some(ldg).zip(count(SUT))
}
