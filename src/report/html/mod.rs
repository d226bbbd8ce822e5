//! The report as one page that needs nothing but itself: no network, no script, no font.
//!
//! A pure function of the report's facts: the conclusion first, then what was measured, the way of the search, the machine,
//! the commits, all runs. Pictures are SVG with a text alternative and a table beside each. Whatever a commit, a host or a
//! profile says is escaped, cut and shown on one line ([`words::clean`]); a policy in the page forbids the browser to fetch
//! anything. Must not do: judge, or read anything but facts. Tested in tests/it/html.rs, in a browser too.

mod around;
mod history;
mod measured;
mod plots;
mod svg;
mod table;
mod top;
mod words;

use super::facts::Report;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use words::clean;

/// How the page looks: light, dark, printed, on a phone.
const STYLE: &str = include_str!("style.css");

/// Nothing may be fetched or run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A part of the page: what a link to it says, its name, what is in it.
struct Part {
    id: &'static str,
    head: &'static str,
    inside: Markup,
}

/// The page of a session.
pub fn html(report: &Report) -> String {
    let parts: Vec<Part> = [
        ("measured", "What was measured", measured::measured(report)),
        ("search", "How the search went", measured::search(report)),
        ("machine", "The machine over time", measured::machine(report)),
        ("commits", "Commits of the range", history::commits(report)),
        ("untestable", "Commits that could not be measured", history::untestable(report)),
        ("doubts", "Assumptions", around::assumptions(report)),
        ("environment", "Environment", around::environment(report)),
        ("counters", "What else moved", around::counters(report)),
        ("runs", "Every run", history::runs(report)),
        ("again", "Cost, and how to do it again", around::again(report)),
    ]
    .into_iter()
    .filter(|(_, _, inside)| !inside.0.is_empty())
    .map(|(id, head, inside)| Part { id, head, inside })
    .collect();
    let title = format!("{}: {}", top::title(report.conclusion.kind), clean(&report.session, 100));
    page(&title, &top::top(report), &parts)
}

fn page(title: &str, top: &Markup, parts: &[Part]) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content={ "sched-bisect " (env!("CARGO_PKG_VERSION")) };
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a class="skip" href="#main" { "To the report" }
                main id="main" {
                    (top)
                    nav aria-label="Parts of the report" { ul {
                        @for part in parts { li { a href={ "#" (part.id) } { (part.head) } } }
                    } }
                    @for part in parts {
                        section aria-labelledby=(part.id) { h2 id=(part.id) { (part.head) } (part.inside) }
                    }
                }
                footer { p { "Written by sched-bisect " (env!("CARGO_PKG_VERSION")) ". This file is complete: it loads nothing." } }
            }
        }
    }
    .into_string()
}
