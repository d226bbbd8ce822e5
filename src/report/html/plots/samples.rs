//! All that was measured: a row for each kernel in the order of the history, a line in it for each boot, a dot for each run,
//! below them the kernel's level with its interval.

use super::super::svg::{Area, Drawn, Ink, Place, Side, Told, fill, mark, picture, stroke, write};
use super::super::words::{LINE, change, clean, count, metric, percent};
use super::{Kind, Scale, axis_along, good_level, legend, mean, plain, signed};
use crate::report::facts::{BootFacts, CandidateFacts, Report};
use maud::{Markup, html};

const WIDTH: i32 = 980;
/// Where the data are.
const PLOT: (i32, i32) = (276, 806);
const TOP: i32 = 48;
const BOTTOM: i32 = 50;

/// Kernels that are drawn; a session that measured more is told by its table.
const ROWS: usize = 80;

/// A kernel's row.
struct Row<'a> {
    candidate: &'a CandidateFacts,
    kind: Kind,
    top: i32,
    height: i32,
    /// Pixels from one boot to the next, as a fraction of the whole.
    pitch: f64,
}

fn rows(report: &Report) -> Vec<Row<'_>> {
    let shown = report.candidates.iter().filter(|c| c.reason.is_some() || c.counted_boots() > 0);
    let mut top = TOP;
    let row = |candidate| {
        let boots = CandidateFacts::counted_boots(candidate);
        let pitch = (150.0 / boots.max(1) as f64).min(8.0);
        let height = if boots == 0 { 30 } else { (boots as f64 * pitch) as i32 + 30 };
        let row = Row { candidate, kind: Kind::of(report, candidate), top, height: height.max(44), pitch };
        top += row.height;
        row
    };
    shown.take(ROWS).map(row).collect()
}

/// The lowest and highest value that is drawn.
fn reach(report: &Report, level: f64) -> Option<(f64, f64)> {
    let sign = report.metric.direction.worse_sign();
    let runs = report.candidates.iter().flat_map(|c| &c.boots).flat_map(|b| b.counted()).copied();
    let ends = report.candidates.iter().filter_map(|c| c.effect).flat_map(|e| {
        // An interval of two boots may be wider than anything that was measured: it is cut at the frame.
        [e.low, e.high].map(|x| level * (1.0 + sign * x.clamp(-0.5, 0.5)))
    });
    let (low, high) = runs.clone().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
    let widest = (high - low) * 0.5;
    let ends = ends.map(|x| x.clamp(low - widest, high + widest));
    let (low, high) = ends.fold((low, high), |(a, b), x| (a.min(x), b.max(x)));
    let pad = (high - low).max(level.abs() * 0.002) * 0.03;
    (low <= high).then_some((low - pad, high + pad))
}

/// The figure; nothing before a run was measured.
pub(in super::super) fn samples(report: &Report) -> Markup {
    let frame = good_level(report).and_then(|level| Some((level, reach(report, level)?)));
    let Some((level, (low, high))) = frame else { return html! {} };
    let rows = rows(report);
    let bottom = rows.last().map_or(TOP, |r| r.top + r.height);
    let scale = Scale::new(low, high, PLOT);
    let told = Told {
        id: "samples",
        title: format!("{} of every kernel that was measured", metric(report)),
        desc: description(report, &rows),
    };
    let drawn = picture(&told, (WIDTH as u32, (bottom + BOTTOM) as u32), |area| {
        axes(area, report, &scale, level, bottom)?;
        rows.iter().try_for_each(|row| paint(area, report, row, &scale, level))
    });
    let left_out = report.candidates.len().saturating_sub(ROWS);
    html! {
        figure {
            div class="plot" tabindex="0" role="group" aria-label="Measured values, may be scrolled sideways" { (drawn) }
            figcaption {
                p class="keys" { (legend(report)) (hollow(report)) }
                p { "From the good endpoint down to the bad one. Each small mark is a run, each line of them a boot. The large mark below \
                    them is the kernel's level against good, its bar the interval at " (format!("{:.0} %", report.confidence * 100.0))
                    "; the machine's drift is taken out of the level and not out of the runs. The upright lines are the levels of the two endpoints."
                    @if left_out > 0 { " " (count(left_out, "more kernel")) " in the table." } }
            }
        }
    }
}

fn hollow(report: &Report) -> Markup {
    let confirmed = report.candidates.iter().flat_map(|c| &c.boots).any(|b| b.stage > 0);
    html! {
        @if confirmed {
            span class="key" { span class="sign" aria-hidden="true" { "\u{25cb}" } " hollow: boots of a confirmation" }
        }
    }
}

fn description(report: &Report, rows: &[Row]) -> String {
    let of = |row: &Row| {
        let what = row
            .candidate
            .effect
            .map_or_else(String::new, |e| format!(" {} against good,", change(report, e)));
        let boots = count(row.candidate.counted_boots(), "boot");
        format!("{}: {},{what} {boots}", row.candidate.commit.short(), row.kind.words())
    };
    clean(&rows.iter().map(of).collect::<Vec<_>>().join("; "), 20 * LINE)
}

fn axes(area: &Area, report: &Report, scale: &Scale, level: f64, bottom: i32) -> Drawn {
    axis_along(area, scale, (TOP, bottom), bottom + 14, plain)?;
    let relative =
        Scale { from: (scale.from / level - 1.0) * 100.0, to: (scale.to / level - 1.0) * 100.0, ..*scale };
    let (ticks, decimals) = relative.ticks(7.0);
    for value in ticks {
        let x = relative.pixel(value);
        stroke(area, Ink::Axis, 1, vec![(x, TOP - 4), (x, TOP)])?;
        write(area, &signed(value, decimals), Ink::Faint, Side::Middle, false, (x, TOP - 13))?;
    }
    stroke(area, Ink::Axis, 1, vec![(PLOT.0, TOP), (PLOT.1, TOP)])?;
    stroke(area, Ink::Axis, 1, vec![(PLOT.0, bottom), (PLOT.1, bottom)])?;
    let middle = (PLOT.0 + PLOT.1) / 2;
    let below = format!("{}, {}", metric(report), report.metric.direction);
    write(area, &below, Ink::Text, Side::Middle, false, (middle, bottom + 36))?;
    write(area, "change against good", Ink::Text, Side::Middle, false, (middle, 10))?;
    write(area, "effect against good", Ink::Text, Side::Left, false, (PLOT.1 + 12, TOP - 13))?;
    for candidate in &report.candidates {
        let at = match (candidate.role, candidate.effect) {
            ("good endpoint", _) => level,
            ("bad endpoint", Some(effect)) => {
                level * (1.0 + report.metric.direction.worse_sign() * effect.relative)
            }
            (_, _) => continue,
        };
        let (_, ink) = Kind::of(report, candidate).mark();
        let x = scale.pixel(at);
        stroke(area, ink, 1, vec![(x, TOP), (x, bottom)])?;
    }
    Ok(())
}

fn paint(area: &Area, report: &Report, row: &Row, scale: &Scale, level: f64) -> Drawn {
    let candidate = row.candidate;
    let named = report.conclusion.commit.as_ref() == Some(&candidate.commit);
    if named {
        fill(area, Ink::Heat, 0.14, [(0, row.top), (WIDTH, row.top + row.height)])?;
    }
    stroke(area, Ink::Grid, 1, vec![(0, row.top), (WIDTH, row.top)])?;
    label(area, row, named)?;
    let boots = candidate.boots.iter().filter(|b| !b.counted().is_empty());
    for (at, boot) in boots.enumerate() {
        let y = row.top + 9 + (at as f64 * row.pitch) as i32;
        paint_boot(area, row, boot, scale, y)?;
    }
    summary(area, report, row, scale, level)
}

fn label(area: &Area, row: &Row, named: bool) -> Drawn {
    let (first, second) = (row.top + 13, row.top + 30);
    mark(area, row.kind.mark(), 5, true, (10, first))?;
    let role = match (named, row.candidate.role) {
        (true, _) => "named",
        (false, "good endpoint") => "good",
        (false, "bad endpoint") => "bad",
        (false, "reverted") => "reverted",
        (false, _) => "",
    };
    write(area, row.candidate.commit.short(), Ink::Text, Side::Left, true, (24, first))?;
    write(area, role, Ink::Text, Side::Left, false, (140, first))?;
    write(area, &clean(&row.candidate.subject, 34), Ink::Faint, Side::Left, false, (24, second))
}

fn paint_boot(area: &Area, row: &Row, boot: &BootFacts, scale: &Scale, y: i32) -> Drawn {
    let runs: Vec<i32> = boot.counted().iter().map(|run| scale.pixel(*run)).collect();
    if let (Some(low), Some(high)) = (runs.iter().min(), runs.iter().max())
        && high > low
    {
        stroke(area, Ink::Axis, 1, vec![(*low, y), (*high, y)])?;
    }
    let size = if row.pitch < 5.0 { 1 } else { 2 };
    runs.into_iter().try_for_each(|x| mark(area, row.kind.mark(), size, boot.stage == 0, (x, y)))
}

/// The level with its interval, and both in words at the right.
fn summary(area: &Area, report: &Report, row: &Row, scale: &Scale, level: f64) -> Drawn {
    let (_, ink) = row.kind.mark();
    let y = row.top + row.height - 11;
    let right = |line: i32| (PLOT.1 + 12, row.top + 13 + line * 17);
    if let Some(reason) = &row.candidate.reason {
        let (kind, why) = reason.split_once(": ").unwrap_or((reason, ""));
        write(area, &clean(kind, 24), Ink::Text, Side::Left, true, right(0))?;
        return write(area, &clean(why, 23), Ink::Faint, Side::Left, false, right(1));
    }
    let sign = report.metric.direction.worse_sign();
    let at = |x: f64| scale.pixel(level * (1.0 + sign * x)).clamp(PLOT.0, PLOT.1);
    let Some(effect) = row.candidate.effect else {
        let is_good = row.candidate.role == "good endpoint";
        if is_good {
            write(area, "is the reference", Ink::Faint, Side::Left, false, right(0))?;
        }
        let x = scale.pixel(if is_good { level } else { whole_mean(row.candidate) });
        return mark(area, row.kind.mark(), 5, true, (x, y));
    };
    let (low, high) = (at(effect.low).min(at(effect.high)), at(effect.low).max(at(effect.high)));
    stroke(area, ink, 2, vec![(low, y), (high, y)])?;
    for end in [low, high] {
        let ticks: [Place; 2] = [(end, y - 4), (end, y + 4)];
        stroke(area, ink, 2, ticks.to_vec())?;
    }
    mark(area, row.kind.mark(), 5, true, (at(effect.relative), y))?;
    let (a, b) = (percent(sign * effect.low), percent(sign * effect.high));
    let (a, b) = if sign * effect.low <= sign * effect.high { (a, b) } else { (b, a) };
    write(area, &percent(sign * effect.relative), Ink::Text, Side::Left, true, right(0))?;
    write(area, &format!("{} to {b}", a.trim_end_matches(" %")), Ink::Faint, Side::Left, false, right(1))
}

fn whole_mean(candidate: &CandidateFacts) -> f64 {
    let boots: Vec<f64> =
        candidate.boots.iter().map(|b| b.counted()).filter(|runs| !runs.is_empty()).map(mean).collect();
    mean(&boots)
}

/// The shape of a mark is never the shape of another verdict.
#[cfg(test)]
mod tests {
    use super::super::super::svg::Shape;
    use super::*;

    #[test]
    fn verdicts_differ_by_shape_as_well_as_by_colour() {
        let all = [Kind::Good, Kind::Bad, Kind::Better, Kind::Unsure, Kind::Broken];
        let shapes: Vec<Shape> = all.iter().map(|kind| kind.mark().0).collect();
        for (at, shape) in shapes.iter().enumerate() {
            assert!(!shapes[..at].contains(shape), "{shape:?} twice");
        }
    }
}
