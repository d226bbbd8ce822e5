//! What is read first: the end in one sentence with its numbers, what was checked, who is suspected.

use super::plots::Kind;
use super::table::{Column, Row, folded, pairs, table};
use super::words::{LINE, change, clean, count, foreign, likelihood, metric, name};
use crate::model::{Check, CommitId, ConclusionKind};
use crate::report::culprit::certainty;
use crate::report::facts::Report;
use crate::session::duration;
use maud::{Markup, html};

/// Suspects that are listed; the list of commits has all.
const LISTED: usize = 200;

/// Relative effects below this are often code layout (see the text form).
const LAYOUT_EFFECT: f64 = 0.05;

/// The end in a few words.
pub(super) fn title(kind: ConclusionKind) -> &'static str {
    match kind {
        ConclusionKind::Culprit => "Culprit found",
        ConclusionKind::CulpritSet => "Suspects only",
        ConclusionKind::NoDifference => "No difference shown",
        ConclusionKind::OppositeSign => "Opposite sign",
        ConclusionKind::NoopChange => "No-op change",
        ConclusionKind::NotMonotonic => "Not monotonic",
        ConclusionKind::Stopped => "Stopped before an answer",
        ConclusionKind::Restored => "Restored by the revert",
        ConclusionKind::Partial => "Partly restored by the revert",
        ConclusionKind::NoEffect => "The revert changes nothing",
        ConclusionKind::CannotRevert => "Cannot be reverted",
        ConclusionKind::AlreadyReverted => "Already reverted",
        ConclusionKind::NotMeasurable => "Not measurable",
        ConclusionKind::Surveyed => "Survey",
    }
}

fn class(kind: ConclusionKind) -> &'static str {
    match kind {
        ConclusionKind::Culprit | ConclusionKind::CulpritSet => "verdict found",
        ConclusionKind::Restored | ConclusionKind::Surveyed => "verdict well",
        ConclusionKind::NoDifference
        | ConclusionKind::OppositeSign
        | ConclusionKind::NoopChange
        | ConclusionKind::NotMonotonic
        | ConclusionKind::Stopped
        | ConclusionKind::Partial
        | ConclusionKind::NoEffect
        | ConclusionKind::CannotRevert
        | ConclusionKind::AlreadyReverted
        | ConclusionKind::NotMeasurable => "verdict",
    }
}

/// Head of the page.
pub(super) fn top(report: &Report) -> Markup {
    let end = &report.conclusion;
    html! {
        header {
            p class="from" { "sched-bisect, session " (foreign(&report.session)) }
            h1 class=(class(end.kind)) { (title(end.kind)) @if let Some(commit) = &end.commit { ": " (name(commit)) } }
            @if let Some(subject) = &end.subject { p class="lead" { strong { (foreign(subject)) } } }
            p class="lead" { (foreign(&report.headline)) }
            (tiles(report))
            @if !end.next_step.is_empty() { p { strong { "Next: " } (foreign(&end.next_step)) } }
        }
        (details(report))
        (parents(report))
        (further(report))
        (suspects(report))
        (likely(report))
    }
}

/// The numbers that are asked for first.
fn tiles(report: &Report) -> Markup {
    let end = &report.conclusion;

    let mut tiles: Vec<(&str, String, String)> = Vec::new();
    if let Some(effect) = end.effect {
        let against =
            if end.restored.is_some() { "Reverted against bad" } else { "Effect against its parent" };
        tiles.push((
            against,
            change(report, effect),
            format!("{}, {}", metric(report), report.metric.direction),
        ));
    }
    if let Some(part) = end.explained {
        tiles.push(("Explains of the endpoint difference", part.to_string(), String::new()));
    }
    if let Some(part) = end.restored {
        tiles.push(("Brought back of the endpoint difference", part.to_string(), String::new()));
    }
    if let Some(probability) = end.probability {
        let fresh = if end.confirmed { "confirmed by fresh boots" } else { "not confirmed by fresh boots" };
        tiles.push(("Probability of being right", certainty(probability), fresh.to_owned()));
    }
    let ends = &report.endpoints;
    if let Some(effect) = ends.effect {
        let over = format!("{}, {}", count(ends.boots, "boot"), count(ends.runs, "run"));
        tiles.push(("Bad against good", change(report, effect), over));
    }
    let spent = &report.spent;
    let counts = format!(
        "{}, {}, {}",
        crate::report::counted(spent.builds, "build"),
        crate::report::counted(spent.boots, "boot"),
        crate::report::counted(spent.runs, "run")
    );
    tiles.push(("Machine time", duration(spent.seconds), counts));
    html! {
        dl class="facts" {
            @for (key, value, more) in tiles {
                div { dt { (key) } dd { (value) @if !more.is_empty() { small { (more) } } } }
            }
        }
    }
}

fn check(word: &str, check: Check, beside: &str) -> Markup {
    let (class, told) = match check {
        Check::Pass => ("pass", "PASS"),
        Check::Fail => ("fail", "FAIL"),
        Check::NotRun => ("", "NOT RUN"),
    };
    html! { (word) " " span class=(class) { (told) } " (" (beside) ")" br; }
}

fn details(report: &Report) -> Markup {
    let end = &report.conclusion;
    let mut of: Vec<(&str, Markup)> = Vec::new();
    if let Some(commit) = &end.commit {
        of.push(("Commit", html! { code { (commit.as_str()) } }));
    }
    of.push(("Reason", foreign(&end.reason)));
    if end.kind == ConclusionKind::Culprit {
        of.push(("Checks", checks(report)));
    }
    if let Some(effect) = end.sides {
        of.push(("Step", html! { (change(report, effect)) ", all kernels with it against all without" }));
    }
    if end.outside_paths {
        of.push(("Paths", html! { "The commit is outside the paths that the search was limited to." }));
    }
    for (bad, good) in &end.not_monotonic {
        of.push(("Not monotonic", html! { (name(bad)) " is bad, its descendant " (name(good)) " good" }));
    }
    if !report.config_change.is_empty() {
        let changes = report.config_change.iter().take(100);
        of.push((
            "Configuration",
            html! { @for change in changes { code { (clean(change, LINE)) } br; } "against its parent" },
        ));
    }
    of.push(("Good", html! { (name(&report.good.commit)) " " (foreign(&report.good.rev)) }));
    of.push(("Bad", html! { (name(&report.bad.commit)) " " (foreign(&report.bad.rev)) }));
    let judged = format!(
        "{}, {}; intervals at {:.0} %; smallest change looked for {:.1} %",
        metric(report),
        report.metric.direction,
        report.confidence * 100.0,
        report.minimum_effect * 100.0
    );
    of.push(("Judged by", html! { (judged) }));
    of.push(("Profile", html! { (foreign(&report.profile)) }));
    if let Some(read) = &report.read_back {
        of.push(("Variant", foreign(&read.words())));
    }
    if report.purpose == "bisect" {
        of.push(("Range", html! { (count(report.range as usize, "commit")) }));
    }
    pairs(&of)
}

fn checks(report: &Report) -> Markup {
    let checks = &report.checks;
    let small = report.conclusion.effect.is_some_and(|e| e.relative.abs() < LAYOUT_EFFECT);
    html! {
        (check("verify", checks.verify, "fresh, interleaved boots of it and its parents"))
        (check("revert", checks.revert, "its revert on top of bad"))
        (check("alignment", checks.alignment, "built again with functions aligned alike"))
        @if small && checks.alignment == Check::NotRun {
            "Code layout alone can make a difference of this size; alignment was not checked."
        }
    }
}

fn parents(report: &Report) -> Markup {
    if report.parents.is_empty() {
        return html! {};
    }
    let columns = [
        Column::Text("Parent"),
        Column::Wide("Subject"),
        Column::number("Boots"),
        Column::number("Runs"),
        Column::number("Against good"),
    ];
    let row = |p: &crate::report::ParentFacts| {
        let effect = p.effect.map_or_else(|| "is good itself".to_owned(), |e| change(report, e));
        Row::plain(vec![
            name(&p.commit),
            foreign(&p.subject),
            html! { (p.boots) },
            html! { (p.runs) },
            html! { (if p.boots == 0 { "not measured".to_owned() } else { effect }) },
        ])
    };
    let rows: Vec<Row> = report.parents.iter().map(row).collect();
    table("parents", "Its parents, as measured", &columns, &rows)
}

fn further(report: &Report) -> Markup {
    if report.further.is_empty() {
        return html! {};
    }
    let columns = [
        Column::Text("Variant"),
        Column::Text("Commit"),
        Column::Text("Against"),
        Column::Wide("Effect"),
        Column::Text("Boots"),
    ];
    let row = |f: &crate::report::FurtherFacts| {
        let effect = match (&f.reason, f.effect) {
            (Some(reason), _) => html! { "not measured: " (foreign(reason)) },
            (None, Some(effect)) => html! { (effect.words(report.metric.direction)) },
            (None, None) => html! { "not measured yet" },
        };
        let boots = html! { (f.boots) " and " (f.parent_boots) };
        Row::plain(vec![foreign(&f.variant), name(&f.commit), name(&f.parent), effect, boots])
    };
    let rows: Vec<Row> = report.further.iter().map(row).collect();
    table("variants", "Under further variants: beside the verdict, and no part of it", &columns, &rows)
}

fn suspects(report: &Report) -> Markup {
    let all = &report.conclusion.suspects;
    if all.is_empty() {
        return html! {};
    }
    let columns = [
        Column::Text("Suspect"),
        Column::Wide("Subject"),
        Column::number("Probability"),
        Column::Wide("Why"),
    ];
    let subject = |commit: &CommitId| {
        report.commits.iter().find(|c| c.commit == *commit).map_or("", |c| c.subject.as_str())
    };
    let row = |s: &crate::model::Suspect| {
        let cells = vec![
            name(&s.commit),
            foreign(subject(&s.commit)),
            html! { (likelihood(s.probability)) },
            foreign(&s.reason),
        ];
        Row::plain(cells)
    };
    let rows: Vec<Row> = all.iter().take(LISTED).map(row).collect();
    let caption = if all.len() > LISTED {
        format!("The first {LISTED} of {} suspects", all.len())
    } else {
        "Any of these may be the culprit".to_owned()
    };
    let inside = table("suspects", &caption, &columns, &rows);
    let head = count(all.len(), "suspect");
    if all.len() > 12 { folded(&head, &inside) } else { inside }
}

/// The likeliest commits of a search that is not over.
fn likely(report: &Report) -> Markup {
    let search = report
        .search
        .as_ref()
        .filter(|s| report.conclusion.kind == ConclusionKind::Stopped && !s.leaders.is_empty());
    let Some(search) = search else { return html! {} };
    let columns = [Column::Text("Commit"), Column::Wide("Subject"), Column::number("Probability")];
    let row = |l: &crate::report::Leader| {
        Row::plain(vec![name(&l.commit), foreign(&l.subject), html! { (likelihood(l.probability)) }])
    };
    let rows: Vec<Row> = search.leaders.iter().map(row).collect();
    html! {
        (table("likely", "The likeliest so far", &columns, &rows))
        p {
            (count(search.credible, "commit")) " hold 95 %; " (format!("{:.2}", search.entropy_bits)) " bits are open."
            @if let Some(next) = &search.next { " Next is measured: " (next.measure) " " (name(&next.commit)) ": " (foreign(&next.why)) "." }
        }
    }
}

/// The mark of a kernel with its verdict in words.
pub(super) fn verdict(report: &Report, candidate: &crate::report::CandidateFacts) -> Markup {
    let kind = Kind::of(report, candidate);
    let words = match candidate.role {
        "good endpoint" | "bad endpoint" | "reverted" if candidate.verdict == "none" => candidate.role,
        _ if candidate.verdict == "none" => "not judged",
        _ => candidate.verdict,
    };
    html! { (kind.sign()) " " (words) }
}
