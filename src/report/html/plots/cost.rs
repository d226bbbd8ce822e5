//! What the answer cost: how much was still open after how much machine time, beside halving.

use super::super::svg::{Area, Drawn, Ink, Place, Side, Told, picture, stroke, write};
use super::{Scale, TimeUnit, axis_along, axis_up, plain};
use crate::report::counted;
use crate::report::expense::HalvingFacts;
use crate::report::facts::Report;
use crate::report::path::Phase;
use crate::session::duration;
use maud::{Markup, html};

const WIDTH: i32 = 980;
const HEIGHT: i32 = 320;
const PLOT: (i32, i32) = (70, 950);
const TOP: i32 = 30;
const BOTTOM: i32 = HEIGHT - 52;

/// The figure; nothing before the endpoints are compared.
pub(in super::super) fn cost(report: &Report) -> Markup {
    let open: Vec<(f64, f64)> =
        report.path.iter().filter_map(|s| Some((s.spent_seconds, s.entropy_bits?))).collect();
    let Some(&(end, left)) = open.last() else { return html! {} };
    let halving = report.spent.halving;
    let whole = halving.map_or(end, |h| h.seconds.max(end)) * 1.02;
    let unit = TimeUnit::of(whole);
    let start = (report.range.max(1) as f64).log2();
    let most = open.iter().map(|(_, bits)| *bits).fold(start, f64::max).max(1.0);
    let time = Scale::new(0.0, whole / unit.seconds, PLOT);
    let bits = Scale::new(0.0, most * 1.05, (BOTTOM, TOP));
    let told = Told {
        id: "cost",
        title: "What was still open, over machine time".to_owned(),
        desc: description(report, end, left),
    };
    let at = |seconds: f64, open: f64| (time.pixel(seconds / unit.seconds), bits.pixel(open));
    let drawn = picture(&told, (WIDTH as u32, HEIGHT as u32), |area| {
        axis_along(area, &time, (TOP, BOTTOM), BOTTOM + 14, plain)?;
        axis_up(area, &bits, PLOT, plain)?;
        stroke(area, Ink::Axis, 1, vec![(PLOT.0, TOP), (PLOT.0, BOTTOM), (PLOT.1, BOTTOM)])?;
        write(area, "open [bits]", Ink::Text, Side::Left, false, (8, 10))?;
        let words = format!("machine time [{}]", unit.word);
        write(area, &words, Ink::Text, Side::Middle, false, ((PLOT.0 + PLOT.1) / 2, HEIGHT - 10))?;
        if let Some(halving) = halving {
            reference(area, &halving, start, at)?;
        }
        session(area, report, &open, start, at)
    });
    html! {
        figure {
            div class="plot" tabindex="0" role="group" aria-label="Cost over time, may be scrolled sideways" { (drawn) }
            figcaption {
                p class="keys" {
                    span class="key" { span class="rule good" aria-hidden="true" {} " this session" }
                    @if halving.is_some() { span class="key" { span class="rule dashed" aria-hidden="true" {} " halving" } }
                }
                p { "How far the answer was from one commit: n bits are as much doubt as 2" sup { "n" } " equally likely commits. "
                    @if let Some(halving) = halving { (halving_words(&halving)) " " }
                    "The numbers are in the " a href="#steps" { "table of steps" } "." }
            }
        }
    }
}

/// What the line of halving is.
pub(in super::super) fn halving_words(halving: &HalvingFacts) -> String {
    let fixed = format!("{} of {}", counted(halving.boots, "boot"), counted(halving.runs, "run"));
    format!(
        "Halving with {fixed} for each of {} kernels, as many as the noise found here asks for, would have taken {}. It confirms \
         nothing, follows no drift and knows no untestable commit: the least that it would have cost.",
        halving.kernels,
        duration(halving.seconds)
    )
}

fn description(report: &Report, end: f64, left: f64) -> String {
    let halving = report
        .spent
        .halving
        .map_or_else(String::new, |h| format!(" Halving would have taken {}.", duration(h.seconds)));
    format!(
        "From {:.1} bits down to {left:.2} bits after {}.{halving}",
        (report.range.max(1) as f64).log2(),
        duration(end)
    )
}

/// The session's line: what was open stays open until a step is over.
fn session(
    area: &Area,
    report: &Report,
    open: &[(f64, f64)],
    start: f64,
    at: impl Fn(f64, f64) -> Place,
) -> Drawn {
    let mut line = vec![at(0.0, start)];
    let mut before = start;
    for (seconds, bits) in open {
        line.push(at(*seconds, before));
        line.push(at(*seconds, *bits));
        before = *bits;
    }
    stroke(area, Ink::Good, 2, line)?;
    // Where the confirmation began: what comes after it costs time and opens nothing.
    let confirms = report.path.iter().find(|step| step.phase == Phase::Confirmation);
    if let Some(step) = confirms {
        let (x, _) = at(step.spent_seconds - step.seconds, start);
        stroke(area, Ink::Axis, 1, vec![(x, TOP), (x, BOTTOM)])?;
        write(area, "confirmation begins", Ink::Faint, Side::Middle, false, (x.min(PLOT.1 - 50), 10))?;
    }
    Ok(())
}

/// Halving: both endpoints first, then a bit for each kernel.
fn reference(area: &Area, halving: &HalvingFacts, start: f64, at: impl Fn(f64, f64) -> Place) -> Drawn {
    let each = halving.seconds / halving.kernels.max(1) as f64;
    let mut here = at(0.0, start);
    let mut open = start;
    for kernel in 1..=halving.kernels {
        let over = at(each * kernel as f64, open);
        dashes(area, here, over)?;
        open = if kernel > 2 { (open - 1.0).max(0.0) } else { open };
        here = at(each * kernel as f64, open);
        dashes(area, over, here)?;
    }
    Ok(())
}

/// A dashed line along one axis.
fn dashes(area: &Area, from: Place, to: Place) -> Drawn {
    let length = (to.0 - from.0).abs().max((to.1 - from.1).abs());
    let point = |at: i32| {
        let share = |a: i32, b: i32| a + (b - a) * at / length.max(1);
        (share(from.0, to.0), share(from.1, to.1))
    };
    (0..length)
        .step_by(10)
        .try_for_each(|at| stroke(area, Ink::Bad, 2, vec![point(at), point((at + 5).min(length))]))
}
