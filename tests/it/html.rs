//! The page of a report over a recorded session (golden/journals/simulated-200: a 6 % regression among 200 commits, a machine
//! that drifts): it is well-formed, complete in itself, can be read without seeing it, and what it quotes does nothing.

use sched_bisect::driver::{self, SessionDir};
use sched_bisect::model::{CommitId, Suspect};
use sched_bisect::report::{Report, html};
use scraper::{ElementRef, Html, Selector};
use std::collections::BTreeSet;
use std::path::Path;

/// The report of the recorded session.
pub(super) fn recorded() -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/journals/simulated-200");
    let (dag, state, records) = driver::load(&SessionDir::at(path)).expect("the recorded session");
    Report::of(&dag, &state, &records)
}

fn all<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).expect("a selector")).collect()
}

fn text(element: ElementRef) -> String {
    element.text().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_well_formed(page: &Html) {
    assert_eq!(page.errors, Vec::<&str>::new());
    let mut ids = BTreeSet::new();
    for element in all(page, "[id]") {
        let id = element.attr("id").expect("it has one");
        assert!(ids.insert(id.to_owned()), "id {id} twice");
    }
    for link in all(page, "a") {
        let to = link.attr("href").and_then(|href| href.strip_prefix('#')).expect("a link within the page");
        assert!(ids.contains(to), "#{to} is nowhere");
    }
    for label in all(page, "[aria-labelledby]") {
        for id in label.attr("aria-labelledby").unwrap_or_default().split(' ') {
            assert!(ids.contains(id), "label {id} is nowhere");
        }
    }
}

#[test]
fn the_page_is_well_formed_and_loads_nothing() {
    let html = html(&recorded());
    let page = Html::parse_document(&html);
    assert_well_formed(&page);
    for never in
        ["script", "link", "img", "iframe", "object", "embed", "form", "base", "[src]", "[style]", "[onload]"]
    {
        assert!(all(&page, never).is_empty(), "{never}");
    }
    for never in ["http://", "https://", "url(", "@import", "javascript:"] {
        assert!(!html.contains(never), "{never}");
    }
    let policy = all(&page, "meta[http-equiv=Content-Security-Policy]");
    assert!(policy[0].attr("content").is_some_and(|c| c.starts_with("default-src 'none'")));
}

#[test]
fn the_page_can_be_read_without_seeing_it() {
    let page = Html::parse_document(&html(&recorded()));
    let mut level = 0;
    for head in all(&page, "h1, h2, h3, h4") {
        let next = head.value().name()[1..].parse::<u32>().expect("a level");
        assert!(next <= level + 1, "{} follows a heading of level {level}", text(head));
        level = next;
    }
    assert_eq!(all(&page, "h1").len(), 1);
    for landmark in ["main", "nav[aria-label]", "header", "footer", "html[lang]", "head > title"] {
        assert_eq!(all(&page, landmark).len(), 1, "{landmark}");
    }
    let pictures = all(&page, "svg");
    assert_eq!(pictures.len(), 4, "samples, way, cost, drift");
    for picture in &pictures {
        assert_eq!(picture.attr("role"), Some("img"));
        for told in ["title", "desc"] {
            let words: String =
                picture.select(&Selector::parse(told).expect("a selector")).map(text).collect();
            assert!(words.len() > 15, "{told}: {words:?}");
        }
    }
    for table in all(&page, "table") {
        assert!(table.select(&Selector::parse("caption").expect("a selector")).count() == 1);
    }
    for cell in all(&page, "th") {
        assert!(matches!(cell.attr("scope"), Some("col" | "row")), "{}", text(cell));
    }
    // What scrolls can be reached by keyboard, and says what it is.
    for scrolls in all(&page, ".box, .plot") {
        assert_eq!(scrolls.attr("tabindex"), Some("0"));
        assert!(scrolls.attr("aria-labelledby").or(scrolls.attr("aria-label")).is_some());
    }
}

#[test]
fn the_page_tells_every_fact_of_the_session() {
    let report = recorded();
    let page = Html::parse_document(&html(&report));
    let rows = |table: &str| all(&page, &format!("#{table} > tbody > tr")).len();
    assert_eq!(rows("kernels"), report.candidates.len());
    assert_eq!(rows("commit-list"), report.commits.len());
    assert_eq!(rows("way-table"), report.path.len());
    assert_eq!(rows("run-list"), report.candidates.iter().map(|c| c.boots.len()).sum::<usize>());
    let head = text(all(&page, "h1")[0]);
    let commit = report.conclusion.commit.as_ref().expect("a culprit").short();
    assert!(head.contains(commit), "{head}");
    assert_eq!(all(&page, "#commit-list tr.named").len(), 1);
    // Each counted run has its mark: those of drift and way are the boots'.
    let drawn = all(
        &page,
        "svg[aria-labelledby^=samples] circle, svg[aria-labelledby^=samples] polygon, \
                            svg[aria-labelledby^=samples] polyline",
    )
    .len();
    let runs: usize = report.candidates.iter().map(|c| c.counted_runs()).sum();
    assert!(drawn > runs, "{drawn} marks for {runs} runs");
}

#[test]
fn what_commits_and_hosts_say_does_nothing_to_the_page() {
    let mut report = recorded();
    let hostile = "</title></svg><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}\u{0}\n&amp;\" onload=\"x";
    let long = format!("<b>{}", "x".repeat(1 << 20));
    for (at, text) in [(0, hostile), (1, &*long)] {
        report.commits[at].subject = text.to_owned();
        report.candidates[at].subject = text.to_owned();
        report.candidates[at].reason = Some(format!("build: {text}"));
        report.path[at].why = text.to_owned();
        report.path[at].lost = Some(text.to_owned());
    }
    for all in [
        &mut report.session,
        &mut report.headline,
        &mut report.profile,
        &mut report.command,
        &mut report.good.rev,
    ] {
        *all = hostile.to_owned();
    }
    report.metric.name = hostile.to_owned();
    report.config_change = vec![hostile.to_owned(), long.clone()];
    report.conclusion.subject = Some(long.clone());
    report.conclusion.next_step = hostile.to_owned();
    let suspect = |at: usize| Suspect {
        commit: report.commits[at].commit.clone(),
        probability: 0.5,
        reason: hostile.to_owned(),
    };
    report.conclusion.suspects = vec![suspect(0), suspect(1)];
    let html = html(&report);
    assert!(html.len() < 400_000, "{} bytes", html.len());
    assert!(!html.contains('\u{202e}') && !html.contains('\u{0}'));
    let page = Html::parse_document(&html);
    assert_well_formed(&page);
    for never in ["script", "img", "b", "[onload]", "[onerror]"] {
        assert!(all(&page, never).is_empty(), "{never}");
    }
    assert!(text(all(&page, "h1 + p")[0]).ends_with("..."), "a long subject is cut");
}

#[test]
fn a_session_without_facts_is_a_page_too() {
    let mut report = recorded();
    (report.candidates, report.commits, report.path) = (Vec::new(), Vec::new(), Vec::new());
    (report.drift, report.spent.halving, report.conclusion.commit) = (None, None, None);
    let page = Html::parse_document(&html(&report));
    assert_well_formed(&page);
    assert!(all(&page, "svg").is_empty());
}

/// The style sheet's variables of one block.
fn palette(style: &str, block: usize) -> impl Fn(&str) -> f64 {
    let block =
        style.split(":root {").nth(block).expect("a block").split('}').next().unwrap_or_default().to_owned();
    move |name| {
        let value = block
            .split(&format!("--{name}: #"))
            .nth(1)
            .expect("a colour")
            .split(';')
            .next()
            .unwrap_or_default();
        let value =
            if value.len() == 3 { value.chars().flat_map(|c| [c, c]).collect() } else { value.to_owned() };
        let part = |at: usize| {
            let part = f64::from(u8::from_str_radix(&value[at..at + 2], 16).expect("hexadecimal")) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4)
    }
}

#[test]
fn every_colour_of_text_and_marks_has_the_contrast_that_aa_asks() {
    let style = include_str!("../../src/report/html/style.css");
    for block in [1, 2, 3] {
        let light = palette(style, block);
        for ground in ["page", "raised", "named"] {
            for ink in ["text", "faint", "link", "good", "bad", "better", "unsure", "pass"] {
                let (a, b) = (light(ink), light(ground));
                let ratio = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(ratio >= 4.5, "block {block}: {ink} on {ground} has {ratio:.2}");
            }
        }
    }
}

/// The page without its style and what is inside pictures, a line for each element that matters.
fn golden(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    for (from, to) in [
        ("<style>", "</style>"),
        ("</desc>", "</svg>"),
        ("</desc>", "</svg>"),
        ("</desc>", "</svg>"),
        ("</desc>", "</svg>"),
    ] {
        let (before, after) = rest.split_once(from).expect("it is there");
        out.push_str(before);
        out.push_str(from);
        rest = &after[after.find(to).expect("its end")..];
    }
    out.push_str(rest);
    let (before, list) = out.split_once("<table id=\"commit-list\">").expect("the list of commits");
    let (_, after) = list.split_once("</table>").expect("its end");
    let mut text = format!("{before}COMMITS{after}").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    for element in [
        "<tr", "<p", "<h1", "<h2", "<h3", "<div", "<table", "<section", "<details", "<dt", "<svg", "<li",
        "<figure",
    ] {
        text = text.replace(element, &format!("\n{element}"));
    }
    text
}

#[test]
fn the_page_of_a_culprit_is_as_recorded() {
    insta::with_settings!({
        snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/report"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!("culprit_html", golden(&html(&recorded())));
    });
}

#[test]
fn a_named_commit_outside_the_range_breaks_nothing() {
    let mut report = recorded();
    let unknown = CommitId::parse(&"f".repeat(40)).expect("an id");
    report.conclusion.commit = Some(unknown);
    assert_well_formed(&Html::parse_document(&html(&report)));
}
