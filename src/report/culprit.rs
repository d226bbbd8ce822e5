//! What a maintainer asks of a named commit: its parents, and what of the configuration changed with it.

use super::facts::{CandidateFacts, ConclusionFacts};
use crate::model::{CommitId, ConclusionKind, Effect, Metric};
use crate::search::Dag;
use crate::session::State;
use serde::Serialize;

/// A parent of the culprit, as measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParentFacts {
    /// It.
    pub commit: CommitId,
    /// Its subject.
    pub subject: String,
    /// Boots with counted runs.
    pub boots: usize,
    /// Counted runs.
    pub runs: usize,
    /// Its effect against good; `null` for good itself.
    pub effect: Option<Effect>,
}

/// The kernels before the main culprit, each measured.
pub(super) fn parents(
    dag: &Dag,
    state: &State,
    end: &ConclusionFacts,
    candidates: &[CandidateFacts],
) -> Vec<ParentFacts> {
    let Some(main) = main(end) else { return Vec::new() };
    let parent = |commit: &CommitId| {
        let measured = candidates.iter().find(|c| c.commit == *commit);
        ParentFacts {
            commit: commit.clone(),
            subject: super::facts::subject(dag, state, commit).unwrap_or_default(),
            boots: measured.map_or(0, CandidateFacts::counted_boots),
            runs: measured.map_or(0, CandidateFacts::counted_runs),
            effect: measured.and_then(|c| c.effect),
        }
    };
    main.iter().map(parent).collect()
}

/// Parents of the commit that is named.
fn main(end: &ConclusionFacts) -> Option<&[CommitId]> {
    let commit = end.commit.as_ref()?;
    end.culprits.iter().find(|c| c.commit == *commit).map(|c| c.parents.as_slice())
}

/// Symbols of the configuration that differ between the culprit and its first parent: "+" with the culprit, "-" with the
/// parent. Both are recorded as differences from the base.
pub(super) fn config_change(end: &ConclusionFacts, candidates: &[CandidateFacts]) -> Vec<String> {
    let of = |commit: &CommitId| candidates.iter().find(|c| c.commit == *commit).map(|c| &c.config_delta);
    let pair = end.commit.as_ref().zip(main(end).and_then(<[CommitId]>::first));
    let Some((with, without)) = pair.and_then(|(commit, parent)| Some((of(commit)?, of(parent)?))) else {
        return Vec::new();
    };
    let only = |these: &Vec<String>, those: &Vec<String>, sign: char| -> Vec<String> {
        these.iter().filter(|s| !those.contains(s)).map(|s| format!("{sign}{s}")).collect()
    };
    [only(without, with, '-'), only(with, without, '+')].concat()
}

/// The end in one sentence, with its numbers.
pub(super) fn headline(end: &ConclusionFacts, metric: &Metric) -> String {
    let (Some(commit), ConclusionKind::Culprit, Some(effect)) = (&end.commit, end.kind, end.effect) else {
        return sentence(&end.reason);
    };
    let subject = end.subject.as_deref().unwrap_or_default();
    let effect = effect.words(metric.direction);
    let share = end.explained.map_or_else(String::new, |part| format!(", {part} of the endpoint difference"));
    let sure = end.probability.map_or_else(String::new, |p| format!("; certainty {}", certainty(p)));
    let what = end.sense.map_or_else(String::new, |sense| format!("is the {sense}: it "));
    format!("{} (\"{subject}\") {what}changed {} by {effect}{share}{sure}.", commit.short(), metric.name)
}

fn sentence(reason: &str) -> String {
    let mut letters = reason.chars();
    let first = letters.next().map_or_else(String::new, |c| c.to_uppercase().collect());
    // A commit's name stays as it is.
    let is_word = reason.chars().take_while(|c| *c != ' ').all(char::is_alphabetic);
    let text = if is_word { format!("{first}{}", letters.as_str()) } else { reason.to_owned() };
    if text.ends_with('.') { text } else { format!("{text}.") }
}

/// A probability that is never rounded up to certainty.
pub(super) fn certainty(probability: f64) -> String {
    if probability > 0.9999 {
        "above 99.99 %".to_owned()
    } else {
        format!("at least {:.2} %", probability * 100.0)
    }
}
