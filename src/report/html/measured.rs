//! What was measured, the way of the search and the machine: each picture with its table.

use super::plots::{self, Again};
use super::table::{Column, Row, folded, table};
use super::top::verdict;
use super::words::{change, count, figure, foreign, likelihood, metric, name, percent};
use crate::report::facts::{CandidateFacts, Report};
use crate::report::path::{PathFacts, Stretch, stretches};
use crate::session::duration;
use maud::{Markup, html};

/// Leading commits that a step names.
const NAMED: usize = 3;

/// Kernels: picture and table.
pub(super) fn measured(report: &Report) -> Markup {
    if report.candidates.is_empty() {
        return html! {};
    }
    let columns = [
        Column::Text("Kernel"),
        Column::Short("Verdict"),
        Column::number("Boots"),
        Column::number("Runs"),
        Column::Number(format!("Mean {}", metric(report))),
        Column::number("Against good"),
        Column::Wide("Subject"),
    ];
    let rows: Vec<Row> = report.candidates.iter().map(|c| kernel(report, c)).collect();
    let inside =
        table("kernels", "Every kernel that was built or measured, parents before children", &columns, &rows);
    html! {
        (plots::samples(report))
        (folded(&format!("Table: {}", count(rows.len(), "kernel")), &inside))
        @for (commit, reason) in &report.retracted { p { "Verdict retracted: " (name(commit)) ": " (foreign(reason)) } }
    }
}

fn kernel(report: &Report, candidate: &CandidateFacts) -> Row {
    let runs: Vec<f64> = candidate.boots.iter().flat_map(|b| b.counted()).copied().collect();
    let mean = runs.iter().sum::<f64>() / runs.len().max(1) as f64;
    let effect = candidate.effect.map_or_else(String::new, |e| change(report, e));
    let cells = vec![
        name(&candidate.commit),
        verdict(report, candidate),
        html! { (candidate.counted_boots()) },
        html! { (runs.len()) },
        html! { @if !runs.is_empty() { (figure(mean)) } },
        html! { (effect) },
        foreign(&candidate.subject),
    ];
    let named = report.conclusion.commit.as_ref() == Some(&candidate.commit);
    Row { class: if named { "named" } else { "" }, cells }
}

/// The way and the cost.
pub(super) fn search(report: &Report) -> Markup {
    if report.path.is_empty() {
        return html! {};
    }
    html! {
        (plots::way(report))
        (plots::cost(report))
        h3 { "Step by step" }
        (steps(report))
        (folded("Table: every boot of the way", &every_step(report)))
    }
}

/// What belongs together as one step.
fn steps(report: &Report) -> Markup {
    let columns = [
        Column::number("Step"),
        Column::Short("Kernel"),
        Column::Wide("Why it was chosen"),
        Column::Short("Took"),
        Column::Wide("What it told"),
        Column::number("Open [bits]"),
        Column::number("95 % in"),
        Column::Short("Likeliest after it"),
    ];
    let rows: Vec<Row> =
        stretches(&report.path).enumerate().map(|(at, stretch)| step(at + 1, &stretch)).collect();
    table("steps", "The way of the search; boots that belong together are one step", &columns, &rows)
}

fn step(number: usize, stretch: &Stretch) -> Row {
    let (first, last) = (stretch.first(), stretch.last());
    let mut kernels: Vec<&crate::model::CommitId> = stretch.steps.iter().map(|s| &s.commit).collect();
    kernels.sort();
    kernels.dedup();
    let kernel = if let [one] = kernels[..] {
        name(one)
    } else {
        html! { (count(kernels.len(), "kernel")) }
    };
    let boots = stretch.steps.iter().filter(|s| s.boot.is_some()).count();
    let built = stretch.steps.iter().filter(|s| s.built).count();
    Row::plain(vec![
        html! { (number) },
        html! { (kernel) br; (first.phase.word()) },
        foreign(&first.why),
        html! { (duration(stretch.seconds())) @if boots > 0 { br; (count(boots, "boot")) } @if built > 0 { br; (count(built, "build")) } },
        told(stretch.steps),
        html! { @if let Some(bits) = last.entropy_bits { (format!("{bits:.2}")) } },
        html! { @if let Some(credible) = last.credible { (credible) } },
        believed(last),
    ])
}

fn told(steps: &[PathFacts]) -> Markup {
    let lost = steps.iter().filter_map(|s| s.lost.as_deref()).next();
    html! {
        @for words in steps.iter().flat_map(|s| &s.verdicts) { (foreign(words)) br; }
        @if let Some(lost) = lost { (foreign(lost)) }
    }
}

fn believed(step: &PathFacts) -> Markup {
    html! {
        @for (commit, p) in step.believed.iter().take(NAMED) { (name(commit)) " " (likelihood(*p)) br; }
    }
}

/// Every boot, and every kernel that could not be had.
fn every_step(report: &Report) -> Markup {
    let columns = [
        Column::number("Number"),
        Column::Short("Ended (UTC)"),
        Column::Text("For"),
        Column::Text("Kernel"),
        Column::number("Boot"),
        Column::number("Mean"),
        Column::Short("Took"),
        Column::Short("Spent"),
        Column::number("Open [bits]"),
        Column::number("95 % in"),
    ];
    let row = |s: &PathFacts| {
        let mean = s.runs.iter().sum::<f64>() / s.runs.len().max(1) as f64;
        Row::plain(vec![
            html! { (s.number) },
            html! { (moment(s.at_ms)) },
            html! { (s.phase.word()) },
            name(&s.commit),
            html! { @if let Some(boot) = s.boot { (boot) } },
            html! { @if s.runs.is_empty() { "none" } @else { (figure(mean)) } },
            html! { (duration(s.seconds)) },
            html! { (duration(s.spent_seconds)) },
            html! { @if let Some(bits) = s.entropy_bits { (format!("{bits:.3}")) } },
            html! { @if let Some(credible) = s.credible { (credible) } },
        ])
    };
    let rows: Vec<Row> = report.path.iter().map(row).collect();
    table("way-table", "Every boot of the way, and every kernel that could not be had", &columns, &rows)
}

fn moment(at_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(at_ms)
        .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// The machine.
pub(super) fn machine(report: &Report) -> Markup {
    let again = plots::again(report);
    if again.is_empty() {
        return html! {};
    }
    let moved = plots::moved(report);
    let columns = [
        Column::number("Boot"),
        Column::Text("Kernel"),
        Column::number("Mean"),
        Column::number("Against its kernel's mean"),
        Column::number("Drift taken out"),
    ];
    let row = |b: &Again| {
        let drift = moved.get(b.run as usize).map(|x| percent(*x));
        Row::plain(vec![
            html! { (b.boot) },
            name(&report.candidates[b.candidate].commit),
            html! { (figure(b.mean)) },
            html! { (percent(b.off)) },
            html! { (drift.unwrap_or_else(|| "none".to_owned())) },
        ])
    };
    let rows: Vec<Row> = again.iter().map(row).collect();
    let inside = table(
        "machine-table",
        "Boots of kernels that were measured often, in the order they were taken",
        &columns,
        &rows,
    );
    html! {
        (plots::drift(report))
        (folded(&format!("Table: {}", count(rows.len(), "boot")), &inside))
    }
}
