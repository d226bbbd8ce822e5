//! What the machines were like: told once, with what differs between the two kernels that matter most because they are two.

use crate::model::{BootNo, CommitId};
use crate::session::State;
use crate::session::environment::{Difference, Fields, Rules, between_kernels, of_kernel, quoted};
use serde::Serialize;
use std::collections::BTreeSet;

/// Values with more words than this are lists (scheduler features): only what differs of them is told.
const LIST: usize = 8;

/// What the machines were like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnvironmentFacts {
    /// Boots in which they were looked at, and which count.
    pub boots: usize,
    /// What the first of them showed; fields of roles other than the SUT as "ldg:governor".
    pub fields: Fields,
    /// Fields that may differ: the profile says so.
    pub ignored: Vec<String>,
    /// The kernels that are compared: the last culprit and its parent, else bad and good.
    pub compared: (CommitId, CommitId),
    /// What differs between them by their own doing.
    pub of_the_kernel: Vec<FieldFacts>,
    /// Boots that were cut short because a machine was not what it had been.
    pub moved: Vec<(BootNo, String)>,
}

/// A field that differs between two kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldFacts {
    /// Its name.
    pub field: String,
    /// Under the first; `null`: it is not there.
    pub is: Option<String>,
    /// Under the second.
    pub was: Option<String>,
}

/// The two kernels that a reader wants compared: the last culprit and its first parent, else the endpoints.
pub(super) fn pair(state: &State) -> (CommitId, CommitId) {
    let confirmed = state.confirmed.last();
    match confirmed.and_then(|c| Some((c.culprit.clone(), c.parents.first()?.clone()))) {
        Some(pair) => pair,
        None => (state.plan.bad.commit.clone(), state.plan.good.commit.clone()),
    }
}

/// The facts of a session that looks at its machines; `None` else, and before its first boot.
pub(super) fn facts(state: &State) -> Option<EnvironmentFacts> {
    let watch = state.plan.recipe.setup.environment.as_ref()?;
    let looked = |b: &&crate::session::Boot| b.record.as_ref().is_some_and(|r| !r.environment.is_empty());
    let first = state.boots.iter().find(looked).and_then(|b| b.record.as_ref())?;
    let compared = pair(state);
    let rules = Rules::of(&state.plan.recipe.setup);
    let told = |Difference { field, is, was }| FieldFacts { field, is, was };
    let of_the_kernel = match (of_kernel(state, &compared.0), of_kernel(state, &compared.1)) {
        (Some(is), Some(was)) => {
            rules.of_the_kernel(is, was, between_kernels(state)).into_iter().map(told).collect()
        }
        (Some(_), None) | (None, Some(_)) | (None, None) => Vec::new(),
    };
    Some(EnvironmentFacts {
        boots: state.boots.iter().filter(looked).count(),
        fields: first.environment.clone(),
        ignored: watch.ignore.clone(),
        compared,
        of_the_kernel,
        moved: state.moved.clone(),
    })
}

/// Lines of a text report, key and words.
pub(super) fn lines(facts: &EnvironmentFacts) -> Vec<(&'static str, String)> {
    let mut lines = vec![("environment", setting(facts))];
    let programs: Vec<String> = facts
        .fields
        .iter()
        .filter_map(|(field, value)| Some(format!("{} {value}", field.strip_prefix("program.")?)))
        .collect();
    if !programs.is_empty() {
        lines.push(("", format!("programs: {}", programs.join(", "))));
    }
    if !facts.ignored.is_empty() {
        lines.push(("", format!("not compared: {}", facts.ignored.join(", "))));
    }
    let (now, before) = (facts.compared.0.short(), facts.compared.1.short());
    for field in &facts.of_the_kernel {
        let (is, was) = only_different(field);
        let words =
            format!("{}: {is} under {now}, {was} under {before}: the kernel's own doing", field.field);
        lines.push(("", words));
    }
    lines
}

/// "3 boots were cut short; the last, 7: environment: ..."
pub(super) fn cut_short(moved: &[(BootNo, String)]) -> Option<String> {
    let (boot, reason) = moved.last()?;
    let boots: BTreeSet<&BootNo> = moved.iter().map(|(boot, _)| boot).collect();
    let count =
        if boots.len() == 1 { "1 boot was".to_owned() } else { format!("{} boots were", boots.len()) };
    Some(format!("{count} cut short; the last, {boot}: {reason}"))
}

fn setting(facts: &EnvironmentFacts) -> String {
    let named = [
        ("machine", ""),
        ("cpu", ""),
        ("cpus_online", "CPUs "),
        ("numa_nodes", "NUMA nodes "),
        ("smt", "SMT "),
        ("clocksource", "clock "),
        ("governor", "governor "),
        ("sched.preempt", "preemption "),
        ("thp", "huge pages "),
        ("autogroup", "autogroup "),
        ("tty", "tty "),
    ];
    let told = named.iter().filter_map(|(field, word)| Some(format!("{word}{}", facts.fields.get(*field)?)));
    let memory = facts.fields.get("memory_kib").and_then(|kib| kib.parse::<u64>().ok());
    let memory = memory.map(|kib| format!("{} MiB", kib / 1024));
    let all: Vec<String> = told.chain(memory).collect();
    let boots =
        if facts.boots == 1 { "in 1 boot".to_owned() } else { format!("in all {} boots", facts.boots) };
    format!("{}; {boots} ({} fields are compared)", all.join(", "), facts.fields.len())
}

/// Of two lists only the words that are not in both.
fn only_different(field: &FieldFacts) -> (String, String) {
    let words = |value: &Option<String>| -> Vec<String> {
        value.iter().flat_map(|v| v.split_whitespace()).map(str::to_owned).collect()
    };
    let (is, was) = (words(&field.is), words(&field.was));
    if is.len() > LIST && was.len() > LIST {
        let only = |these: &[String], those: &[String]| -> String {
            let kept: Vec<&str> = these.iter().filter(|w| !those.contains(w)).map(String::as_str).collect();
            if kept.is_empty() { "no more".to_owned() } else { quoted(&kept.join(" ")) }
        };
        return (only(&is, &was), only(&was, &is));
    }
    let whole = |value: &Option<String>| value.as_deref().map_or("absent".to_owned(), quoted);
    (whole(&field.is), whole(&field.was))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_list_only_what_differs_is_told() {
        let list = |word: &str| Some(format!("A B C D E F G H {word} I"));
        let field = FieldFacts { field: "sched.features".to_owned(), is: list("NO_RTP"), was: list("RTP") };
        assert_eq!(only_different(&field), ("NO_RTP".to_owned(), "RTP".to_owned()));
        let field = FieldFacts { field: "clocksource".to_owned(), is: Some("hpet".to_owned()), was: None };
        assert_eq!(only_different(&field), ("hpet".to_owned(), "absent".to_owned()));
    }
}
