//! What stands around the verdict: assumptions, machines, counters, cost, and how to do it again.

use super::plots::halving_words;
use super::table::{Column, Row, folded, pairs, table};
use super::words::{count, figure, foreign, name, percent};
use crate::report::environment::lines;
use crate::report::facts::Report;
use crate::report::moved::{MovedFacts, MovedRow};
use crate::report::seen::SeenFacts;
use crate::report::{GuardFacts, counted};
use crate::session::duration;
use maud::{Markup, html};

/// Counters below this many standard errors stand out by chance alone, where hundreds are looked at.
const CLEAR: f64 = 3.0;

/// Counters that are listed.
const LISTED: usize = 60;

/// Assumptions that did not hold, and what was done.
pub(super) fn assumptions(report: &Report) -> Markup {
    let columns = [Column::Text("Guard"), Column::Wide("Assumed"), Column::Wide("Seen and done")];
    let row = |guard: &GuardFacts| {
        let assumed = guard
            .assumption
            .map_or_else(|| html! { "a setting" }, |words| html! { (words) " (it did not hold)" });
        Row::plain(vec![html! { (guard.guard.replace('_', "-")) }, assumed, foreign(&guard.words)])
    };
    let rows: Vec<Row> = report.guards.iter().map(row).collect();
    html! {
        @if rows.is_empty() { p { "No guard acted: drift, order of runs, modes, outliers and the machine's setting were as assumed." } }
        @else { (table("guards", "Guards on the data that acted", &columns, &rows)) }
    }
}

/// What the machines were like.
pub(super) fn environment(report: &Report) -> Markup {
    let Some(facts) = &report.environment else { return html! {} };
    let fields: Vec<Row> =
        facts.fields.iter().map(|(field, value)| Row::plain(vec![foreign(field), foreign(value)])).collect();
    let inside = table(
        "fields",
        "Every field that is compared from boot to boot, as the first boot showed it",
        &[Column::Text("Field"), Column::Wide("Value")],
        &fields,
    );
    html! {
        @for (_, words) in lines(facts) { p { (foreign(&words)) } }
        @for (boot, reason) in facts.moved.iter().take(20) { p { "Boot " (boot) " was cut short: " (foreign(reason)) } }
        (folded(&format!("Table: {}", count(fields.len(), "field")), &inside))
    }
}

/// What was seen beside the judged metric, and what was counted.
pub(super) fn counters(report: &Report) -> Markup {
    html! { (seen(&report.also_seen)) @if let Some(facts) = &report.moved { (moved(facts)) } }
}

fn seen(all: &[SeenFacts]) -> Markup {
    if all.is_empty() {
        return html! {};
    }
    let columns = [
        Column::Text("Metric"),
        Column::number("Good"),
        Column::number("Bad"),
        Column::number("Change"),
        Column::Text("Unit"),
        Column::Text("Better"),
    ];
    let row = |s: &SeenFacts| {
        Row::plain(vec![
            foreign(&s.metric),
            html! { (figure(s.good)) },
            html! { (figure(s.bad)) },
            html! { @if let Some(change) = s.change { (percent(change)) } },
            foreign(&s.unit),
            html! { @if let Some(direction) = s.direction { (direction) } },
        ])
    };
    let rows: Vec<Row> = all.iter().map(row).collect();
    let inside = table("seen", "Other metrics of the endpoints' runs: medians, not judged", &columns, &rows);
    if rows.len() > 12 { folded(&format!("Table: {}", count(rows.len(), "metric")), &inside) } else { inside }
}

fn moved(facts: &MovedFacts) -> Markup {
    let listed = |row: &&MovedRow| row.over_error.abs() >= CLEAR;
    let rows: Vec<&MovedRow> = facts.rows.iter().filter(listed).take(LISTED).collect();
    let columns = [
        Column::Text("Counter"),
        Column::Number(facts.against.short().to_owned()),
        Column::Number(facts.commit.short().to_owned()),
        Column::number("Change"),
        Column::number("Over its error"),
    ];
    let row = |r: &&MovedRow| {
        Row::plain(vec![
            foreign(&r.name),
            html! { (figure(r.against)) },
            html! { (figure(r.commit)) },
            html! { (r.change.map_or_else(|| "new".to_owned(), percent)) },
            html! { (format!("{:+.0}", r.over_error)) },
        ])
    };
    let caption = format!(
        "Counters of {} against {}: means per {} over {} and {} boots, the clearest first; not judged, and of hundreds some stand out by chance",
        facts.commit.short(),
        facts.against.short(),
        facts.per,
        facts.boots.0,
        facts.boots.1
    );
    let rows: Vec<Row> = rows.iter().map(row).collect();
    html! {
        @if rows.is_empty() { p { "Of what was counted beside the runs of " (name(&facts.commit)) " and " (name(&facts.against)) " nothing differs clearly." } }
        @else { (table("moved", &caption, &columns, &rows)) }
        p { @for from in &facts.from { (foreign(from)) br; } }
    }
}

/// Cost and command.
pub(super) fn again(report: &Report) -> Markup {
    let spent = &report.spent;
    let counts =
        [counted(spent.builds, "build"), counted(spent.boots, "boot"), counted(spent.runs, "run")].join(", ");
    let mut of = vec![
        ("Spent", html! { (counts) }),
        ("Machine time", html! { (duration(spent.seconds)) }),
        ("Of it, builds", html! { (duration(spent.build_seconds)) }),
        ("Of it, the SUT", html! { (duration(spent.sut_seconds)) ", all machines together" }),
    ];
    if let Some(halving) = &spent.halving {
        of.push(("Halving", html! { (halving_words(halving)) }));
    }
    html! {
        (pairs(&of))
        @if !report.command.is_empty() {
            p { "The command that starts such a session:" }
            pre tabindex="0" { code { (super::words::clean(&report.command, 4000)) } }
        }
    }
}
