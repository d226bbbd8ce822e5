//! The report and the status as text for a terminal of 80 columns.

use super::culprit::certainty;
use super::expense::SpentFacts;
use super::facts::{CandidateFacts, Report};
use super::moved::MovedFacts;
use super::survey::{SurveyReport, View};
use crate::model::{Check, ConclusionKind};
use crate::search::Dag;
use crate::session::{NOT_MEASURED, OpenStep, State, duration};
use std::fmt::Write;

/// Suspects that are listed one by one.
const LISTED: usize = 40;

/// Metrics beside the judged one that are listed, those with the largest change.
const SEEN: usize = 8;

/// Columns the text is wrapped to.
const WIDTH: usize = 78;

/// Relative effects below this are often code layout: forcing 32-byte alignment of functions moved hackbench by up to
/// 2 % and netperf by far more (Linux commit 09c60546).
const LAYOUT_EFFECT: f64 = 0.05;

/// The whole report.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    conclusion(&mut out, report);
    setting(&mut out, report);
    checks(&mut out, report);
    further(&mut out, report);
    suspects(&mut out, report);
    stretches(&mut out, report);
    guards(&mut out, report);
    if report.conclusion.kind == ConclusionKind::Stopped {
        search(&mut out, report);
    }
    candidates(&mut out, report);
    environment(&mut out, report);
    moved(&mut out, report.moved.as_ref());
    line(&mut out, "spent", &expense(&report.spent));
    line(&mut out, "next", &report.conclusion.next_step);
    out
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

fn conclusion(out: &mut String, report: &Report) {
    let end = &report.conclusion;
    paragraph(out, &format!("{}: {}", title(end.kind), end.reason));
    if let (Some(commit), Some(subject)) = (&end.commit, &end.subject) {
        line(out, "commit", commit.as_str());
        line(out, "subject", subject);
    }
    if let Some(effect) = end.effect {
        let against = if end.restored.is_some() { "against bad" } else { "against its parent" };
        let words = effect.words(report.metric.direction);
        line(out, "effect", &format!("{} {words}, {against}", report.metric.name));
    }
    if let Some(effect) = end.sides {
        let words = effect.words(report.metric.direction);
        line(
            out,
            "step",
            &format!("{} {words}, all kernels with it against all without", report.metric.name),
        );
    }
    if let Some(part) = end.explained {
        line(out, "explains", &format!("{part} of the endpoint difference"));
    }
    if let Some(part) = end.restored {
        line(out, "restored", &format!("{part} of the endpoint difference"));
    }
    if let Some(probability) = end.probability {
        line(out, "certainty", &certainty(probability));
    }
    let beside = if end.kind == ConclusionKind::NotMonotonic { &[][..] } else { &end.not_monotonic };
    for (bad, good) in beside {
        line(out, "not monotonic", &format!("{} is bad, its descendant {} good", bad.short(), good.short()));
    }
    if end.kind == ConclusionKind::Culprit {
        let between = format!(
            "one of the edges between {} and {}: a search finds one, and says nothing of others that cancel out",
            report.good.rev, report.bad.rev
        );
        line(out, "note", &between);
    }
    out.push('\n');
}

fn title(kind: ConclusionKind) -> &'static str {
    match kind {
        ConclusionKind::Culprit => "CULPRIT",
        ConclusionKind::CulpritSet => "SUSPECTS ONLY",
        ConclusionKind::NoDifference => "NO DIFFERENCE SHOWN",
        ConclusionKind::OppositeSign => "OPPOSITE SIGN",
        ConclusionKind::NoopChange => "NO-OP CHANGE",
        ConclusionKind::NotMonotonic => "NOT MONOTONIC",
        ConclusionKind::Stopped => "STOPPED",
        ConclusionKind::Restored => "RESTORED",
        ConclusionKind::Partial => "PARTLY RESTORED",
        ConclusionKind::NoEffect => "NO EFFECT",
        ConclusionKind::CannotRevert => "CANNOT REVERT",
        ConclusionKind::AlreadyReverted => "ALREADY REVERTED",
        ConclusionKind::NotMeasurable => "NOT MEASURABLE",
        ConclusionKind::Surveyed => "SURVEY",
    }
}

fn setting(out: &mut String, report: &Report) {
    line(out, "session", &format!("{} ({})", report.session, report.profile));
    line(out, "good", &format!("{} {}", report.good.commit.short(), report.good.rev));
    line(out, "bad", &format!("{} {}", report.bad.commit.short(), report.bad.rev));
    let unit =
        if report.metric.unit.is_empty() { String::new() } else { format!(" [{}]", report.metric.unit) };
    line(out, "metric", &format!("{}{unit}, {}", report.metric.name, report.metric.direction));
    if let Some(facts) = &report.read_back {
        line(out, "variant", &facts.words());
    }
    let ends = &report.endpoints;
    if let Some(effect) = ends.effect {
        let words = effect.words(report.metric.direction);
        line(out, "endpoints", &format!("{words}; {} boots, {} runs", ends.boots, ends.runs));
    }
    for seen in report.also_seen.iter().take(SEEN) {
        line(out, "also seen", &seen.words());
    }
    if !report.also_seen.is_empty() {
        let more = report.also_seen.len().saturating_sub(SEEN) as u64;
        let more =
            if more > 0 { format!("; {} in the JSON", counted(more, "more metric")) } else { String::new() };
        line(out, "", &format!("(medians of runs, good to bad; not judged{more})"));
    }
    let range = if report.purpose == "bisect" {
        format!("{}; ", counted(report.range, "commit"))
    } else {
        String::new()
    };
    line(out, "judged", &format!("{range}intervals at {:.0} %", report.confidence * 100.0));
}

/// What a maintainer asks first: was it verified, was it reverted, can it be code layout?
fn checks(out: &mut String, report: &Report) {
    if report.conclusion.kind != ConclusionKind::Culprit {
        return;
    }
    let word = |check: Check| match check {
        Check::Pass => "PASS",
        Check::Fail => "FAIL",
        Check::NotRun => "NOT RUN",
    };
    let checks = &report.checks;
    let words = format!(
        "verify {}, revert {}, alignment {}",
        word(checks.verify),
        word(checks.revert),
        word(checks.alignment)
    );
    line(out, "checks", &words);
    let small = report.conclusion.effect.is_some_and(|e| e.relative.abs() < LAYOUT_EFFECT);
    if small && checks.alignment == Check::NotRun {
        line(
            out,
            "caution",
            "code layout alone can make a difference of this size; alignment was not checked",
        );
    }
}

/// "under NO_RUN_TO_PARITY: +0.3 % (-1.2 to +1.9 %), within the noise; 6 and 6 boots".
fn further(out: &mut String, report: &Report) {
    let several =
        report.conclusion.culprits.len() > 1 || report.further.windows(2).any(|f| f[0].parent != f[1].parent);
    for (at, facts) in report.further.iter().enumerate() {
        let of = if several {
            format!(" ({} against {})", facts.commit.short(), facts.parent.short())
        } else {
            String::new()
        };
        let words = match (&facts.reason, facts.effect) {
            (Some(reason), _) => format!("not measured: {reason}"),
            (None, Some(effect)) => {
                let words = effect.words(report.metric.direction);
                format!("{words}; {} and {} boots", facts.boots, facts.parent_boots)
            }
            (None, None) => "not measured yet".to_owned(),
        };
        let key = if at == 0 { "variants" } else { "" };
        line(out, key, &format!("under {}{of}: {words}", facts.variant));
    }
    if !report.further.is_empty() {
        line(out, "", "(culprit against parent, beside the verdict and no part of it)");
    }
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

/// The guards that acted.
fn guards(out: &mut String, report: &Report) {
    for guard in &report.guards {
        line(out, &guard.guard.replace('_', "-"), &guard.words);
    }
}

/// Where the search stands: leaders, credible set, what is measured next and why.
fn search(out: &mut String, report: &Report) {
    let Some(search) = &report.search else { return };
    for leader in &search.leaders {
        let head =
            format!("{:<14}{:>5.1} %  {} ", "likely", leader.probability * 100.0, leader.commit.short());
        wrapped(out, &head, &leader.subject);
    }
    let words = format!(
        "{} hold 95 %; {:.2} bits are open",
        counted(search.credible as u64, "commit"),
        search.entropy_bits
    );
    line(out, "credible", &words);
    if let Some(next) = &search.next {
        line(out, "measures", &format!("{} {}: {}", next.measure, next.commit.short(), next.why));
    }
}

/// Offers to leave broken lines out of another search.
fn stretches(out: &mut String, report: &Report) {
    for stretch in &report.broken_stretches {
        let words = format!(
            "{} commits in a row, {} tried, none can be measured; to leave them out of another search: --skip {}",
            stretch.commits, stretch.tried, stretch.range
        );
        line(out, "broken", &words);
    }
}

fn candidates(out: &mut String, report: &Report) {
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
}

fn row(out: &mut String, report: &Report, candidate: &CandidateFacts) {
    let (boots, runs) = (candidate.counted_boots(), candidate.counted_runs());
    let words = match (&candidate.reason, candidate.effect) {
        (Some(reason), _) => reason.clone(),
        (None, Some(effect)) => effect.words(report.metric.direction),
        (None, None) => candidate.role.to_owned(),
    };
    let verdict = match candidate.verdict {
        "none" => match candidate.role {
            "good endpoint" => "good",
            "bad endpoint" => "bad",
            "reverted" => "reverted",
            _ => "-",
        },
        verdict => verdict,
    };
    let head = format!("{:<12}  {verdict:<10}  {boots:>5} {runs:>5}  ", candidate.commit.short());
    wrapped(out, &head, &words);
    wrapped(out, "              ", &candidate.subject);
}

/// What the machines were like.
fn environment(out: &mut String, report: &Report) {
    for (key, words) in report.environment.iter().flat_map(super::environment::lines) {
        line(out, key, &words);
    }
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
        search(&mut out, &report);
    }
    guards(&mut out, &report);
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
