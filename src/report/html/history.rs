//! The commits of the range, those that could not be measured, and every run.

use super::table::{Column, Row, folded, table};
use super::top::verdict;
use super::words::{LINE, clean, count, figure, foreign, likelihood, metric, name};
use crate::report::facts::{BootFacts, CandidateFacts, Report};
use crate::report::range::RangeCommit;
use maud::{Markup, html};

/// Less likely commits are not "likely" to the filter.
const LIKELY: f64 = 1e-3;

/// A list of more commits is folded.
const OPEN: usize = 40;

/// The commits, with a filter that needs no script.
pub(super) fn commits(report: &Report) -> Markup {
    if report.commits.is_empty() {
        return html! {};
    }
    let columns = [
        Column::Text("Commit"),
        Column::number("Place"),
        Column::number("Probability"),
        Column::Short("Verdict"),
        Column::Wide("Subject"),
    ];
    let rows: Vec<Row> = report.commits.iter().map(|c| commit(report, c)).collect();
    // Good is listed, and no part of the range.
    let part =
        if rows.len() as u64 > report.range { "All" } else { "The likeliest and those that were looked at" };
    let caption = format!(
        "{part} of {} in the order of the history, good first; probability of being the culprit after all that was measured",
        count(report.range as usize, "commit")
    );
    let inside = html! {
        div class="filters" {
            input type="radio" name="show" id="show-all" checked; label class="filter" for="show-all" { "all" }
            input type="radio" name="show" id="show-likely"; label class="filter" for="show-likely" { "that may be the culprit" }
            input type="radio" name="show" id="show-looked"; label class="filter" for="show-looked" { "that were looked at" }
            (table("commit-list", &caption, &columns, &rows))
        }
    };
    if rows.len() > OPEN {
        folded(&format!("List: {}", count(rows.len(), "commit")), &inside)
    } else {
        inside
    }
}

/// Classes that the filter looks at: whether it may be the culprit, whether it was looked at, whether it is named.
fn class(likely: bool, looked: bool, named: bool) -> &'static str {
    match (likely, looked, named) {
        (_, _, true) => "likely looked named",
        (true, true, false) => "likely looked",
        (true, false, false) => "likely",
        (false, true, false) => "looked",
        (false, false, false) => "",
    }
}

fn commit(report: &Report, commit: &RangeCommit) -> Row {
    let end = &report.conclusion;
    let known = report.candidates.iter().find(|c| c.commit == commit.commit);
    let named = end.commit.as_ref() == Some(&commit.commit);
    let suspect = end.suspects.iter().any(|s| s.commit == commit.commit);
    let step = end.culprits.iter().any(|c| c.commit == commit.commit);
    let tag = match (named, step, suspect) {
        (true, _, _) => Some("named"),
        (false, true, _) => Some("step"),
        (false, false, true) => Some("suspect"),
        (false, false, false) => None,
    };
    let cells = vec![
        name(&commit.commit),
        html! { (commit.position) },
        html! { (likelihood(commit.probability)) },
        html! { @if let Some(known) = known { (verdict(report, known)) } },
        html! { @if let Some(tag) = tag { span class="tag" { (tag) } " " } (foreign(&commit.subject)) },
    ];
    Row { class: class(commit.probability >= LIKELY || suspect, known.is_some(), named || step), cells }
}

/// Those that could not be measured, with reasons.
pub(super) fn untestable(report: &Report) -> Markup {
    let broken: Vec<&CandidateFacts> = report.candidates.iter().filter(|c| c.reason.is_some()).collect();
    if broken.is_empty() && report.broken_stretches.is_empty() {
        return html! {};
    }
    let columns = [Column::Text("Commit"), Column::Wide("Why"), Column::Wide("Subject")];
    let row = |c: &&CandidateFacts| {
        Row::plain(vec![
            name(&c.commit),
            foreign(c.reason.as_deref().unwrap_or_default()),
            foreign(&c.subject),
        ])
    };
    let rows: Vec<Row> = broken.iter().map(row).collect();
    html! {
        p { "They say nothing about the change; the search goes around them." }
        @if !rows.is_empty() { (table("broken", &format!("{} that could not be measured", count(rows.len(), "commit")), &columns, &rows)) }
        @for stretch in &report.broken_stretches {
            p { (count(stretch.commits, "commit")) " in a row, " (stretch.tried) " tried, none can be measured; to leave them out of \
                another search: " code { "--skip " (clean(&stretch.range, LINE)) } }
        }
    }
}

/// Every run of every boot.
pub(super) fn runs(report: &Report) -> Markup {
    let all = report.candidates.iter().flat_map(|c| c.boots.iter().map(move |b| (c, b)));
    let mut all: Vec<(&CandidateFacts, &BootFacts)> = all.collect();
    if all.is_empty() {
        return html! {};
    }
    all.sort_by_key(|(_, boot)| boot.boot);
    let columns = [
        Column::number("Boot"),
        Column::Text("Kernel"),
        Column::Text("For"),
        Column::Wide("Runs"),
        Column::Text("Warm-up"),
        Column::Text("Lost"),
        Column::Short("Boot id"),
    ];
    let row = |&(candidate, boot): &(&CandidateFacts, &BootFacts)| {
        let list = |runs: &[f64]| runs.iter().map(|run| figure(*run)).collect::<Vec<_>>().join(", ");
        let warmup = &boot.runs[..boot.runs.len() - boot.counted().len()];
        let stage =
            if boot.stage == 0 { "search".to_owned() } else { format!("confirmation {}", boot.stage) };
        Row::plain(vec![
            html! { (boot.boot) },
            name(&candidate.commit),
            html! { (stage) },
            html! { (list(boot.counted())) },
            html! { @if warmup.is_empty() { "none" } @else { (list(warmup)) } },
            html! { @for lost in &boot.lost { (foreign(lost)) br; } },
            html! { code { (clean(&boot.boot_id, 40)) } },
        ])
    };
    let rows: Vec<Row> = all.iter().map(row).collect();
    let caption =
        format!("{}, run by run in the order they were taken; warm-up is not counted", metric(report));
    folded(&format!("Table: {}", count(rows.len(), "boot")), &table("run-list", &caption, &columns, &rows))
}
