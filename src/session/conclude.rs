//! The end of a session in words and numbers.

mod revert;

use super::event::{EndpointOutcome, Halt};
use super::judge;
use super::phase::{Over, knowledge};
use super::plan::Purpose;
use super::state::State;
use crate::model::{
    CommitId, Conclusion, ConclusionKind, Effect, Explained, Sense, Suspect, Untestable, Verdict,
};
use crate::search::{Dag, Known};

/// The reason of a suspect that nothing is known of.
pub const NOT_MEASURED: &str = "not measured";

/// Builds the conclusion for a way of ending.
pub(super) fn conclusion(dag: &Dag, state: &State, over: &Over) -> Conclusion {
    match over {
        Over::NoDifference => no_difference(state),
        Over::OppositeSign => opposite_sign(state),
        Over::MergeBaseChanged(base) => merge_base(state, base, true),
        Over::MergeBaseUnknown(base) => merge_base(state, base, false),
        Over::Culprit(culprit) => named(dag, state, culprit),
        Over::Set(commits) => inseparable(dag, state, commits),
        Over::Unconfirmed(commits) => unconfirmed(dag, state, commits),
        Over::NotMonotonic => not_monotonic(dag, state),
        Over::RevertUnmade => revert::unmade(state),
        Over::RevertUntestable => revert::untestable(state),
        Over::RevertMeasured => revert::measured(state),
    }
}

/// Suspects that remain, each as likely as the others, with the reason why it is not excluded.
pub fn suspects(dag: &Dag, state: &State) -> Vec<Suspect> {
    let remaining = knowledge(dag, state).remaining(dag);
    let commits = remaining.iter().flat_map(|r| r.iter()).map(|at| dag.nodes()[at].commit.clone());
    listed(state, &commits.collect::<Vec<_>>())
}

fn listed(state: &State, commits: &[CommitId]) -> Vec<Suspect> {
    let probability = 1.0 / commits.len().max(1) as f64;
    let suspect =
        |commit: &CommitId| Suspect { commit: commit.clone(), probability, reason: reason(state, commit) };
    commits.iter().map(suspect).collect()
}

fn reason(state: &State, commit: &CommitId) -> String {
    let known = state.commit(commit);
    let untestable = |u: &Untestable| format!("{}: {}", u.kind, u.reason);
    match (known.and_then(|k| k.untestable.as_ref()), known.and_then(|k| k.verdict.as_ref())) {
        (Some(reason), _) => untestable(reason),
        (None, Some((verdict, evidence))) => format!("{verdict} after {} boots", evidence.boots),
        (None, None) if state.plan.skipped.contains(commit) => "left out (--skip)".to_owned(),
        (None, None) if *commit == state.plan.bad.commit => "the bad endpoint".to_owned(),
        (None, None) => NOT_MEASURED.to_owned(),
    }
}

/// A conclusion without any claim; the others fill in what they have.
fn bare(kind: ConclusionKind, exit: u8, reason: String, next_step: String) -> Conclusion {
    Conclusion {
        kind,
        commit: None,
        probability: None,
        confirmed: false,
        effect: None,
        explained: None,
        restored: None,
        suspects: Vec::new(),
        not_monotonic: Vec::new(),
        outside_paths: false,
        reason,
        next_step,
        exit,
    }
}

fn endpoint_words(state: &State) -> String {
    let metric = &state.plan.recipe.metric;
    state.endpoints.as_ref().map_or_else(String::new, |e| {
        let words = e.evidence.effect.words(metric.direction);
        format!("from {} to {} {} changes by {words}", state.plan.good.rev, state.plan.bad.rev, metric.name)
    })
}

fn no_difference(state: &State) -> Conclusion {
    let minimum = state.plan.recipe.minimum_effect.0;
    let reaches = |effect: Effect| effect.low <= -minimum || effect.high >= minimum;
    // All boots are taken, and the interval still holds a change that was asked for.
    let open = state.endpoints.as_ref().is_some_and(|e| reaches(e.evidence.effect));
    let asked = format!("the {:.1} % that was asked for", minimum * 100.0);
    let (found, next) = if open {
        (
            format!("all boots of the endpoints are taken, and they neither show nor exclude {asked}"),
            "take more boots (judging.max_boots) or longer runs, or make the workload steadier",
        )
    } else {
        (
            format!("the endpoints do not differ by {asked}"),
            "check that the profile's load and tunables are those of the report, or ask for a smaller \
             --minimum-effect with more boots",
        )
    };
    let reason = format!("cannot reproduce the difference: {found}: {}", endpoint_words(state));
    bare(ConclusionKind::NoDifference, 4, reason, next.to_owned())
}

fn opposite_sign(state: &State) -> Conclusion {
    let asked = state.plan.recipe.find;
    let reason =
        format!("endpoints do not show the asked {asked} (opposite sign): {}", endpoint_words(state));
    let next =
        "look for the other sign with --find any, or check the load parameters: the same kernels can differ \
                either way under another load"
            .to_owned();
    bare(ConclusionKind::OppositeSign, 4, reason, next)
}

fn merge_base(state: &State, base: &CommitId, changed: bool) -> Conclusion {
    let (good, bad) = (&state.plan.good.rev, &state.plan.bad.rev);
    let short = base.short();
    let what = if changed { "shows the change already" } else { "cannot be told from either endpoint" };
    let reason = format!(
        "{good} is not an ancestor of {bad}, and their merge base {short} {what}: what differs was changed between the \
         merge base and {good}, not on the way to {bad}"
    );
    let next = format!("sched-bisect start {} {good} --find any", base.short());
    bare(ConclusionKind::Stopped, 4, reason, next)
}

fn named(dag: &Dag, state: &State, culprit: &CommitId) -> Conclusion {
    let confirmation = state.confirmation.as_ref();
    let evidence = confirmation.and_then(|c| c.result.as_ref()).map(|(_, evidence)| evidence);
    let explained = confirmation.and_then(|c| judge::explained(state, c));
    let parents = confirmation.map_or(&[][..], |c| &c.parents);
    if let Some(effect) = evidence.map(|e| e.effect)
        && is_minor(state, effect)
        && effect.low.abs().max(effect.high.abs()) < state.plan.recipe.minimum_effect.0
    {
        return spread(dag, state, culprit, parents, effect);
    }
    let subject = subject(dag, culprit);
    let sense = match state.endpoints.as_ref().map(|e| e.outcome) {
        Some(EndpointOutcome::Change(sense)) => sense,
        Some(EndpointOutcome::NoDifference | EndpointOutcome::OppositeSign | EndpointOutcome::Undecided)
        | None => Sense::Regression,
    };
    let outside = state.paths_dropped.is_some();
    let mut reason = format!("{} (\"{subject}\") is the {sense}", culprit.short());
    reason.push_str(&match parents.len() {
        1 => "; its parent, measured, does not show it".to_owned(),
        n => format!("; it is a merge, and its {n} parents, each measured, do not show it"),
    });
    if outside {
        reason.push_str("; it is outside the given paths");
    }
    if let Some(part) = explained.filter(|e| e.high < 1.0) {
        reason.push_str(&format!(
            "; it explains only part of the endpoint difference ({:.0} %)",
            part.value * 100.0
        ));
    }
    let mut conclusion = bare(ConclusionKind::Culprit, 0, reason, after_culprit(culprit, parents));
    conclusion.commit = Some(culprit.clone());
    conclusion.probability = evidence.map(|e| 1.0 - e.p_error);
    conclusion.confirmed = evidence.is_some();
    conclusion.effect = evidence.map(|e| e.effect);
    conclusion.explained = explained.map(|s| Explained { share: s.value, low: s.low, high: s.high });
    conclusion.outside_paths = outside;
    conclusion.not_monotonic = pairs(dag, state);
    conclusion
}

/// The revert; for a merge also the search for what hurts only together with the main line.
fn after_culprit(culprit: &CommitId, parents: &[CommitId]) -> String {
    let mut next = format!("sched-bisect revert-test {}", culprit.short());
    if let [main, side, ..] = parents {
        next.push_str(&format!(
            " --mainline 1. Two changes may hurt only together; to find the one on the side branch, put it on top of \
             the main line and search there: git rebase {main} {side} && sched-bisect start {main} HEAD",
            main = main.short(),
            side = side.short()
        ));
    }
    next
}

fn set(state: &State, commits: &[CommitId], why: &str) -> Conclusion {
    let reason = format!("the culprit is one of {} commits: {why}", commits.len());
    let next =
        "make the untestable ones build and boot (a fix-up patch in the profile) and start again on the \
                smaller range"
            .to_owned();
    let mut conclusion = bare(ConclusionKind::CulpritSet, 3, reason, next);
    conclusion.suspects = listed(state, commits);
    conclusion
}

/// The suspects cannot be measured apart. Where the whole set makes little of the difference, that is told.
fn inseparable(dag: &Dag, state: &State, commits: &[CommitId]) -> Conclusion {
    let mut conclusion = set(state, commits, "what is left cannot be measured apart");
    let ends = state.endpoints.as_ref().map_or(0.0, |e| e.evidence.effect.relative);
    let shown = |commit: &CommitId| match state.commit(commit).and_then(|known| known.verdict.as_ref()) {
        Some((_, evidence)) => evidence.effect.relative / ends,
        None if *commit == state.plan.bad.commit => 1.0,
        None => 0.0,
    };
    let is_good = |commit: &CommitId| {
        let verdict = state.commit(commit).and_then(|known| known.verdict.as_ref());
        verdict.is_some_and(|(verdict, _)| *verdict == Verdict::Baseline)
    };
    let nodes = commits.iter().filter_map(|c| dag.index(c)).map(|at| &dag.nodes()[at]);
    let parents = nodes.flat_map(|node| &node.parents).map(|&at| &dag.nodes()[at].commit);
    let before = parents.filter(|c| is_good(c)).map(&shown).fold(0.0, f64::max);
    let part = commits.last().map_or(1.0, shown) - before;
    if part < 0.5 {
        conclusion.reason.push_str(&format!(
            "; all of them together make only about {:.0} % of the endpoint difference, which may be spread over more \
             commits",
            (part * 100.0).max(0.0)
        ));
    }
    conclusion
}

/// Whether the commit that the search led to makes so little of the change that others must make the rest: even the far
/// end of the interval is less than half of the endpoint difference.
fn is_minor(state: &State, effect: Effect) -> bool {
    let ends = state.endpoints.as_ref().map_or(0.0, |e| e.evidence.effect.relative);
    let towards_bad = |x: f64| x * ends.signum();
    towards_bad(effect.low).max(towards_bad(effect.high)) < ends.abs() / 2.0
}

/// The search led to a commit that fresh boots do not show the change at. They may be too few; or they contradict the
/// search, and then no verdict of it excludes anything.
fn unconfirmed(dag: &Dag, state: &State, commits: &[CommitId]) -> Conclusion {
    let evidence = state.confirmation.as_ref().and_then(|c| c.result.as_ref()).map(|(_, evidence)| evidence);
    let (Some(culprit), Some(evidence)) = (commits.first(), evidence) else {
        return set(state, commits, "it could not be confirmed");
    };
    let metric = &state.plan.recipe.metric;
    let found = format!(
        "not confirmed: the search leads to {} (\"{}\"), but between fresh, interleaved boots of it and its parent(s) {} \
         changes by {}",
        culprit.short(),
        subject(dag, culprit),
        metric.name,
        evidence.effect.words(metric.direction)
    );
    if !is_minor(state, evidence.effect) {
        let mut conclusion = set(state, commits, "");
        conclusion.reason = format!("{found}: too noisy to tell");
        conclusion.next_step =
            "start again with more boots (judging.boots, judging.confirm_boots) or a steadier workload"
                .to_owned();
        return conclusion;
    }
    let mut conclusion = set(state, &candidates(dag), "");
    conclusion.reason = format!(
        "{found}. Either the machine's level moved between the boots of the search, or many small steps make the \
         difference; no commit can be excluded or named"
    );
    conclusion.next_step = format!(
        "look for what changed on the machine meanwhile (sched-bisect log {}) and start again",
        state.plan.session
    );
    conclusion
}

/// A confirmed step that is too small to be the cause of the endpoint difference.
fn spread(dag: &Dag, state: &State, culprit: &CommitId, parents: &[CommitId], effect: Effect) -> Conclusion {
    let recipe = &state.plan.recipe;
    let (good, bad) = (&state.plan.good.rev, &state.plan.bad.rev);
    let mut conclusion = set(state, &candidates(dag), "");
    conclusion.reason = format!(
        "the difference is spread over several commits: {} (\"{}\"), at which it passes its middle, changes {} by {}, \
         less than the {:.1} % worth finding",
        culprit.short(),
        subject(dag, culprit),
        recipe.metric.name,
        effect.words(recipe.metric.direction),
        recipe.minimum_effect.0 * 100.0
    );
    let parent = parents.first().unwrap_or(culprit).short();
    conclusion.next_step = format!(
        "search each half with a smaller --minimum-effect: sched-bisect start {good} {parent}; sched-bisect start {} {bad}",
        culprit.short()
    );
    conclusion
}

/// All commits of the range.
fn candidates(dag: &Dag) -> Vec<CommitId> {
    dag.nodes().iter().filter(|node| !node.boundary).map(|node| node.commit.clone()).collect()
}

fn subject<'a>(dag: &'a Dag, commit: &CommitId) -> &'a str {
    dag.index(commit).map_or("", |at| dag.nodes()[at].subject.as_str())
}

fn pairs(dag: &Dag, state: &State) -> Vec<(CommitId, CommitId)> {
    let id = |at: usize| dag.nodes()[at].commit.clone();
    let knowledge = knowledge(dag, state);
    let mut pairs: Vec<_> =
        knowledge.contradictions(dag).into_iter().map(|(bad, good)| (id(bad), id(good))).collect();
    // The graph has no edges among the boundary, whose commits are all ancestors of good.
    let boundary = dag.nodes().iter().zip(&knowledge.0).filter(|(node, _)| node.boundary);
    for (node, _) in boundary.filter(|(_, known)| **known == Known::Bad) {
        if !pairs.iter().any(|(bad, _)| *bad == node.commit) {
            pairs.push((node.commit.clone(), state.plan.good.commit.clone()));
        }
    }
    pairs
}

fn not_monotonic(dag: &Dag, state: &State) -> Conclusion {
    let pairs = pairs(dag, state);
    let words: Vec<String> = pairs
        .iter()
        .map(|(bad, good)| format!("{} is bad, its descendant {} good", bad.short(), good.short()))
        .collect();
    let reason = format!("{}; no single commit explains that", words.join("; "));
    let next = pairs.first().map_or_else(String::new, |(bad, _)| {
        format!("sched-bisect start {} {}", state.plan.good.rev, bad.short())
    });
    let mut conclusion = bare(ConclusionKind::NotMonotonic, 9, reason, next);
    conclusion.not_monotonic = pairs;
    conclusion
}

/// The conclusion, or where the session stands if it has none: kind `stopped`, with the suspects left and the exit
/// status of the reason (75 interrupted or running, 5 infrastructure, 6 budget).
pub fn outcome(dag: &Dag, state: &State) -> Conclusion {
    if let Some(conclusion) = &state.conclusion {
        return conclusion.clone();
    }
    let resume = format!("sched-bisect resume {}", state.plan.session);
    let (exit, reason, next) = match &state.halted {
        Some(Halt::Infra(failure)) => (
            5,
            format!("our side broke: {}", failure.reason),
            format!("mend it, then {resume} (the recipe is fixed: another one needs a new session)"),
        ),
        Some(Halt::Budget { spent_s }) => (
            6,
            format!("the budget is used up ({} of machine time)", duration(*spent_s as f64)),
            format!("{resume} --budget 4h (or as much as there is)"),
        ),
        None => (75, "no conclusion yet: it was interrupted, or is running".to_owned(), resume),
    };
    let mut conclusion = bare(ConclusionKind::Stopped, exit, reason, next);
    if matches!(state.plan.purpose, Purpose::Bisect) {
        conclusion.suspects = suspects(dag, state);
    }
    conclusion
}

/// Seconds as text for people: "3 h 20 min", "4 min 10 s", "7 s".
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}
