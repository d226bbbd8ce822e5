//! Candidates against effect, drawn with letters: one row a kernel, in the order of the history.

use super::facts::{CandidateFacts, Report};
use anstyle::{AnsiColor, Style};
use std::fmt::Write;

/// Columns of the drawing, right of the kernel and its verdict.
const COLUMNS: usize = 54;

/// Rows that are drawn; of more, those next to the change.
const ROWS: usize = 48;

/// Room beside the outermost kernels, as a part of their distance: intervals that reach further are cut.
const ROOM: f64 = 0.3;

/// What the reader's terminal shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// Colours; only a terminal has them.
    pub colour: bool,
    /// Letters beyond ASCII.
    pub unicode: bool,
}

/// What a row is drawn with.
struct Letters {
    bar: char,
    left: char,
    right: char,
    zero: char,
    good: char,
    bad: char,
    open: char,
}

const ASCII: Letters = Letters { bar: '-', left: '|', right: '|', zero: ':', good: 'o', bad: '*', open: '?' };

const UNICODE: Letters =
    Letters { bar: '─', left: '├', right: '┤', zero: '┊', good: '○', bad: '●', open: '◌' };

/// A kernel's effect in per cent of the metric itself: point, lower and upper end.
type Point = (f64, f64, f64);

fn point(report: &Report, candidate: &CandidateFacts) -> Option<Point> {
    if candidate.role == "good endpoint" {
        return (candidate.counted_boots() > 0).then_some((0.0, 0.0, 0.0));
    }
    let effect = candidate.effect?;
    let percent = |x: f64| report.metric.direction.worse_sign() * x * 100.0;
    let (a, b) = (percent(effect.low), percent(effect.high));
    Some((percent(effect.relative), a.min(b), a.max(b)))
}

/// The ends of the axis, in per cent.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn over(points: &[Point]) -> Self {
        let fold = |f: fn(f64, f64) -> f64| points.iter().map(|p| p.0).fold(0.0, f);
        let (low, high) = (fold(f64::min), fold(f64::max));
        // Kernels that are all alike would have no axis.
        let room = (ROOM * (high - low)).max(0.1);
        Self { low: low - room, high: high + room }
    }

    /// Its column, cut at the ends.
    fn column(&self, percent: f64) -> usize {
        let share = (percent - self.low) / (self.high - self.low);
        (share.clamp(0.0, 1.0) * (COLUMNS - 1) as f64).round() as usize
    }
}

/// The drawing; empty with fewer than two measured kernels.
pub(super) fn plot(report: &Report, look: Look) -> String {
    let all: Vec<(&CandidateFacts, Point)> =
        report.candidates.iter().filter_map(|c| Some((c, point(report, c)?))).collect();
    if all.len() < 2 {
        return String::new();
    }
    let shown = nearest(report, &all);
    let points: Vec<Point> = shown.iter().map(|(_, point)| *point).collect();
    let axis = Axis::over(&points);
    let letters = if look.unicode { &UNICODE } else { &ASCII };
    let mut out = head(report, &axis);
    for (candidate, point) in shown {
        let drawn = row(&axis, letters, candidate, *point);
        let style = if look.colour { colour(candidate) } else { Style::new() };
        let name = candidate.commit.short();
        let _ = writeln!(out, "{name:<12} {:<10} {style}{drawn}{style:#}", candidate.standing());
    }
    out
}

/// Those next to the step, where there are too many.
fn nearest<'a, 'r>(
    report: &Report,
    all: &'a [(&'r CandidateFacts, Point)],
) -> &'a [(&'r CandidateFacts, Point)] {
    let named = report.conclusion.commit.as_ref();
    let middle = all.iter().position(|(c, _)| Some(&c.commit) == named).unwrap_or(all.len() / 2);
    let from = middle.saturating_sub(ROWS / 2).min(all.len().saturating_sub(ROWS));
    &all[from..all.len().min(from + ROWS)]
}

/// The axis' ends, and where zero is.
fn head(report: &Report, axis: &Axis) -> String {
    let (low, high) = (format!("{:+.1} %", axis.low), format!("{:+.1} %", axis.high));
    let mut scale = vec![' '; COLUMNS];
    let mut put = |at: usize, text: &str| {
        let at = at.min(COLUMNS - text.len());
        let room = at.saturating_sub(1)..(at + text.len() + 1).min(COLUMNS);
        if scale[room].iter().all(|c| *c == ' ') {
            scale.splice(at..at + text.len(), text.chars());
        }
    };
    put(0, &low);
    put(COLUMNS, &high);
    put(axis.column(0.0), "0");
    let scale: String = scale.into_iter().collect();
    let name: String = report.metric.name.chars().take(16).collect();
    format!("{:<24}{}\n", format!("{name} vs good"), scale.trim_end())
}

fn row(axis: &Axis, letters: &Letters, candidate: &CandidateFacts, (at, low, high): Point) -> String {
    let mut cells = vec![' '; COLUMNS];
    cells[axis.column(0.0)] = letters.zero;
    let (from, to) = (axis.column(low), axis.column(high));
    if from < to {
        cells[from..=to].fill(letters.bar);
        cells[from] = if low < axis.low { '<' } else { letters.left };
        cells[to] = if high > axis.high { '>' } else { letters.right };
    }
    cells[axis.column(at)] = match candidate.standing() {
        "good" | "baseline" => letters.good,
        "bad" | "regressed" | "improved" => letters.bad,
        _ => letters.open,
    };
    let drawn: String = cells.into_iter().collect();
    drawn.trim_end().to_owned()
}

fn colour(candidate: &CandidateFacts) -> Style {
    match candidate.standing() {
        "bad" | "regressed" => AnsiColor::Red.on_default(),
        "good" | "baseline" => AnsiColor::Green.on_default(),
        "improved" => AnsiColor::Cyan.on_default(),
        _ => Style::new(),
    }
}
