//! The report and the status as text for a terminal of 80 columns.

use super::expense::SpentFacts;
use super::facts::{CandidateFacts, Report};
use super::moved::MovedFacts;
use super::pairs::{self, Pairs, title};
use super::path::{Stretch, stretches};
use super::plot::{Look, plot};
use super::survey::{SurveyReport, View};
use crate::model::ConclusionKind;
use crate::search::Dag;
use crate::session::{NOT_MEASURED, OpenStep, State, duration};
use std::fmt::Write;

/// Suspects that are listed one by one.
const LISTED: usize = 40;

/// Columns the text is wrapped to.
const WIDTH: usize = 78;

/// The whole report.
pub fn text(report: &Report, look: Look) -> String {
    let mut out = String::new();
    paragraph(&mut out, &format!("{}: {}", title(report.conclusion.kind), report.conclusion.reason));
    lines(&mut out, pairs::conclusion(report));
    out.push('\n');
    for part in [pairs::setting, pairs::parents, pairs::checks, pairs::further] {
        lines(&mut out, part(report));
    }
    suspects(&mut out, report);
    lines(&mut out, pairs::stretches(report));
    lines(&mut out, pairs::guards(report));
    if report.conclusion.kind == ConclusionKind::Stopped {
        lines(&mut out, pairs::search(report));
    }
    candidates(&mut out, report, look);
    way(&mut out, report);
    lines(&mut out, pairs::environment(report));
    moved(&mut out, report.moved.as_ref());
    lines(&mut out, pairs::expense(report));
    line(&mut out, "next", &report.conclusion.next_step);
    lines(&mut out, pairs::again(report));
    out
}

/// Steps of the way that are listed: the first and the last.
const STEPS: usize = 16;

/// The way of the search, what belongs together in one entry.
fn way(out: &mut String, report: &Report) {
    let all: Vec<Stretch> = stretches(&report.path).collect();
    if all.is_empty() || report.purpose != "bisect" {
        return;
    }
    let _ = writeln!(out, "the way:");
    let left_out = all.len().saturating_sub(2 * STEPS);
    for (at, stretch) in all.iter().enumerate() {
        if left_out > 0 && at == STEPS {
            let _ = writeln!(out, "  ... {left_out} more (see --format html) ...");
        }
        if left_out > 0 && (STEPS..STEPS + left_out).contains(&at) {
            continue;
        }
        let name = pairs::stretch_name(stretch);
        let head = format!("  {name:<13} {:>12}  ", duration(stretch.seconds()));
        wrapped(out, &head, &pairs::stretch_words(stretch));
    }
    out.push('\n');
}

fn lines(out: &mut String, pairs: Pairs) {
    for (key, words) in pairs.0 {
        line(out, &key, &words);
    }
}

pub(super) fn expense(spent: &SpentFacts) -> String {
    format!(
        "{}, {}, {}, {}",
        counted(spent.builds, "build"),
        counted(spent.boots, "boot"),
        counted(spent.runs, "run"),
        duration(spent.seconds)
    )
}

/// "1 boot", "2 boots".
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn suspects(out: &mut String, report: &Report) {
    let suspects = &report.conclusion.suspects;
    if suspects.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nsuspects ({}):", suspects.len());
    // What was not looked at has no story of its own.
    let (told, rest): (Vec<_>, Vec<_>) = suspects.iter().partition(|s| s.reason != NOT_MEASURED);
    for suspect in told.iter().take(LISTED) {
        wrapped(out, &format!("  {} ", suspect.commit.short()), &suspect.reason);
    }
    let more = told.len().saturating_sub(LISTED);
    if more > 0 {
        let _ = writeln!(out, "  ... and {more} more (see --format json)");
    }
    if told.is_empty() || rest.len() > LISTED {
        let _ = writeln!(out, "  {} that were not measured (see --format json)", rest.len());
    } else {
        for suspect in rest {
            let _ = writeln!(out, "  {} {}", suspect.commit.short(), suspect.reason);
        }
    }
}

fn candidates(out: &mut String, report: &Report, look: Look) {
    if report.candidates.is_empty() {
        return out.push('\n');
    }
    let _ = writeln!(
        out,
        "\n{:<12}  {:<10}  {:>5} {:>5}  effect against good",
        "commit", "verdict", "boots", "runs"
    );
    for candidate in &report.candidates {
        row(out, report, candidate);
    }
    for (commit, reason) in &report.retracted {
        paragraph(out, &format!("retracted: {} ({reason})", commit.short()));
    }
    out.push('\n');
    let plot = plot(report, look);
    if !plot.is_empty() {
        let _ = writeln!(out, "{plot}");
    }
}

fn row(out: &mut String, report: &Report, candidate: &CandidateFacts) {
    let (boots, runs) = (candidate.counted_boots(), candidate.counted_runs());
    let words = match (&candidate.reason, candidate.effect) {
        (Some(reason), _) => reason.clone(),
        (None, Some(effect)) => effect.words(report.metric.direction),
        (None, None) => candidate.role.to_owned(),
    };
    let verdict = candidate.standing();
    let head = format!("{:<12}  {verdict:<10}  {boots:>5} {runs:>5}  ", candidate.commit.short());
    wrapped(out, &head, &words);
    wrapped(out, "              ", &candidate.subject);
}

/// What was counted beside the runs.
pub(super) fn moved(out: &mut String, facts: Option<&MovedFacts>) {
    let Some(facts) = facts else { return };
    let (head, table) = super::moved::lines(facts);
    line(out, "counted", &head);
    for row in table {
        let _ = writeln!(out, "{row}");
    }
}

/// Where a session stands, in a few lines.
pub fn status(dag: &Dag, state: &State) -> String {
    if let Some(survey) = SurveyReport::of(dag, state, &View::default()) {
        return survey.status(state);
    }
    // Nothing of the way is told.
    let report = Report::of(dag, state, &[]);
    let mut out = String::new();
    line(&mut out, "session", &report.session);
    let end = &report.conclusion;
    line(&mut out, "stands", &format!("{}: {}", title(end.kind).to_lowercase(), end.reason));
    for step in state.open.values() {
        line(&mut out, "open step", &open_step(state, step));
    }
    if end.kind == ConclusionKind::Stopped && report.purpose == "bisect" {
        line(&mut out, "range", &counted(report.range, "commit"));
    }
    if let Some(effect) = report.endpoints.effect {
        line(&mut out, "endpoints", &effect.words(report.metric.direction));
    }
    if end.kind == ConclusionKind::Stopped {
        lines(&mut out, pairs::search(&report));
    }
    lines(&mut out, pairs::guards(&report));
    line(&mut out, "spent", &expense(&report.spent));
    line(&mut out, "next", &end.next_step);
    out
}

/// An open step in words.
pub(super) fn open_step(state: &State, step: &OpenStep) -> String {
    let of = |boot| state.boot(boot).map_or_else(String::new, |b| b.commit.short().to_owned());
    match step {
        OpenStep::Build(commit) => format!("build {}", commit.short()),
        OpenStep::Boot(boot) => format!("boot {boot} of {}", of(*boot)),
        OpenStep::Run(boot, repetition) => format!("run {repetition} in boot {boot} of {}", of(*boot)),
    }
}

pub(super) fn line(out: &mut String, key: &str, value: &str) {
    wrapped(out, &format!("{key:<14}"), value);
}

pub(super) fn paragraph(out: &mut String, words: &str) {
    wrapped(out, "", words);
}

/// Writes `head` and `words` wrapped at [`WIDTH`], continued under the head's end. A word is never cut.
pub(super) fn wrapped(out: &mut String, head: &str, words: &str) {
    let indent = head.chars().count().min(40);
    let mut used = head.chars().count();
    out.push_str(head);
    let mut first = true;
    for word in words.split_whitespace() {
        let length = word.chars().count();
        if !first && used + 1 + length > WIDTH {
            let _ = write!(out, "\n{}", " ".repeat(indent));
            used = indent;
        } else if !first {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
        first = false;
    }
    while out.ends_with(' ') {
        out.pop();
    }
    out.push('\n');
}
