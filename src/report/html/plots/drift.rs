//! The machine over the session: the drift that was taken out, and the boots of the kernels that were measured again and
//! again.

use super::super::svg::{Area, Drawn, Ink, Side, Told, mark, picture, stroke, write};
use super::super::words::{count, percent};
use super::{Kind, Scale, axis_along, axis_up, mean, plain, signed};
use crate::report::facts::Report;
use crate::report::path::Phase;
use maud::{Markup, html};

const WIDTH: i32 = 980;
const HEIGHT: i32 = 320;
const PLOT: (i32, i32) = (84, 962);
const TOP: i32 = 30;
const BOTTOM: i32 = HEIGHT - 52;

/// Kernels with at least this many boots tell how the machine moved.
const OFTEN: usize = 3;

/// A boot of a kernel that was measured often.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Again {
    /// Its number.
    pub(in super::super) boot: u64,
    /// Of which candidate.
    pub(in super::super) candidate: usize,
    /// Counted runs of the session before its middle.
    pub(in super::super) run: f64,
    /// Mean of its runs.
    pub(in super::super) mean: f64,
    /// Against the mean of all boots of its kernel: a fraction, positive = more.
    pub(in super::super) off: f64,
}

/// All boots of kernels that were measured often, in the order of time.
pub(in super::super) fn again(report: &Report) -> Vec<Again> {
    let mut boots: Vec<(u64, usize, &[f64])> = Vec::new();
    for (at, candidate) in report.candidates.iter().enumerate() {
        boots.extend(candidate.boots.iter().map(|b| (b.boot.0, at, b.counted())));
    }
    boots.sort_by_key(|(boot, _, _)| *boot);
    let level = |at: usize| {
        let of = boots.iter().filter(|(_, kernel, runs)| *kernel == at && !runs.is_empty());
        let means: Vec<f64> = of.map(|(_, _, runs)| mean(runs)).collect();
        (means.len(), mean(&means))
    };
    let levels: Vec<(usize, f64)> = (0..report.candidates.len()).map(level).collect();
    let mut before = 0;
    let mut all = Vec::new();
    for (boot, candidate, runs) in &boots {
        let (often, level) = levels[*candidate];
        if often >= OFTEN && !runs.is_empty() && level != 0.0 {
            let run = f64::from(before) + runs.len() as f64 / 2.0;
            let mean = mean(runs);
            all.push(Again { boot: *boot, candidate: *candidate, run, mean, off: mean / level - 1.0 });
        }
        before += u32::try_from(runs.len()).unwrap_or(u32::MAX);
    }
    all
}

/// The change of the metric that the drift made at each counted run.
pub(in super::super) fn moved(report: &Report) -> Vec<f64> {
    let sign = report.metric.direction.worse_sign();
    report.drift.iter().flat_map(|d| &d.path).map(|worse| sign * worse).collect()
}

/// The figure; nothing before a kernel was measured often.
pub(in super::super) fn drift(report: &Report) -> Markup {
    let (again, moved) = (again(report), moved(report));
    if again.is_empty() {
        return html! {};
    }
    let last = again.iter().map(|b| b.run).fold(moved.len() as f64, f64::max);
    let values = again.iter().map(|b| b.off).chain(moved.iter().copied()).map(|x| x * 100.0);
    let (low, high) = values.fold((0.0f64, 0.0f64), |(a, b), x| (a.min(x), b.max(x)));
    let pad = (high - low).max(0.2) * 0.08;
    let time = Scale::new(0.0, last + 1.0, PLOT);
    let level = Scale::new(low - pad, high + pad, (BOTTOM, TOP));
    let told = Told {
        id: "drift",
        title: "How the machine moved".to_owned(),
        desc: description(report, &again, &moved),
    };
    let drawn = picture(&told, (WIDTH as u32, HEIGHT as u32), |area| {
        axis_along(area, &time, (TOP, BOTTOM), BOTTOM + 14, plain)?;
        axis_up(area, &level, PLOT, signed)?;
        frame(area, &level)?;
        let line =
            moved.iter().enumerate().map(|(at, x)| (time.pixel(at as f64 + 0.5), level.pixel(x * 100.0)));
        let line: Vec<_> = line.collect();
        if line.len() > 1 {
            stroke(area, Ink::Mark, 2, line)?;
        }
        for boot in &again {
            let kind = Kind::of(report, &report.candidates[boot.candidate]);
            mark(area, kind.mark(), 3, true, (time.pixel(boot.run), level.pixel(boot.off * 100.0)))?;
        }
        Ok(())
    });
    html! {
        figure {
            div class="plot" tabindex="0" role="group" aria-label="Machine over time, may be scrolled sideways" { (drawn) }
            figcaption {
                p class="keys" {
                    (super::legend_of(report, |c| c.counted_boots() >= OFTEN))
                    @if !moved.is_empty() { span class="key" { span class="rule mark" aria-hidden="true" {} " drift that is taken out" } }
                }
                p { "Boots of kernels with at least " (OFTEN) " of them, each against the mean of its own kernel, in the order they were taken. "
                    (told.desc) }
            }
        }
    }
}

fn frame(area: &Area, level: &Scale) -> Drawn {
    stroke(area, Ink::Axis, 1, vec![(PLOT.0, TOP), (PLOT.0, BOTTOM), (PLOT.1, BOTTOM)])?;
    let zero = level.pixel(0.0);
    stroke(area, Ink::Axis, 1, vec![(PLOT.0, zero), (PLOT.1, zero)])?;
    write(area, "metric against the kernel's own mean", Ink::Text, Side::Left, false, (8, 10))?;
    write(area, "counted run", Ink::Text, Side::Middle, false, ((PLOT.0 + PLOT.1) / 2, HEIGHT - 10))
}

fn description(report: &Report, again: &[Again], moved: &[f64]) -> String {
    let references = report.path.iter().filter(|step| step.phase == Phase::Reference).count();
    let taken = format!(
        "{} were compared, {} of them taken only to follow the machine.",
        count(again.len(), "boot"),
        if references == 0 { "none".to_owned() } else { references.to_string() }
    );
    let (low, high) = moved.iter().fold((0.0f64, 0.0f64), |(a, b), x| (a.min(*x), b.max(*x)));
    if moved.is_empty() {
        return format!("{taken} No drift was found, and none is taken out.");
    }
    format!("{taken} The machine's level moved between {} and {}.", percent(low), percent(high))
}
