//! Words and numbers as the page shows them: foreign text made harmless, figures with fixed decimals.

use crate::model::{CommitId, Effect};
use crate::report::facts::Report;
use maud::{Markup, html};

/// Characters of a subject, a host's answer or a reason that are shown; lines of a megabyte exist.
pub(super) const LINE: usize = 300;

/// Text of a commit, a host or a profile: one line, at most `most` characters, with what steers the direction or is not
/// printable spelled out. Markup in it is escaped where it is put on the page.
pub(super) fn clean(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (at, letter) in text.chars().enumerate() {
        if at >= most {
            shown.push_str("...");
            break;
        }
        match letter {
            '\n' | '\r' | '\t' => shown.push(' '),
            _ if is_hidden(letter) => shown.push_str(&format!("<U+{:04X}>", u32::from(letter))),
            _ => shown.push(letter),
        }
    }
    shown
}

/// Controls, marks and overrides of direction, and what has no width.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(letter, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A foreign text on the page: of its own direction.
pub(super) fn foreign(text: &str) -> Markup {
    html! { bdi { (clean(text, LINE)) } }
}

/// A commit's short name.
pub(super) fn name(commit: &CommitId) -> Markup {
    html! { code { (commit.short()) } }
}

/// Some five digits of a measured value: more would be noise.
pub(super) fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1e9 => return format!("{value:.3e}"),
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 1.0 => 3,
        _ => 5,
    };
    // No "-0".
    format!("{:.decimals$}", value + 0.0)
}

/// "+7.4 %"; never "-0.0 %".
pub(super) fn percent(fraction: f64) -> String {
    let shown = fraction * 100.0;
    format!("{:+.1} %", if shown.abs() < 0.05 { 0.0 } else { shown })
}

/// A probability: "37.2 %", "> 99.9 %", "< 0.1 %".
pub(super) fn likelihood(probability: f64) -> String {
    match probability {
        p if p > 0.999 => "> 99.9 %".to_owned(),
        p if p < 0.001 => "< 0.1 %".to_owned(),
        p => format!("{:.1} %", p * 100.0),
    }
}

/// "-7.4 % (-8.0 to -6.8 %)" of the metric itself.
pub(super) fn change(report: &Report, effect: Effect) -> String {
    let sign = report.metric.direction.worse_sign();
    let (a, b) = (sign * effect.low, sign * effect.high);
    let bare = |x: f64| percent(x).trim_end_matches(" %").to_owned();
    format!("{} ({} to {})", percent(sign * effect.relative), bare(a.min(b)), percent(a.max(b)))
}

/// "throughput [MB/s]".
pub(super) fn metric(report: &Report) -> String {
    let unit =
        if report.metric.unit.is_empty() { String::new() } else { format!(" [{}]", report.metric.unit) };
    clean(&format!("{}{unit}", report.metric.name), 60)
}

/// What a count is of: "1 boot", "2 boots".
pub(super) fn count(number: usize, what: &str) -> String {
    crate::report::counted(number as u64, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_one_line_without_hidden_letters() {
        assert_eq!(clean("a\nb\u{202e}c\u{0}", 10), "a b<U+202E>c<U+0000>");
        assert_eq!(clean(&"x".repeat(1 << 20), 5), "xxxxx...");
        assert_eq!(clean("sched/fair: naïve", 300), "sched/fair: naïve");
        assert_eq!(foreign("<script>").into_string(), "<bdi>&lt;script&gt;</bdi>");
    }

    #[test]
    fn numbers_have_fixed_decimals() {
        assert_eq!(figure(12345.6), "12346");
        assert_eq!(figure(1.23456), "1.235");
        assert_eq!(figure(-0.0), "0.00000");
        assert_eq!(percent(-0.0004), "+0.0 %");
        assert_eq!(likelihood(0.99999), "> 99.9 %");
    }
}
