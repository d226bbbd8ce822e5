//! What makes the workload's own numbers doubtful: told beside the verdict, never part of it.
//!
//! A number that is printed in steps as large as the wanted effect cannot show it. A run in which a part of the work failed
//! did other work than one in which none did.

use super::seen::values;
use crate::session::{Endpoint, State};
use crate::stats::median;
use crate::workload::{Declared, known_of};
use std::collections::BTreeSet;

/// Steps that the wanted effect is to span.
const STEPS: f64 = 4.0;

/// Failed part of the work, 0 to 1, that is told by itself, and that is told where the other endpoint has less than a tenth.
const FAILED: (f64, f64) = (0.01, 0.001);

/// Why the runs are too short for the wanted effect, in one sentence; `None`: they are not, or the step is not known.
pub(super) fn too_short(state: &State) -> Option<String> {
    let recipe = &state.plan.recipe;
    let metric = &recipe.metric;
    let resolution = known_of(&recipe.reading, &recipe.machine, &metric.name)?.resolution?;
    let ends = [&state.plan.good, &state.plan.bad];
    let measured = ends.into_iter().map(|end| values(state, &end.commit, &metric.name));
    let shortest = measured.filter(|of| !of.is_empty()).map(|of| median(&of)).min_by(f64::total_cmp)?;
    let step = resolution / shortest;
    (step * STEPS > recipe.minimum_effect.0).then(|| {
        format!(
            "too short for the wanted effect: {} is printed in steps of {resolution} {}, {:.1} % of {shortest} {}; to show {:.1} %, give \
             the workload more to do",
            metric.name,
            metric.unit,
            step * 100.0,
            metric.unit,
            recipe.minimum_effect.0 * 100.0
        )
    })
}

/// Where a part of the work failed, one sentence a metric.
pub(super) fn failed(state: &State) -> Vec<String> {
    let recipe = &state.plan.recipe;
    let names: BTreeSet<&String> =
        state.searched().flat_map(|b| &b.runs).flat_map(|run| run.metrics.keys()).collect();
    let known = names.into_iter().filter_map(|name| known_of(&recipe.reading, &recipe.machine, name));
    known.filter_map(|declared| failed_of(state, declared)).collect()
}

fn failed_of(state: &State, declared: &Declared) -> Option<String> {
    let all = declared.fails?;
    let ends = [&state.plan.good, &state.plan.bad];
    let of = |end: &Endpoint, name: &str| {
        let values = values(state, &end.commit, name);
        (!values.is_empty()).then(|| median(&values))
    };
    let [good, bad] = ends.map(|end| Some((of(end, declared.name)?, of(end, all)?)));
    let part = |(failed, done): (f64, f64)| failed / (failed + done).max(f64::MIN_POSITIVE);
    let (good, bad) = (good?, bad?);
    let (least, most) = (part(good).min(part(bad)), part(good).max(part(bad)));
    let is_one_sided = most >= FAILED.1 && least < most / 10.0;
    (most >= FAILED.0 || is_one_sided).then(|| {
        format!(
            "a part of the work failed: {} is {} in runs of {} and {} in runs of {} ({:.1} % and {:.1} % of {all}); see why, what is \
             compared is not the same work",
            declared.name,
            good.0,
            state.plan.good.rev,
            bad.0,
            state.plan.bad.rev,
            part(good) * 100.0,
            part(bad) * 100.0
        )
    })
}
