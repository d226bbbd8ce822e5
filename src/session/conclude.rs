//! The end of a session in words and numbers.

mod revert;
mod survey;

use super::event::Narrowing;
use super::event::{EndpointOutcome, Halt};
use super::judge;
use super::known::knowledge;
use super::plan::Purpose;
use super::planner::Planner;
use super::state::State;
use crate::model::{
    CommitId, Conclusion, ConclusionKind, Culprit, Effect, Explained, Sense, Suspect, Untestable, Verdict,
};
use crate::search::{Dag, Ending, Known};

/// The reason of a suspect that nothing is known of.
pub const NOT_MEASURED: &str = "not measured";

/// Suspects that a report lists: the likeliest, until together they hold this much.
const CREDIBLE: f64 = 0.99;

/// How many of them at most.
const LISTED: usize = 1000;

/// Builds the conclusion of a session in which nothing is left to measure.
pub(super) fn conclusion(dag: &Dag, state: &State, planner: &mut Planner) -> Conclusion {
    if state.survey().is_some() {
        return survey::measured(state);
    }
    match (&state.plan.purpose, state.endpoints.as_ref().map(|e| e.outcome)) {
        (Purpose::RevertTest { .. }, _) if state.reverted().is_none() => revert::unmade(state),
        (Purpose::RevertTest { .. }, _) if is_reverted_untestable(state) => revert::untestable(state),
        (_, Some(EndpointOutcome::NoDifference)) => no_difference(state),
        (_, Some(EndpointOutcome::OppositeSign)) => opposite_sign(state),
        (Purpose::RevertTest { .. }, _) => revert::measured(state, planner),
        (Purpose::Bisect | Purpose::Survey(_), _) => searched(dag, state, planner),
    }
}

fn is_reverted_untestable(state: &State) -> bool {
    state.reverted().and_then(|c| state.commit(c)).is_some_and(|c| c.untestable.is_some())
}

fn searched(dag: &Dag, state: &State, planner: &mut Planner) -> Conclusion {
    let verdict = |base: &CommitId| state.commit(base).and_then(|c| c.verdict.as_ref()).map(|(v, _)| *v);
    for base in &state.plan.merge_bases {
        match verdict(base) {
            Some(Verdict::Regressed) => return merge_base(state, base, true),
            Some(Verdict::Undecided) => return merge_base(state, base, false),
            Some(Verdict::Baseline) | None => {}
        }
    }
    match planner.ending(state) {
        Ending::Found => found(dag, state, planner),
        // The endpoints do differ; it is the part that was looked at last that does not.
        Ending::NoChange | Ending::NotReproduced if !state.narrowed.is_empty() => scattered(dag, state),
        Ending::NoChange | Ending::NotReproduced => vanished(state, planner),
        Ending::Opposite => opposite_sign(state),
        Ending::Unconfirmed | Ending::Stuck | Ending::Spent if !pairs(dag, state).is_empty() => {
            not_monotonic(dag, state)
        }
        Ending::Unconfirmed => unconfirmed(dag, state, planner),
        Ending::Stuck | Ending::Spent => inseparable(dag, state, planner),
    }
}

/// The commits that may still be the culprit, likeliest first, and why each is not excluded.
pub fn suspects(state: &State, planner: &Planner) -> Vec<Suspect> {
    let by_node = planner.engine().belief().by_node();
    let mut likely: Vec<(usize, f64)> = by_node.into_iter().enumerate().filter(|(_, p)| *p > 0.0).collect();
    likely.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut held = 0.0;
    let mut out = Vec::new();
    for (node, probability) in likely {
        if held >= CREDIBLE || out.len() == LISTED {
            break;
        }
        held += probability;
        let commit = planner.commit(node).clone();
        let reason = reason(state, &commit);
        out.push(Suspect { commit, probability, reason });
    }
    out
}

/// These commits, each as likely as the others.
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
        sides: None,
        explained: None,
        restored: None,
        culprits: Vec::new(),
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
    if let Some((expected, effect)) = smaller(state) {
        let reason = format!(
            "the difference is not the one reported: {:.1} % were expected; {}",
            expected * 100.0,
            endpoint_words(state)
        );
        let next = format!(
            "check the load and the tunables against the report, or search for what is there: --expect {:.1}%",
            effect.relative.abs() * 100.0
        );
        return bare(ConclusionKind::NoDifference, 4, reason, next);
    }
    bare(ConclusionKind::NoDifference, 4, reason, next.to_owned())
}

/// The reported size and the measured effect, where there is a change that is far smaller than reported.
fn smaller(state: &State) -> Option<(f64, Effect)> {
    let expected = state.plan.recipe.expected_effect?.0.abs();
    let effect = state.endpoints.as_ref()?.evidence.effect;
    let is_there = effect.low > 0.0 || effect.high < 0.0;
    (is_there && judge::is_far_smaller(state, effect)).then_some((expected, effect))
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

/// The steps that were confirmed, in the order of the history.
fn culprits(state: &State, planner: &Planner) -> Vec<Culprit> {
    let found = planner.engine().found();
    let mut all: Vec<(usize, Culprit)> = found
        .iter()
        .zip(&state.confirmed)
        .filter_map(|(found, going)| {
            let (_, evidence) = going.result.as_ref()?;
            let (effect, explained) = judge::step(state, planner, going)?;
            let culprit = Culprit {
                commit: going.culprit.clone(),
                suspects: planner.suspects(found),
                parents: going.parents.clone(),
                probability: 1.0 - evidence.p_error,
                effect,
                explained: explained.map(|s| Explained { share: s.value, low: s.low, high: s.high }),
            };
            Some((found.tip, culprit))
        })
        .collect();
    all.sort_by_key(|(node, _)| *node);
    all.into_iter().map(|(_, culprit)| culprit).collect()
}

fn found(dag: &Dag, state: &State, planner: &Planner) -> Conclusion {
    let all = culprits(state, planner);
    let sense = sense(state);
    // The largest step of the sign that was looked for.
    let towards = |c: &&Culprit| sense.sign() * c.effect.relative;
    let Some(main) = all.iter().max_by(|a, b| towards(a).total_cmp(&towards(b))).cloned() else {
        return inseparable(dag, state, planner);
    };
    let effect = main.effect;
    // Steps that are each too small to be worth finding, and make little of the difference.
    if is_minor(state, effect) && effect.low.abs().max(effect.high.abs()) < state.plan.recipe.minimum_effect.0
    {
        return spread(dag, state, &main.commit, &main.parents, effect);
    }
    let mut conclusion = if main.suspects.len() > 1 {
        set_of(state, &main)
    } else {
        bare(
            ConclusionKind::Culprit,
            0,
            named(dag, state, &main, sense),
            after_culprit(&main.commit, &main.parents),
        )
    };
    conclusion.reason.push_str(&beside(dag, state, &main, &all));
    if main.suspects.len() == 1 {
        conclusion.commit = Some(main.commit.clone());
    }
    conclusion.probability = Some(main.probability);
    conclusion.confirmed = true;
    conclusion.effect = Some(effect);
    conclusion.sides = judge::sides(state, planner).filter(|_| all.len() == 1);
    conclusion.explained = main.explained;
    conclusion.outside_paths = state.paths_dropped.is_some();
    conclusion.not_monotonic = pairs(dag, state);
    conclusion.culprits = all;
    conclusion
}

fn sense(state: &State) -> Sense {
    match state.endpoints.as_ref().map(|e| e.outcome) {
        Some(EndpointOutcome::Change(sense)) => sense,
        Some(EndpointOutcome::NoDifference | EndpointOutcome::OppositeSign | EndpointOutcome::Undecided)
        | None => Sense::Regression,
    }
}

fn named(dag: &Dag, state: &State, main: &Culprit, sense: Sense) -> String {
    let mut reason = format!("{} (\"{}\") is the {sense}", main.commit.short(), subject(dag, &main.commit));
    reason.push_str(&match main.parents.len() {
        1 => "; its parent, measured, does not show it".to_owned(),
        n => format!("; it is a merge, and its {n} parents, each measured, do not show it"),
    });
    if state.paths_dropped.is_some() {
        reason.push_str("; it is outside the given paths");
    }
    reason
}

/// What the main culprit leaves, and who made that.
fn beside(dag: &Dag, state: &State, main: &Culprit, all: &[Culprit]) -> String {
    let mut words = String::new();
    if let Some(part) = main.explained.filter(|e| e.high < 1.0) {
        words.push_str(&format!(
            "; it explains only part of the endpoint difference ({:.0} %)",
            part.share * 100.0
        ));
    }
    let metric = &state.plan.recipe.metric;
    for other in all.iter().filter(|c| c.commit != main.commit) {
        words.push_str(&format!(
            "; {} (\"{}\") is another step: {} {}",
            other.commit.short(),
            subject(dag, &other.commit),
            metric.name,
            other.effect.words(metric.direction)
        ));
    }
    words
}

/// A confirmed step that one of several commits made: the others between its kernels cannot be measured.
fn set_of(state: &State, main: &Culprit) -> Conclusion {
    let mut conclusion = set(state, &main.suspects, "what is left cannot be measured apart");
    for suspect in &mut conclusion.suspects {
        suspect.probability = main.probability / main.suspects.len() as f64;
    }
    conclusion
}

/// The endpoints differed at the gate, and with more boots they do not.
fn vanished(state: &State, planner: &Planner) -> Conclusion {
    let mut conclusion = no_difference(state);
    let now = judge::against_good(state, planner, &state.plan.bad.commit);
    let words = now.map_or_else(String::new, |e| e.words(state.plan.recipe.metric.direction));
    conclusion.reason = format!(
        "cannot reproduce the difference: the first boots of the endpoints showed one, and all boots together do not: {} \
         changes by {words}",
        state.plan.recipe.metric.name
    );
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

/// The suspects cannot be measured apart.
fn inseparable(dag: &Dag, state: &State, planner: &Planner) -> Conclusion {
    let likely = suspects(state, planner);
    let commits: Vec<CommitId> = ordered(dag, likely.iter().map(|s| s.commit.clone()).collect());
    let mut conclusion = set(state, &commits, "what is left cannot be measured apart");
    conclusion.probability = Some(likely.iter().map(|s| s.probability).sum::<f64>().min(1.0));
    conclusion.suspects = likely;
    conclusion
}

/// In the order of the history.
fn ordered(dag: &Dag, mut commits: Vec<CommitId>) -> Vec<CommitId> {
    commits.sort_by_key(|c| dag.index(c));
    commits
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
fn unconfirmed(dag: &Dag, state: &State, planner: &Planner) -> Conclusion {
    let evidence = state.confirmation.as_ref().and_then(|c| c.result.as_ref()).map(|(_, evidence)| evidence);
    let culprit = state.confirmation.as_ref().map(|c| &c.culprit);
    let (Some(culprit), Some(evidence)) = (culprit, evidence) else {
        return inseparable(dag, state, planner);
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
        let mut conclusion = inseparable(dag, state, planner);
        conclusion.reason = format!("{found}: too noisy to tell");
        conclusion.next_step = "start again with longer runs, or a steadier workload".to_owned();
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

/// Several levels, and no step among them that is worth finding.
fn scattered(dag: &Dag, state: &State) -> Conclusion {
    let mut conclusion = set(state, &candidates(dag), "");
    conclusion.reason = format!(
        "the difference is spread over several commits: the kernels between {} and {} lie on several levels, and no step \
         between two of them is as large as the {:.1} % worth finding",
        state.plan.good.rev,
        state.plan.bad.rev,
        state.plan.recipe.minimum_effect.0 * 100.0
    );
    let middle = state.narrowed.last().map_or(&state.plan.bad.commit, |(_, bad, _)| bad);
    conclusion.next_step = format!(
        "search the parts with a smaller --minimum-effect: sched-bisect start {} {}",
        state.plan.good.rev,
        middle.short()
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
    for (_, _, why) in &state.narrowed {
        if let Narrowing::NotMonotonic { bad, good } = why
            && !pairs.contains(&(bad.clone(), good.clone()))
        {
            pairs.push((bad.clone(), good.clone()));
        }
    }
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
        conclusion.suspects = suspects(state, &Planner::of(dag, state));
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
