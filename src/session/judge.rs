//! Verdicts and their numbers from the samples, and their audit.
//!
//! What is true is asked of the posterior (`search`); how large it is, of contrasts of boot means with a variance pooled
//! over all kernels of the session, drift removed. The two are independent checks of each other: a name needs the first,
//! a reader can recompute the second by hand.

use super::event::{EndpointOutcome, Event};
use super::planner::{Next, Planner, Wish, counted};
use super::state::{Boot, Confirmation, State};
use crate::model::{CommitId, Effect, Evidence, Sense, SurveyStep, Verdict};
use crate::search::Gate;
use crate::stats::{Contrast, Estimate, Group, Share, share};
use std::ops::RangeInclusive;

/// Probability of "no change" when nothing speaks for it, for the stated error of a gate.
const NO_CHANGE: f64 = 0.2;

/// Log odds that settle a merge base: 99 to 1.
const SURE: f64 = 4.595;

/// Sd below which boots are taken to be this apart, in log units: a metric without noise would divide by zero.
const SD_FLOOR: f64 = 1e-6;

/// A verdict of the journal beside the one that its samples give now.
#[derive(Debug, Clone, PartialEq)]
pub struct Recomputed {
    /// As journaled.
    pub recorded: Event,
    /// As computed from the samples before it; in words where there is none.
    pub computed: Result<Event, String>,
}

impl Recomputed {
    /// Whether both say the same; `exactly`: in every number, else in the verdict alone.
    pub fn agrees(&self, exactly: bool) -> bool {
        let Ok(computed) = &self.computed else { return false };
        if exactly || *computed == self.recorded {
            return *computed == self.recorded;
        }
        match (computed, &self.recorded) {
            (Event::EndpointsJudged { outcome: a, .. }, Event::EndpointsJudged { outcome: b, .. }) => a == b,
            (Event::Judged { commit: a, verdict: v, .. }, Event::Judged { commit: b, verdict: w, .. }) => {
                (a, v) == (b, w)
            }
            (
                Event::ConfirmationFinished { culprit: a, confirmed: v, .. },
                Event::ConfirmationFinished { culprit: b, confirmed: w, .. },
            ) => (a, v) == (b, w),
            (Event::Surveyed { steps: a, .. }, Event::Surveyed { steps: b, .. }) => {
                let named = |steps: &[SurveyStep]| -> Vec<(CommitId, CommitId)> {
                    steps.iter().map(|s| (s.from.clone(), s.to.clone())).collect()
                };
                named(a) == named(b)
            }
            _ => false,
        }
    }
}

/// Stages whose boots count: all, or those of a confirmation.
const ALL: RangeInclusive<u32> = 0..=u32::MAX;

/// Natural logarithm of the judged metric in a run.
pub(super) fn log_value(state: &State, boot: &Boot, index: usize) -> Option<f64> {
    let name = &state.plan.recipe.metric.name;
    boot.runs.get(index).and_then(|run| run.metrics.get(name)).map(|value| value.ln())
}

/// The same of every counted run of a boot.
pub(super) fn log_values(state: &State, boot: &Boot) -> Vec<f64> {
    let from = boot.runs.len() - counted(state, boot);
    (from..boot.runs.len()).filter_map(|index| log_value(state, boot, index)).collect()
}

/// The spread of boot means about their kernels' means, over all kernels.
#[derive(Debug, Clone, Copy)]
struct Pool {
    variance: f64,
    df: f64,
}

/// Boot means of kernels, in log units, positive = worse.
struct Means<'a> {
    state: &'a State,
    planner: &'a Planner,
    pool: Pool,
}

impl<'a> Means<'a> {
    fn of(state: &'a State, planner: &'a Planner) -> Self {
        let mut means = Self { state, planner, pool: Pool { variance: 0.0, df: 0.0 } };
        let engine = planner.engine();
        let reverted = state.reverted().map(|commit| means.values(commit, ALL));
        let kernels = engine.measured().map(|node| engine.means(node, ALL)).chain(reverted);
        let (mut squares, mut df) = (0.0, 0.0);
        for kernel in kernels.filter(|k| k.len() > 1) {
            let mean = kernel.iter().sum::<f64>() / kernel.len() as f64;
            squares += kernel.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
            df += kernel.len() as f64 - 1.0;
        }
        means.pool = Pool { variance: (squares / f64::max(df, 1.0)).max(SD_FLOOR * SD_FLOOR), df };
        means
    }

    /// Means of a commit's boots; of a kernel outside the graph (a revert) as they are.
    fn values(&self, commit: &CommitId, stages: RangeInclusive<u32>) -> Vec<f64> {
        if let Some(node) = self.planner.node(commit) {
            return self.planner.engine().means(node, stages);
        }
        let worse = self.state.plan.recipe.metric.direction.worse_sign();
        let boots = self.state.searched().filter(|b| b.commit == *commit && stages.contains(&b.stage));
        let first = self.planner.engine().first_run().map_or(0.0, |first| first.effect);
        boots
            .map(|boot| log_values(self.state, boot))
            .filter(|runs| !runs.is_empty())
            .map(|runs| (worse * runs.iter().sum::<f64>() - first) / runs.len() as f64)
            .collect()
    }

    fn group(&self, commit: &CommitId, stages: RangeInclusive<u32>) -> Option<Group> {
        let values = self.values(commit, stages);
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        (n > 0).then_some(Group { n, mean, variance: self.pool.variance })
    }

    /// The group on the metric's own scale, in multiples of `unit` (a level in log units). Shares are told on that
    /// scale, as a reader of the numbers computes them: 96 is 46 % of the way from 92.6 to 100.
    fn on_own_scale(&self, commit: &CommitId, stages: RangeInclusive<u32>, unit: f64) -> Option<Group> {
        let worse = self.state.plan.recipe.metric.direction.worse_sign();
        let group = self.group(commit, stages)?;
        let mean = (worse * (group.mean - unit)).exp();
        Some(Group { mean, variance: group.variance * mean * mean, ..group })
    }

    fn effect(&self, later: &Group, reference: &Group) -> Effect {
        let alpha = 1.0 - self.state.plan.recipe.confidence;
        let contrast = Contrast::pooled(&[(1.0, later), (-1.0, reference)], self.pool.df);
        effect(self.state, contrast.interval(alpha))
    }

    fn share(&self, part: (&Group, &Group), whole: (&Group, &Group)) -> Option<Share> {
        share(part, whole, 1.0 - self.state.plan.recipe.confidence, Some(self.pool.df))
    }
}

/// Turns an interval of a difference in log units, positive = worse, into a relative effect.
fn effect(state: &State, log: Estimate) -> Effect {
    let worse = state.plan.recipe.metric.direction.worse_sign();
    let relative = |x: f64| worse * (worse * x).exp_m1();
    let (a, b) = (relative(log.low), relative(log.high));
    Effect { relative: relative(log.value), low: a.min(b), high: a.max(b) }
}

/// Boots and counted runs of a commit in these stages.
fn counts(state: &State, commit: &CommitId, stages: &RangeInclusive<u32>) -> (u32, u32) {
    let boots = state.searched().filter(|b| {
        b.commit == *commit && stages.contains(&b.stage) && !super::planner::is_void(state, b.boot)
    });
    let runs: Vec<usize> = boots.map(|b| counted(state, b)).filter(|n| *n > 0).collect();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    (count(runs.len()), count(runs.iter().sum()))
}

/// Evidence of `later` against `reference`; `p_error` and `level` as given.
fn evidence(
    means: &Means,
    (later, reference): (&CommitId, &CommitId),
    stages: RangeInclusive<u32>,
    p_error: f64,
    words: String,
) -> Evidence {
    let state = means.state;
    let (boots, runs) = counts(state, later, &stages);
    let groups = means.group(later, stages.clone()).zip(means.group(reference, stages));
    let none = Effect { relative: 0.0, low: 0.0, high: 0.0 };
    Evidence {
        boots,
        runs,
        effect: groups.map_or(none, |(later, reference)| means.effect(&later, &reference)),
        p_error: p_error.clamp(0.0, 1.0),
        level: 1.0 - state.plan.recipe.confidence,
        reference: words,
    }
}

/// The endpoints, judged as the engine does.
pub(super) fn gate(state: &State, planner: &Planner, gate: Gate) -> Event {
    let plan = &state.plan;
    let means = Means::of(state, planner);
    let none = planner.engine().belief().p_no_change(NO_CHANGE);
    let (boots, runs) = counts(state, &plan.good.commit, &ALL);
    let words = format!("the good endpoint, {boots} boots, {runs} runs");
    let p_error = match gate {
        Gate::Change(_) | Gate::Opposite => none,
        Gate::None => 1.0 - none,
        Gate::Open => none.min(1.0 - none),
    };
    let evidence = evidence(&means, (&plan.bad.commit, &plan.good.commit), ALL, p_error, words);
    let outcome = match gate {
        Gate::Change(sign) => {
            asked_size(state, &evidence, if sign > 0 { Sense::Regression } else { Sense::Improvement })
        }
        Gate::None | Gate::Open => EndpointOutcome::NoDifference,
        Gate::Opposite => EndpointOutcome::OppositeSign,
    };
    Event::EndpointsJudged { outcome, evidence }
}

/// A change that is surely smaller than what was asked for is none.
fn asked_size(state: &State, evidence: &Evidence, sense: Sense) -> EndpointOutcome {
    let effect = evidence.effect;
    let largest = effect.low.abs().max(effect.high.abs());
    if largest < state.plan.recipe.minimum_effect.0 || is_far_smaller(state, effect) {
        EndpointOutcome::NoDifference
    } else {
        EndpointOutcome::Change(sense)
    }
}

/// Whether even the far end of the interval is less than half of what was reported.
pub(super) fn is_far_smaller(state: &State, effect: Effect) -> bool {
    let largest = effect.low.abs().max(effect.high.abs());
    state.plan.recipe.expected_effect.is_some_and(|e| largest < e.0.abs() / 2.0)
}

/// A verdict that is due: the first, a new one, or the retraction of one that does not stand.
pub(super) fn due(
    state: &State,
    planner: &Planner,
    commit: &CommitId,
    p_bad: f64,
    retract_below: f64,
) -> Option<Event> {
    let sure = state.plan.recipe.confidence;
    let recorded = state.commit(commit).and_then(|c| c.verdict.as_ref()).map(|(verdict, _)| *verdict);
    let of = |verdict: Verdict| match verdict {
        Verdict::Regressed => p_bad,
        Verdict::Baseline => 1.0 - p_bad,
        Verdict::Undecided => 0.0,
    };
    let now = if p_bad >= sure {
        Some(Verdict::Regressed)
    } else if p_bad <= 1.0 - sure {
        Some(Verdict::Baseline)
    } else {
        None
    };
    match (recorded, now) {
        (Some(old), Some(new)) if old == new => None,
        (None | Some(Verdict::Undecided), Some(verdict)) => {
            Some(judged(state, planner, commit, verdict, p_bad))
        }
        (Some(old), _) if old != Verdict::Undecided && of(old) < retract_below => {
            Some(Event::VerdictRetracted {
                commit: commit.clone(),
                reason: format!(
                    "with {} boots of all kernels the probability that it has the change is {:.0} %",
                    state.spent.boots,
                    p_bad * 100.0
                ),
            })
        }
        (Some(_), _) | (None, None) => None,
    }
}

fn judged(state: &State, planner: &Planner, commit: &CommitId, verdict: Verdict, p_bad: f64) -> Event {
    let means = Means::of(state, planner);
    let good = &state.plan.good.commit;
    let p_error = p_bad.min(1.0 - p_bad);
    let words = format!("the posterior over all {} boots", state.spent.boots);
    let evidence = evidence(&means, (commit, good), ALL, p_error, words);
    Event::Judged { commit: commit.clone(), verdict, evidence }
}

/// What a merge base needs: more boots, or its verdict.
pub(super) fn merge_base(state: &State, planner: &Planner, base: &CommitId, odds: f64, tried: usize) -> Next {
    let cap = 2 * planner.engine().gate_cap();
    let verdict = if odds >= SURE {
        Verdict::Regressed
    } else if odds <= -SURE {
        Verdict::Baseline
    } else if tried >= cap {
        Verdict::Undecided
    } else {
        let runs = planner.engine().runs_per_boot(planner.costs(state));
        return Next::Boot(Wish::of_search(base.clone(), 0, runs));
    };
    let p_bad = 1.0 / (1.0 + (-odds).exp());
    Next::Decide(judged(state, planner, base, verdict, p_bad))
}

/// The numbers of a confirmation: culprit against the parent that it differs least from, fresh boots alone.
pub(super) fn confirmation(state: &State, planner: &Planner, going: &Confirmation, confirmed: bool) -> Event {
    let means = Means::of(state, planner);
    let stages = going.first_stage..=going.stage;
    let level = |commit: &CommitId| means.group(commit, stages.clone()).map_or(0.0, |g| g.mean);
    let towards = planner.engine().belief();
    let sign = towards.grid().map_or(1.0, |_| {
        let levels = towards.levels(towards.leader());
        (levels.bad.mean - levels.good.mean).signum()
    });
    let weakest = going.parents.iter().max_by(|a, b| (sign * level(a)).total_cmp(&(sign * level(b))));
    let parent = weakest.unwrap_or(&state.plan.good.commit);
    let (boots, _) = counts(state, parent, &stages);
    let words = format!("its parent(s), {boots} fresh boots each, interleaved");
    let p_error = 1.0 - planner.engine().edge_mass();
    let evidence = evidence(&means, (&going.culprit, parent), stages.clone(), p_error, words);
    Event::ConfirmationFinished { culprit: going.culprit.clone(), confirmed, evidence }
}

/// The parent that a culprit differs least from, by all their boots.
fn nearest_parent<'a>(means: &Means, going: &'a Confirmation) -> Option<&'a CommitId> {
    let culprit = means.group(&going.culprit, ALL)?.mean;
    let distance = |parent: &&CommitId| {
        means.group(parent, ALL).map_or(f64::INFINITY, |group| (culprit - group.mean).abs())
    };
    going.parents.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// A culprit against the parent it differs least from, by all boots of both: the effect, and its share of the endpoint
/// difference.
pub(super) fn step(
    state: &State,
    planner: &Planner,
    going: &Confirmation,
) -> Option<(Effect, Option<Share>)> {
    let means = Means::of(state, planner);
    let parent = nearest_parent(&means, going)?;
    let effect = means.effect(&means.group(&going.culprit, ALL)?, &means.group(parent, ALL)?);
    let unit = means.group(&state.plan.good.commit, ALL)?.mean;
    let on_own_scale = |commit: &CommitId| means.on_own_scale(commit, ALL, unit);
    let ends = (on_own_scale(&state.plan.bad.commit)?, on_own_scale(&state.plan.good.commit)?);
    let part = (on_own_scale(&going.culprit)?, on_own_scale(parent)?);
    Some((effect, means.share((&part.0, &part.1), (&ends.0, &ends.1))))
}

/// All kernels of the last scope that have the change against all that have not, each side as one level: the sharpest
/// estimate of a step, if it is one step and builds do not differ otherwise.
pub(super) fn sides(state: &State, planner: &Planner) -> Option<Effect> {
    let means = Means::of(state, planner);
    let belief = planner.engine().belief();
    belief.grid()?;
    let sure = state.plan.recipe.confidence;
    let (mut bad, mut good) = (Vec::new(), Vec::new());
    for (at, kernel) in belief.kernels().iter().enumerate() {
        let p = belief.p_bad(at);
        let side = if p >= sure {
            &mut bad
        } else if p <= 1.0 - sure {
            &mut good
        } else {
            continue;
        };
        side.extend(planner.engine().means(kernel.node, ALL));
    }
    let group = |values: &[f64]| {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        (n > 0).then_some(Group { n, mean, variance: means.pool.variance })
    };
    Some(means.effect(&group(&bad)?, &group(&good)?))
}

/// Share that the revert brought back, and the reverted kernel's effect against bad.
pub(super) fn restored(state: &State, planner: &Planner) -> Option<(Option<Share>, Effect)> {
    let means = Means::of(state, planner);
    let plan = &state.plan;
    let reverted = state.reverted()?;
    let unit = means.group(&plan.good.commit, ALL)?.mean;
    let good = means.on_own_scale(&plan.good.commit, ALL, unit)?;
    let bad = means.on_own_scale(&plan.bad.commit, ALL, unit)?;
    let own = means.on_own_scale(reverted, ALL, unit)?;
    let effect = means.effect(&means.group(reverted, ALL)?, &means.group(&plan.bad.commit, ALL)?);
    Some((means.share((&bad, &own), (&bad, &good)), effect))
}

/// The effect of a kernel against the good endpoint, by all its boots.
pub fn against_good(state: &State, planner: &Planner, commit: &CommitId) -> Option<Effect> {
    let means = Means::of(state, planner);
    let good = means.group(&state.plan.good.commit, ALL)?;
    let own = means.group(commit, ALL)?;
    (good.n + own.n > 2).then(|| means.effect(&own, &good))
}

/// Computes again what `event` records, from the state just before it and a planner that follows that state. `None` for
/// events that record no verdict.
pub fn recompute(planner: &mut Planner, before: &State, event: &Event) -> Option<Recomputed> {
    let is_verdict = matches!(
        event,
        Event::EndpointsJudged { .. }
            | Event::Judged { .. }
            | Event::ConfirmationFinished { .. }
            | Event::Surveyed { .. }
    );
    if !is_verdict {
        return None;
    }
    let computed = match planner.next(before, None) {
        Next::Decide(event) => Ok(event),
        Next::Boot(wish) => Err(format!("the samples ask for another boot of {} first", wish.commit.short())),
        Next::Run(boot) => Err(format!("the samples ask for another run in boot {boot} first")),
        Next::Over => Err("the samples leave nothing to decide".to_owned()),
    };
    Some(Recomputed { recorded: event.clone(), computed })
}
