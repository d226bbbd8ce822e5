//! The pictures: what was measured, the way of the search, what it cost, how the machine moved.
//!
//! Each has a text alternative that tells its facts, and a table beside it on the page.

mod cost;
mod drift;
mod samples;
mod way;

pub(super) use cost::{cost, halving_words};
pub(super) use drift::{Again, again, drift, moved};
pub(super) use samples::samples;
pub(super) use way::way;

use super::svg::{Area, Drawn, Ink, Shape, Side, stroke, write};
use super::words::clean;
use crate::model::Sense;
use crate::report::facts::{CandidateFacts, Report};
use maud::{Markup, html};

/// What a kernel turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Good,
    Bad,
    Better,
    Unsure,
    Broken,
}

impl Kind {
    /// Of a kernel; the endpoints are what they were given as.
    pub(super) fn of(report: &Report, candidate: &CandidateFacts) -> Self {
        match (candidate.verdict, candidate.role) {
            ("baseline", _) => Self::Good,
            ("regressed", _) => Self::Bad,
            ("improved", _) => Self::Better,
            ("untestable", _) => Self::Broken,
            ("undecided", _) | (_, "candidate" | "reverted") => Self::Unsure,
            (_, "good endpoint") => Self::Good,
            (_, _) => match report.conclusion.sense {
                Some(Sense::Improvement) => Self::Better,
                Some(Sense::Regression) => Self::Bad,
                None => Self::Unsure,
            },
        }
    }

    /// Its mark.
    pub(super) fn mark(self) -> (Shape, Ink) {
        match self {
            Self::Good => (Shape::Circle, Ink::Good),
            Self::Bad => (Shape::Triangle, Ink::Bad),
            Self::Better => (Shape::Diamond, Ink::Better),
            Self::Unsure => (Shape::Square, Ink::Unsure),
            Self::Broken => (Shape::Cross, Ink::Faint),
        }
    }

    /// The same mark as a letter of the page.
    pub(super) fn sign(self) -> Markup {
        let (class, letter) = match self {
            Self::Good => ("good", "\u{25cf}"),
            Self::Bad => ("bad", "\u{25b2}"),
            Self::Better => ("better", "\u{25c6}"),
            Self::Unsure => ("unsure", "\u{25a0}"),
            Self::Broken => ("broken", "\u{2715}"),
        };
        html! { span class={ "sign " (class) } aria-hidden="true" { (letter) } }
    }

    /// In words, for the legend.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Good => "like good",
            Self::Bad => "has the regression",
            Self::Better => "has the improvement",
            Self::Unsure => "undecided",
            Self::Broken => "untestable",
        }
    }
}

/// The kinds that a session has, each with its mark.
pub(super) fn legend(report: &Report) -> Markup {
    legend_of(report, |_| true)
}

/// Those of some of its kernels.
fn legend_of(report: &Report, shown: impl Fn(&CandidateFacts) -> bool) -> Markup {
    let all = [Kind::Good, Kind::Bad, Kind::Better, Kind::Unsure, Kind::Broken];
    let there = |kind: &Kind| report.candidates.iter().any(|c| shown(c) && Kind::of(report, c) == *kind);
    html! {
        @for kind in all.into_iter().filter(there) {
            span class="key" { (kind.sign()) " " (kind.words()) }
        }
    }
}

/// Seconds in the unit in which a whole session is best told.
#[derive(Debug, Clone, Copy)]
struct TimeUnit {
    seconds: f64,
    word: &'static str,
}

impl TimeUnit {
    fn of(whole: f64) -> Self {
        match whole {
            s if s >= 7200.0 => Self { seconds: 3600.0, word: "hours" },
            s if s >= 180.0 => Self { seconds: 60.0, word: "minutes" },
            _ => Self { seconds: 1.0, word: "seconds" },
        }
    }
}

/// A linear axis: values to pixels, with ticks at round values.
#[derive(Debug, Clone, Copy)]
struct Scale {
    from: f64,
    to: f64,
    at: (i32, i32),
}

impl Scale {
    fn new(from: f64, to: f64, at: (i32, i32)) -> Self {
        let to = if to > from { to } else { from + from.abs().max(1.0) * 0.01 };
        Self { from, to, at }
    }

    fn pixel(&self, value: f64) -> i32 {
        let share = (value - self.from) / (self.to - self.from);
        self.at.0 + (share * f64::from(self.at.1 - self.at.0)).round() as i32
    }

    /// Round values, some `wanted` of them, and the decimals that tell them apart.
    fn ticks(&self, wanted: f64) -> (Vec<f64>, usize) {
        let raw = (self.to - self.from) / wanted;
        let power = 10f64.powf(raw.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].into_iter().find(|s| s * power >= raw * 0.999).unwrap_or(10.0) * power;
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        ((first..=last).map(|n| n as f64 * step).collect(), decimals)
    }
}

/// Draws an axis below or above, with grid lines over `across`.
fn axis_along(
    area: &Area,
    scale: &Scale,
    across: (i32, i32),
    label: i32,
    words: impl Fn(f64, usize) -> String,
) -> Drawn {
    let (ticks, decimals) = scale.ticks(7.0);
    for value in ticks {
        let x = scale.pixel(value);
        stroke(area, Ink::Grid, 1, vec![(x, across.0), (x, across.1)])?;
        write(area, &words(value, decimals), Ink::Faint, Side::Middle, false, (x, label))?;
    }
    Ok(())
}

/// Draws an axis at the left, with grid lines over `across`.
fn axis_up(area: &Area, scale: &Scale, across: (i32, i32), words: impl Fn(f64, usize) -> String) -> Drawn {
    let (ticks, decimals) = scale.ticks(5.0);
    for value in ticks {
        let y = scale.pixel(value);
        stroke(area, Ink::Grid, 1, vec![(across.0, y), (across.1, y)])?;
        write(area, &words(value, decimals), Ink::Faint, Side::Right, false, (across.0 - 8, y))?;
    }
    Ok(())
}

/// A plain tick: the value with its decimals.
fn plain(value: f64, decimals: usize) -> String {
    format!("{:.decimals$}", value + 0.0)
}

/// A tick in percent, with its sign.
fn signed(value: f64, decimals: usize) -> String {
    let value = if value.abs() < 1e-9 { 0.0 } else { value };
    if value == 0.0 { "0 %".to_owned() } else { format!("{value:+.decimals$} %") }
}

/// A revision and its commit, cut to fit a plot.
fn endpoint(word: &str, rev: &str) -> String {
    format!("{word}: {}", clean(rev, 24))
}

/// Mean; 0 of nothing.
fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The level that effects are told against: the mean of good's counted boots.
pub(super) fn good_level(report: &Report) -> Option<f64> {
    let good = report.candidates.iter().find(|c| c.role == "good endpoint")?;
    let boots: Vec<f64> =
        good.boots.iter().map(|b| b.counted()).filter(|runs| !runs.is_empty()).map(mean).collect();
    Some(mean(&boots)).filter(|level| *level != 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        let (ticks, decimals) = Scale::new(0.0, 13.0, (0, 100)).ticks(7.0);
        assert_eq!((ticks, decimals), (vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0], 0));
        let (ticks, decimals) = Scale::new(0.93, 1.02, (0, 100)).ticks(5.0);
        assert_eq!((ticks.len(), decimals), (5, 2));
        let (ticks, _) = Scale::new(5.0, 5.0, (0, 100)).ticks(5.0);
        assert!(!ticks.is_empty(), "a level without spread has an axis too");
    }
}
