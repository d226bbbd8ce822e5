//! Verdicts from samples, and their audit.
//!
//! The error allowed in all, `1 - confidence`, is shared out: a quarter to the endpoint gate, a quarter to the
//! confirmation that precedes a name, and as much as all of it to the verdicts of the search together: these only lead
//! to a commit, and one that led astray is found by the confirmation and retracted. Within each share it is split evenly
//! over the verdicts expected and the looks that may be taken (Bonferroni), so that looking again does not raise it.

use super::event::{EndpointOutcome, Event};
use super::phase::MAX_CONFIRMATIONS;
use super::state::{Boot, Confirmation, State};
use crate::model::{CommitId, Effect, Evidence, Find, Sense, Verdict};
use crate::stats::{Contrast, Estimate, Group, Share, StatsError, share};
use std::ops::RangeInclusive;

/// A verdict of the journal beside the one that its samples give now.
#[derive(Debug, Clone, PartialEq)]
pub struct Recomputed {
    /// As journaled.
    pub recorded: Event,
    /// As computed from the samples before it; an error in words if it cannot be.
    pub computed: Result<Event, String>,
}

/// Mean logarithm of the judged metric over a boot's counted runs; `None` without any.
fn boot_mean(state: &State, boot: &Boot) -> Option<f64> {
    let recipe = &state.plan.recipe;
    let counted = boot.runs.iter().skip(recipe.judging.warmup_runs as usize);
    let logs: Vec<f64> = counted.filter_map(|r| r.metrics.get(&recipe.metric.name)).map(|v| v.ln()).collect();
    (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
}

/// Stages whose boots count: the search's alone, or all.
const SEARCH: RangeInclusive<u32> = 0..=0;
const ALL: RangeInclusive<u32> = 0..=u32::MAX;

/// Boots and runs that count for a commit, and its group of boot means.
struct Sampled {
    group: Group,
    boots: u32,
    runs: u32,
}

fn sampled(state: &State, commit: &CommitId, stages: RangeInclusive<u32>) -> Result<Sampled, StatsError> {
    let boots: Vec<&Boot> =
        state.boots.iter().filter(|b| b.commit == *commit && stages.contains(&b.stage)).collect();
    let means: Vec<f64> = boots.iter().filter_map(|b| boot_mean(state, b)).collect();
    let warmup = state.plan.recipe.judging.warmup_runs as usize;
    let runs: usize = boots.iter().map(|b| b.runs.len().saturating_sub(warmup)).sum();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Ok(Sampled { boots: count(means.len()), runs: count(runs), group: Group::of(&means)? })
}

/// Group of a commit's boots on the metric's own scale, in multiples of `unit` (a logarithm). Shares are told on that
/// scale, as a reader of the numbers computes them: 96 is 46 % of the way from 92.6 to 100.
fn on_own_scale(
    state: &State,
    commit: &CommitId,
    stages: RangeInclusive<u32>,
    unit: f64,
) -> Result<Group, StatsError> {
    let boots = state.boots.iter().filter(|b| b.commit == *commit && stages.contains(&b.stage));
    let values: Vec<f64> =
        boots.filter_map(|b| boot_mean(state, b)).map(|mean| (mean - unit).exp()).collect();
    Group::of(&values)
}

/// Good and bad on the metric's own scale, in multiples of good's level; and that level, as a logarithm.
fn ends_on_own_scale(state: &State) -> Result<(Group, Group, f64), StatsError> {
    let unit = sampled(state, &state.plan.good.commit, SEARCH)?.group.mean;
    let good = on_own_scale(state, &state.plan.good.commit, SEARCH, unit)?;
    let bad = on_own_scale(state, &state.plan.bad.commit, SEARCH, unit)?;
    Ok((good, bad, unit))
}

/// Error left after the confidence asked, in (0, 0.5).
fn alpha(state: &State) -> f64 {
    1.0 - state.plan.recipe.confidence
}

/// Looks a kernel may get.
fn looks(state: &State) -> f64 {
    let judging = &state.plan.recipe.judging;
    f64::from(judging.max_boots.div_ceil(judging.boots))
}

/// Turns an interval of `ln(later / reference)` into a relative effect, positive = worse.
pub(super) fn effect(state: &State, log_ratio: Estimate) -> Effect {
    let sign = state.plan.recipe.metric.direction.worse_sign();
    let relative = |x: f64| sign * x.exp_m1();
    let (a, b) = (relative(log_ratio.low), relative(log_ratio.high));
    Effect { relative: relative(log_ratio.value), low: a.min(b), high: a.max(b) }
}

/// Effect of `later` against `reference`, with the interval at the plan's confidence.
pub(super) fn effect_between(state: &State, later: &Group, reference: &Group) -> Effect {
    effect(state, Contrast::of(&[(1.0, later), (-1.0, reference)]).interval(alpha(state)))
}

/// Judges bad against good.
pub(super) fn endpoints(state: &State) -> Result<(EndpointOutcome, Evidence), StatsError> {
    let plan = &state.plan;
    let bad = sampled(state, &plan.bad.commit, SEARCH)?;
    let good = sampled(state, &plan.good.commit, SEARCH)?;
    let worse = plan.recipe.metric.direction.worse_sign();
    let contrast = Contrast::of(&[(worse, &bad.group), (-worse, &good.group)]);
    // Either sign may be claimed by chance.
    let level = alpha(state) / 4.0 / looks(state) / 2.0;
    let given_up = state.endpoints.as_ref().map_or(0, |e| e.looks) + 1 >= looks(state) as u32;
    let outcome = endpoint_outcome(state, &contrast, level, given_up);
    let tail = contrast.p_above_zero();
    let evidence = Evidence {
        boots: bad.boots,
        runs: bad.runs,
        effect: effect_between(state, &bad.group, &good.group),
        p_error: tail.min(1.0 - tail),
        level,
        reference: format!("the good endpoint, {} boots, {} runs", good.boots, good.runs),
    };
    Ok((outcome, evidence))
}

/// `contrast`: bad - good in log units, positive = worse.
fn endpoint_outcome(state: &State, contrast: &Contrast, level: f64, given_up: bool) -> EndpointOutcome {
    let minimum = state.plan.recipe.minimum_effect.0.ln_1p();
    let interval = contrast.interval(2.0 * level);
    let shown = if interval.low > 0.0 && interval.high >= minimum {
        Some(Sense::Regression)
    } else if interval.high < 0.0 && interval.low <= -minimum {
        Some(Sense::Improvement)
    } else {
        None
    };
    let too_small = interval.low > -minimum && interval.high < minimum;
    match (shown, state.plan.recipe.find) {
        (Some(sense), Find::Any)
        | (Some(sense @ Sense::Regression), Find::Regression)
        | (Some(sense @ Sense::Improvement), Find::Improvement) => EndpointOutcome::Change(sense),
        (Some(Sense::Regression), Find::Improvement) | (Some(Sense::Improvement), Find::Regression) => {
            EndpointOutcome::OppositeSign
        }
        (None, Find::Any | Find::Regression | Find::Improvement) if too_small || given_up => {
            EndpointOutcome::NoDifference
        }
        (None, Find::Any | Find::Regression | Find::Improvement) => EndpointOutcome::Undecided,
    }
}

/// `+1` or `-1`: turns log units of the metric into "towards the bad endpoint". A regression unless the gate said
/// otherwise.
fn towards_bad(state: &State) -> f64 {
    let sense = match state.endpoints.as_ref().map(|e| e.outcome) {
        Some(EndpointOutcome::Change(sense)) => sense,
        Some(EndpointOutcome::NoDifference | EndpointOutcome::OppositeSign | EndpointOutcome::Undecided)
        | None => Sense::Regression,
    };
    sense.sign() * state.plan.recipe.metric.direction.worse_sign()
}

/// Judges a candidate: is it on bad's side of the middle between the endpoints, or on good's?
pub(super) fn candidate(state: &State, commit: &CommitId) -> Result<(Verdict, Evidence), StatsError> {
    let own = sampled(state, commit, ALL)?;
    let good = sampled(state, &state.plan.good.commit, SEARCH)?;
    let bad = sampled(state, &state.plan.bad.commit, SEARCH)?;
    let sign = towards_bad(state);
    let contrast = Contrast::of(&[(sign, &own.group), (-sign / 2.0, &good.group), (-sign / 2.0, &bad.group)]);
    let bits = (state.plan.candidates as f64 + 1.0).log2().ceil();
    // A halving takes `bits` verdicts; with them the culprit's parents, in most cases one or two.
    let level = alpha(state) / (bits + 2.0) / looks(state);
    let regressed = contrast.p_above_zero();
    let baseline = 1.0 - regressed;
    let verdict = if regressed < level {
        Verdict::Regressed
    } else if baseline < level {
        Verdict::Baseline
    } else {
        Verdict::Undecided
    };
    let evidence = Evidence {
        boots: own.boots,
        runs: own.runs,
        effect: effect_between(state, &own.group, &good.group),
        p_error: regressed.min(baseline),
        level,
        reference: format!("the middle between good ({} boots) and bad ({} boots)", good.boots, bad.boots),
    };
    Ok((verdict, evidence))
}

/// Judges a confirmation from its fresh boots alone, in as many looks as there may be confirmations: the culprit must
/// differ from every parent towards bad.
pub(super) fn confirmation(state: &State, going: &Confirmation) -> Result<(bool, Evidence), StatsError> {
    let stages = going.first_stage..=going.stage;
    let culprit = sampled(state, &going.culprit, stages.clone())?;
    let sign = towards_bad(state);
    let level = alpha(state) / 4.0 / f64::from(MAX_CONFIRMATIONS);
    let mut p_error = 0.0;
    let mut weakest: Option<(f64, Sampled)> = None;
    for parent in &going.parents {
        let parent = sampled(state, parent, stages.clone())?;
        let contrast = Contrast::of(&[(sign, &culprit.group), (-sign, &parent.group)]);
        p_error += contrast.p_above_zero();
        if weakest.as_ref().is_none_or(|(value, _)| contrast.value < *value) {
            weakest = Some((contrast.value, parent));
        }
    }
    let Some((_, parent)) = weakest else { return Err(StatsError::TooFew(0)) };
    let evidence = Evidence {
        boots: culprit.boots,
        runs: culprit.runs,
        effect: effect_between(state, &culprit.group, &parent.group),
        p_error: p_error.min(1.0),
        level,
        reference: format!("its parent(s), {} fresh boots each, interleaved", parent.boots),
    };
    Ok((p_error < level, evidence))
}

/// Share of the endpoint difference between the culprit and the parent it differs least from; fresh boots of these.
pub(super) fn explained(state: &State, going: &Confirmation) -> Option<Share> {
    let (good, bad, unit) = ends_on_own_scale(state).ok()?;
    let stages = going.first_stage..=going.stage;
    let culprit = on_own_scale(state, &going.culprit, stages.clone(), unit).ok()?;
    let parents = going.parents.iter().filter_map(|p| on_own_scale(state, p, stages.clone(), unit).ok());
    let shares = parents.filter_map(|parent| share((&culprit, &parent), (&bad, &good), alpha(state)));
    shares.min_by(|a, b| a.value.total_cmp(&b.value))
}

/// Share that the revert brought back, and the reverted kernel's effect against bad.
pub(super) fn restored(state: &State) -> Result<(Option<Share>, Effect), StatsError> {
    let reverted = state.reverted().ok_or(StatsError::TooFew(0))?;
    let (good, bad, unit) = ends_on_own_scale(state)?;
    let own = on_own_scale(state, reverted, SEARCH, unit)?;
    let effect = effect_between(
        state,
        &sampled(state, reverted, SEARCH)?.group,
        &sampled(state, &state.plan.bad.commit, SEARCH)?.group,
    );
    Ok((share((&bad, &own), (&bad, &good), alpha(state)), effect))
}

/// Computes again what `event` records, from the state just before it. `None` for events that record no verdict.
pub fn recompute(before: &State, event: &Event) -> Option<Recomputed> {
    let computed =
        match event {
            Event::EndpointsJudged { .. } => {
                endpoints(before).map(|(outcome, evidence)| Event::EndpointsJudged { outcome, evidence })
            }
            Event::Judged { commit, .. } => candidate(before, commit)
                .map(|(verdict, evidence)| Event::Judged { commit: commit.clone(), verdict, evidence }),
            Event::ConfirmationFinished { culprit, .. } => match &before.confirmation {
                Some(going) => confirmation(before, going).map(|(confirmed, evidence)| {
                    Event::ConfirmationFinished { culprit: culprit.clone(), confirmed, evidence }
                }),
                None => Err(StatsError::TooFew(0)),
            },
            Event::Planned { .. }
            | Event::Opened { .. }
            | Event::TailCut { .. }
            | Event::BuildStarted { .. }
            | Event::BuildFinished { .. }
            | Event::BootStarted { .. }
            | Event::BootFinished { .. }
            | Event::RunStarted { .. }
            | Event::RunFinished { .. }
            | Event::BootEnded { .. }
            | Event::StepInterrupted { .. }
            | Event::VerdictRetracted { .. }
            | Event::PathsDropped { .. }
            | Event::ConfirmationStarted { .. }
            | Event::Halted { .. }
            | Event::Concluded { .. } => return None,
        };
    Some(Recomputed { recorded: event.clone(), computed: computed.map_err(|e| format!("failed to {e}")) })
}
