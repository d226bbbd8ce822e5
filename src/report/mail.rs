//! The report as a mail in the kernel's conventions: plain text, 72 columns, ASCII but for names and subjects that have
//! more, ready for git send-email. See Documentation/admin-guide/reporting-regressions.rst in the kernel's tree for what a
//! reader expects, and regzbot's documentation for its command.

use super::culprit::certainty;
use super::facts::{CandidateFacts, Report};
use super::pairs;
use crate::model::{Check, CommitId, ConclusionKind, Sense};
use crate::stats::median;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;

/// Columns of the body.
const WIDTH: usize = 72;

/// Kernels in the table: the ends and those next to the step.
const ROWS: usize = 24;

/// Letters of UTF-8 that one encoded word of a header takes, so that it stays below 75 (RFC 2047, 2).
const WORD: usize = 42;

/// Who writes to whom; addresses as `Name <mail>`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct People {
    /// Who reports; empty where git knows nobody.
    pub from: String,
    /// Maintainers and the commit's author.
    pub to: Vec<String>,
    /// Lists and reviewers.
    pub cc: Vec<String>,
}

/// The mail, or why there is nothing to mail.
pub fn mail(report: &Report, people: &People) -> Result<String, String> {
    let about = About::of(report)?;
    let mut body = String::new();
    opening(&mut body, report, &about);
    tables(&mut body, report);
    how(&mut body, report);
    doubts(&mut body, report);
    signs(&mut body, &about, people);
    let mut out = String::new();
    header(&mut out, "From", std::slice::from_ref(&people.from));
    header(&mut out, "To", &people.to);
    header(&mut out, "Cc", &people.cc);
    let _ = writeln!(out, "Subject: {}", encoded(&about.subject));
    if !out.is_ascii() || !body.is_ascii() {
        out.push_str("MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n");
        out.push_str("Content-Transfer-Encoding: 8bit\n");
    }
    let _ = write!(out, "\n{body}");
    Ok(out)
}

/// What is told.
struct About {
    /// Subject of the mail.
    subject: String,
    /// What brought it in, for regzbot: a commit with its subject, or a range.
    introduced: String,
    /// The commit that is to be fixed, if it is one.
    fixes: Option<String>,
}

impl About {
    fn of(report: &Report) -> Result<Self, String> {
        let end = &report.conclusion;
        let kind = match end.kind {
            ConclusionKind::Culprit
            | ConclusionKind::CulpritSet
            | ConclusionKind::Restored
            | ConclusionKind::Partial => end.kind,
            other @ (ConclusionKind::NoDifference
            | ConclusionKind::OppositeSign
            | ConclusionKind::NoopChange
            | ConclusionKind::NotMonotonic
            | ConclusionKind::Stopped
            | ConclusionKind::NoEffect
            | ConclusionKind::CannotRevert
            | ConclusionKind::AlreadyReverted
            | ConclusionKind::NotMeasurable
            | ConclusionKind::Surveyed) => {
                return Err(format!(
                    "there is nobody to write to: {} ({})",
                    pairs::title(other).to_lowercase(),
                    end.reason
                ));
            }
        };
        let own = end.effect.filter(|_| kind == ConclusionKind::Culprit);
        let change = own.or(report.endpoints.effect);
        let change = change.map_or_else(String::new, |effect| percent(report, effect.relative));
        let tag = if end.sense == Some(Sense::Improvement) { "[PERFORMANCE]" } else { "[REGRESSION]" };
        let metric = &report.metric.name;
        let named = end.commit.as_ref().zip(end.subject.as_ref());
        let quoted = named.map(|(commit, subject)| quoted(commit, subject));
        let (good, bad) = (&report.good.rev, &report.bad.rev);
        let subject = match (&quoted, kind) {
            (Some(quoted), ConclusionKind::Restored | ConclusionKind::Partial) => {
                format!("{tag} {metric} {change} from {good} to {bad}, brought back by reverting {quoted}")
            }
            (Some(quoted), _) => format!("{tag} {metric} {change} since {quoted}"),
            (None, _) => {
                let count = end.suspects.len();
                format!("{tag} {metric} {change} from {good} to {bad}, one of {count} commits")
            }
        };
        let introduced = quoted.clone().unwrap_or_else(|| format!("{good}..{bad}"));
        Ok(Self { subject: on_one_line(&subject), introduced, fixes: quoted })
    }
}

/// `bbce3de72be5 ("sched/eevdf: ...")`.
fn quoted(commit: &CommitId, subject: &str) -> String {
    format!("{} (\"{}\")", commit.short(), on_one_line(subject))
}

/// "-7.4%", of the metric itself.
fn percent(report: &Report, relative: f64) -> String {
    let shown = report.metric.direction.worse_sign() * relative * 100.0;
    // No "-0.0".
    format!("{:+.1}%", if shown.abs() < 0.05 { 0.0 } else { shown })
}

fn opening(out: &mut String, report: &Report, about: &About) {
    let end = &report.conclusion;
    out.push_str("Hello,\n\n");
    let change = report.endpoints.effect.map_or_else(String::new, |effect| {
        format!(
            "{} changed by {} from {} to {}. ",
            report.metric.name,
            effect.words(report.metric.direction),
            report.good.rev,
            report.bad.rev
        )
    });
    paragraph(out, &format!("{change}A bisection by measurement came to:"));
    out.push('\n');
    indented(out, &report.headline);
    if let (ConclusionKind::Restored | ConclusionKind::Partial, Some(part)) = (end.kind, end.restored) {
        indented(
            out,
            &format!("Reverting it on top of {} brings back {part} of the difference.", report.bad.rev),
        );
    }
    if let Some(probability) = end.probability.filter(|_| end.kind != ConclusionKind::Culprit) {
        indented(out, &format!("Probability: {}.", certainty(probability)));
    }
    for suspect in end.suspects.iter().take(ROWS) {
        indented(
            out,
            &format!(
                "{} {:.1} %: {}",
                suspect.commit.short(),
                suspect.probability * 100.0,
                ascii(&suspect.reason)
            ),
        );
    }
    let _ = writeln!(out, "\n#regzbot introduced: {}\n", about.introduced);
}

/// Kernels beside each other, in the order of the history.
fn tables(out: &mut String, report: &Report) {
    let unit =
        if report.metric.unit.is_empty() { String::new() } else { format!(" ({})", report.metric.unit) };
    let level = report.confidence * 100.0;
    paragraph(
        out,
        &format!(
            "{}{unit}, {}; medians of the runs, change against {} with its {level:.0} % interval:",
            report.metric.name, report.metric.direction, report.good.rev
        ),
    );
    let _ = writeln!(
        out,
        "\n  {:<16} {:>5} {:>5} {:>12} {:>8}  interval",
        "kernel", "boots", "runs", "median", "change"
    );
    let _ = writeln!(out, "  {}", "-".repeat(WIDTH - 2));
    for candidate in shown(report) {
        let _ = writeln!(out, "  {}", row(report, candidate));
    }
    out.push('\n');
}

/// The measured kernels; of many the ends and those that matter most.
fn shown(report: &Report) -> Vec<&CandidateFacts> {
    let measured: Vec<&CandidateFacts> = report.candidates.iter().filter(|c| c.counted_boots() > 0).collect();
    let mut by_boots: Vec<usize> = (0..measured.len()).collect();
    by_boots.sort_by_key(|&at| (std::cmp::Reverse(measured[at].counted_boots()), at));
    by_boots.truncate(ROWS);
    by_boots.sort_unstable();
    by_boots.into_iter().map(|at| measured[at]).collect()
}

fn row(report: &Report, candidate: &CandidateFacts) -> String {
    let values: Vec<f64> = candidate.boots.iter().flat_map(|b| b.counted()).copied().collect();
    let value = median(&values);
    let decimals = if value.abs() >= 1000.0 { 0 } else { 3 };
    let numbers = match candidate.effect {
        Some(effect) => {
            let (a, b) = (percent(report, effect.low), percent(report, effect.high));
            let (low, high) = if report.metric.direction.worse_sign() > 0.0 { (a, b) } else { (b, a) };
            format!("{:>8}  {low} to {high}", percent(report, effect.relative))
        }
        None => String::new(),
    };
    let row = format!(
        "{:<16} {:>5} {:>5} {value:>12.decimals$} {numbers}",
        name(report, candidate),
        candidate.counted_boots(),
        candidate.counted_runs()
    );
    row.trim_end().to_owned()
}

/// "v6.15-rc4", else the commit's first digits.
fn name(report: &Report, candidate: &CandidateFacts) -> String {
    let ends = [&report.good, &report.bad];
    let end = ends.into_iter().find(|end| end.commit == candidate.commit);
    match end.map(|end| end.rev.as_str()).filter(|rev| rev.len() <= 16 && rev.is_ascii()) {
        Some(rev) => rev.to_owned(),
        None => candidate.commit.short().to_owned(),
    }
}

fn how(out: &mut String, report: &Report) {
    let checks = &report.checks;
    let word = |check: Check| match check {
        Check::Pass => "PASS",
        Check::Fail => "FAIL",
        Check::NotRun => "NOT RUN",
    };
    let words = format!(
        "Checks: verify (fresh interleaved boots of commit and parents) {}, revert {}, alignment {}.",
        word(checks.verify),
        word(checks.revert),
        word(checks.alignment)
    );
    paragraph(out, &words);
    if let Some(revert) = &report.reverted {
        paragraph(out, &format!("Revert: {}.", ascii(&revert.words)));
    }
    out.push('\n');
    for (key, words) in pairs::setting(report).0.into_iter().chain(pairs::environment(report).0) {
        let told = ["variant", "environment"].contains(&key.as_str()) || words.starts_with("programs:");
        if told {
            let key = if key.is_empty() { String::new() } else { format!("{}: ", capital(&key)) };
            paragraph(out, &ascii(&format!("{key}{words}")));
        }
    }
    for (_, words) in pairs::parents(report).0.into_iter().filter(|(key, _)| key == "configuration") {
        paragraph(out, &format!("Configuration of the commit against its parent: {}.", ascii(&words)));
    }
    paragraph(out, &format!("Spent: {}.", super::text::expense(&report.spent)));
    if !report.command.is_empty() {
        let _ = writeln!(out, "\nCommand:\n\n  {}", ascii(&report.command));
    }
    out.push('\n');
}

/// What speaks against it, told as plainly as what speaks for it.
fn doubts(out: &mut String, report: &Report) {
    paragraph(
        out,
        "This was found by a program (sched-bisect); nobody has looked at the code by hand. The commit may only bring to light \
         what was there before.",
    );
    for guard in report.guards.iter().filter(|guard| guard.assumption.is_some()) {
        paragraph(out, &format!("Note: {}.", ascii(&guard.words)));
    }
}

fn signs(out: &mut String, about: &About, people: &People) {
    out.push('\n');
    if let Some(fixes) = &about.fixes {
        let _ = writeln!(out, "Fixes: {fixes}");
    }
    if !people.from.is_empty() {
        let _ = writeln!(out, "Reported-by: {}", people.from);
    }
}

/// Addresses, one a line.
fn header(out: &mut String, name: &str, all: &[String]) {
    let all: Vec<String> = all.iter().filter(|a| !a.is_empty()).map(|a| address(a)).collect();
    if !all.is_empty() {
        let _ = writeln!(out, "{name}: {}", all.join(",\n    "));
    }
}

/// An address whose name has more than ASCII, encoded.
fn address(text: &str) -> String {
    let text = on_one_line(text);
    match text.rsplit_once(" <") {
        Some((name, mail)) if !name.is_ascii() => format!("{} <{mail}", encoded(name.trim_matches('"'))),
        _ => text,
    }
}

/// Text of a header: as it is if it is ASCII, else as encoded words (RFC 2047).
fn encoded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut words = vec![String::new()];
    for c in text.chars() {
        let last = words.last_mut().expect("there is one from the start");
        if last.len() + c.len_utf8() > WORD {
            words.push(c.to_string());
        } else {
            last.push(c);
        }
    }
    let words: Vec<String> =
        words.iter().map(|word| format!("=?UTF-8?B?{}?=", STANDARD.encode(word))).collect();
    words.join("\n ")
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect())
}

/// A line of a commit or a person must not begin another one of the mail.
fn on_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Only names and subjects keep what is not ASCII.
fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' }).collect()
}

fn paragraph(out: &mut String, words: &str) {
    wrapped(out, "", words);
}

fn indented(out: &mut String, words: &str) {
    wrapped(out, "  ", words);
}

/// Wrapped at [`WIDTH`]. A word is never cut.
fn wrapped(out: &mut String, indent: &str, words: &str) {
    let mut line = String::new();
    // "7.4%", as the list writes it, is not torn apart.
    for word in words.replace(" %", "%").split_whitespace() {
        if !line.is_empty() && indent.len() + line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{indent}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        let _ = writeln!(out, "{indent}{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_beyond_ascii_is_encoded_for_a_header_and_a_line_end_begins_no_header() {
        assert_eq!(address("Anna Bö <a@b.example>"), "=?UTF-8?B?QW5uYSBCw7Y=?= <a@b.example>");
        assert_eq!(address("Eve <e@x.example>\nBcc: all@x.example"), "Eve <e@x.example> Bcc: all@x.example");
        let long = encoded(&"ö".repeat(60));
        assert!(long.lines().count() > 1 && long.lines().all(|line| line.len() <= 76), "{long}");
    }
}
