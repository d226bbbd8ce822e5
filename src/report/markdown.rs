//! The report as Markdown, for trackers.

use super::facts::{CandidateFacts, Report};
use super::pairs::{self, Pairs, title};
use super::path::{Stretch, stretches};
use crate::model::ConclusionKind;
use crate::session::{NOT_MEASURED, duration};
use std::fmt::Write;

/// Suspects and steps that are listed.
const LISTED: usize = 60;

/// The whole report.
pub fn markdown(report: &Report) -> String {
    let (title, reason) = (title(report.conclusion.kind), &report.conclusion.reason);
    let mut out = format!("# {title}\n\n{}\n", escaped(&report.headline));
    if report.conclusion.kind == ConclusionKind::Culprit {
        let _ = writeln!(out, "\n{}.", escaped(reason));
    }
    table(&mut out, "", pairs::conclusion(report));
    let setting = [pairs::setting, pairs::parents, pairs::checks, pairs::further];
    table(&mut out, "Measured", joined(setting.map(|part| part(report))));
    suspects(&mut out, report);
    kernels(&mut out, report);
    table(
        &mut out,
        "What did not hold, and was looked after",
        joined([pairs::stretches(report), pairs::guards(report)]),
    );
    if report.conclusion.kind == ConclusionKind::Stopped {
        table(&mut out, "Where it stands", pairs::search(report));
    }
    way(&mut out, report);
    table(&mut out, "Machines", pairs::environment(report));
    moved(&mut out, report);
    let end = Pairs(vec![("next".to_owned(), report.conclusion.next_step.clone())]);
    table(&mut out, "Expense", joined([pairs::expense(report), end]));
    if !report.command.is_empty() {
        let _ = write!(out, "\n## Again\n\n{}", code(&report.command));
    }
    out
}

fn joined(parts: impl IntoIterator<Item = Pairs>) -> Pairs {
    Pairs(parts.into_iter().flat_map(|part| part.0).collect())
}

fn table(out: &mut String, heading: &str, pairs: Pairs) {
    if pairs.0.is_empty() {
        return;
    }
    if !heading.is_empty() {
        let _ = writeln!(out, "\n## {heading}");
    }
    out.push_str("\n| | |\n|---|---|\n");
    for (key, words) in pairs.0 {
        let _ = writeln!(out, "| {} | {} |", escaped(&key), escaped(&words));
    }
}

fn suspects(out: &mut String, report: &Report) {
    let all = &report.conclusion.suspects;
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## Suspects ({})\n", all.len());
    let (told, rest): (Vec<_>, Vec<_>) = all.iter().partition(|s| s.reason != NOT_MEASURED);
    for suspect in told.iter().chain(&rest).take(LISTED) {
        let percent = suspect.probability * 100.0;
        let _ = writeln!(out, "- `{}` {percent:.1} %: {}", suspect.commit.short(), escaped(&suspect.reason));
    }
    more(out, all.len());
}

fn more(out: &mut String, all: usize) {
    if all > LISTED {
        let _ = writeln!(out, "- and {} more, see `--format json`", all - LISTED);
    }
}

fn kernels(out: &mut String, report: &Report) {
    if report.candidates.is_empty() {
        return;
    }
    out.push_str("\n## Kernels\n\n| commit | subject | verdict | boots | runs | against good |\n");
    out.push_str("|---|---|---|--:|--:|---|\n");
    for candidate in &report.candidates {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} |",
            candidate.commit.short(),
            escaped(&candidate.subject),
            candidate.standing(),
            candidate.counted_boots(),
            candidate.counted_runs(),
            escaped(&against_good(report, candidate))
        );
    }
    for (commit, reason) in &report.retracted {
        let _ = writeln!(out, "\nRetracted: `{}` ({})", commit.short(), escaped(reason));
    }
}

fn against_good(report: &Report, candidate: &CandidateFacts) -> String {
    match (&candidate.reason, candidate.effect) {
        (Some(reason), _) => reason.clone(),
        (None, Some(effect)) => effect.words(report.metric.direction),
        (None, None) => String::new(),
    }
}

fn way(out: &mut String, report: &Report) {
    let all: Vec<Stretch> = stretches(&report.path).collect();
    if all.is_empty() || report.purpose != "bisect" {
        return;
    }
    out.push_str("\n## The way of the search\n\n| kernel | took | why, and what it told |\n|---|---|---|\n");
    for stretch in all.iter().take(LISTED) {
        let name = pairs::stretch_name(stretch);
        let words = escaped(&pairs::stretch_words(stretch));
        let _ = writeln!(out, "| {} | {} | {words} |", escaped(&name), duration(stretch.seconds()));
    }
    if all.len() > LISTED {
        let _ = writeln!(out, "| ... | | {} more, see `--format html` |", all.len() - LISTED);
    }
}

fn moved(out: &mut String, report: &Report) {
    let Some(facts) = &report.moved else { return };
    let (head, rows) = super::moved::lines(facts);
    let _ = writeln!(out, "\n## Counted beside the runs\n\n{}", escaped(&head));
    if !rows.is_empty() {
        let _ = write!(out, "\n{}", code(&rows.join("\n")));
    }
}

/// A block of code; text that holds such a fence gets a longer one.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{text}\n{fence}\n")
}

/// What would end a cell, or mean something to Markdown or to the HTML that it allows.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("&#64;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_means_nothing_to_markdown() {
        let subject = "a|b *c* `d` <script> @everyone [x](y)\n# h";
        assert_eq!(escaped(subject), "a\\|b \\*c\\* \\`d\\` &lt;script&gt; &#64;everyone \\[x\\](y) \\# h");
        assert_eq!(code("a ``` b"), "````\na ``` b\n````\n");
    }
}
