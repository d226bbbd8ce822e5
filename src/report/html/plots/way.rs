//! Where the search looked in the range and what it believed, over the machine time of the session.

use super::super::svg::{Area, Drawn, Ink, Side, Told, fill, mark, picture, stroke, write};
use super::super::words::{count, likelihood};
use super::{Kind, Scale, TimeUnit, axis_along, axis_up, endpoint, legend, plain};
use crate::model::CommitId;
use crate::report::facts::Report;
use crate::session::duration;
use maud::{Markup, html};
use std::collections::BTreeMap;

const WIDTH: i32 = 980;
const HEIGHT: i32 = 430;
const PLOT: (i32, i32) = (70, 962);
const TOP: i32 = 34;
const BOTTOM: i32 = HEIGHT - 52;

/// What is less likely has no shade.
const FAINTEST: f64 = 0.001;

/// Where every commit is drawn: good, which is no part of the range, at 0.
struct Places {
    of: BTreeMap<CommitId, f64>,
    last: f64,
}

impl Places {
    fn of(report: &Report) -> Self {
        let known = report.commits.iter().map(|c| (c.commit.clone(), c.position as f64));
        let mut of: BTreeMap<CommitId, f64> = known.collect();
        for candidate in &report.candidates {
            let place = candidate.position.map_or(0.0, |at| at as f64);
            of.entry(candidate.commit.clone()).or_insert(place);
        }
        let last = of.values().copied().fold(report.range as f64, f64::max).max(1.0);
        Self { of, last }
    }
}

/// The figure; nothing of a session that searches nothing.
pub(in super::super) fn way(report: &Report) -> Markup {
    let whole = report.path.last().map_or(0.0, |step| step.spent_seconds);
    if report.commits.is_empty() || whole <= 0.0 {
        return html! {};
    }
    let unit = TimeUnit::of(whole);
    let places = Places::of(report);
    let time = Scale::new(0.0, whole / unit.seconds, PLOT);
    // Half a commit of room at both ends.
    let range = Scale::new(-0.5, places.last + 0.5, (TOP, BOTTOM));
    let nodes = places.last + 1.0;
    let told = Told {
        id: "way",
        title: "Where the search looked, and what it believed".to_owned(),
        desc: description(report),
    };
    let drawn = picture(&told, (WIDTH as u32, HEIGHT as u32), |area| {
        let words = format!("machine time [{}]", unit.word);
        axis_along(area, &time, (TOP, BOTTOM), BOTTOM + 14, plain)?;
        axis_up(area, &range, PLOT, plain)?;
        write(area, &words, Ink::Text, Side::Middle, false, ((PLOT.0 + PLOT.1) / 2, HEIGHT - 10))?;
        believed(area, report, nodes, (&time, unit), &range)?;
        ends(area, report, &places, &range)?;
        looked(area, report, &places, (&time, unit), &range)
    });
    html! {
        figure {
            div class="plot" tabindex="0" role="group" aria-label="Way of the search, may be scrolled sideways" { (drawn) }
            figcaption {
                p class="keys" {
                    (legend(report))
                    span class="key" { span class="swatch heat" aria-hidden="true" {} " how likely the culprit is there: the stronger, the likelier" }
                }
                p { "From top to bottom the commits of the range by their place in the history. Each mark is a boot, or a kernel that \
                     could not be had, at the end of its time. The shade after a mark says how likely the commits there then were to be \
                     the culprit. The numbers are in the " a href="#steps" { "table of steps" } "." }
            }
        }
    }
}

fn description(report: &Report) -> String {
    let last = report.path.iter().rev().find(|step| step.credible.is_some());
    let looked = report.path.iter().map(|step| &step.commit).collect::<std::collections::BTreeSet<_>>().len();
    let head = format!(
        "{} of {} were looked at in {} over {}.",
        count(looked, "kernel"),
        count(report.range as usize, "commit"),
        count(report.path.len(), "step"),
        duration(report.path.last().map_or(0.0, |s| s.spent_seconds))
    );
    let Some(last) = last else {
        return format!("{head} Nothing is believed before the endpoints are compared.");
    };
    let leader = last.believed.first().map_or_else(String::new, |(commit, p)| {
        format!(" The likeliest is {} with {}.", commit.short(), likelihood(*p))
    });
    format!("{head} In the end {} held 95 %.{leader}", count(last.credible.unwrap_or(0), "commit"))
}

/// The posterior after each step, until the next is over.
fn believed(area: &Area, report: &Report, nodes: f64, time: (&Scale, TimeUnit), range: &Scale) -> Drawn {
    let (time, unit) = time;
    let mut steps = report.path.iter().peekable();
    while let Some(step) = steps.next() {
        let Some(next) = steps.peek() else { break };
        let (from, to) =
            (time.pixel(step.spent_seconds / unit.seconds), time.pixel(next.spent_seconds / unit.seconds));
        let high = nodes / step.bands.len().max(1) as f64;
        // A few percent must show, and near certainty stand out.
        let shade =
            |p: &f64| if *p < FAINTEST { 0 } else { ((0.06 + 0.94 * p.sqrt()) * 50.0).round() as u32 };
        let mut band = 0;
        for alike in step.bands.chunk_by(|a, b| shade(a) == shade(b)) {
            // A commit has half a place on each side.
            let edge = |band: usize| range.pixel(band as f64 * high - 0.5);
            let corners = [(from, edge(band)), (to.max(from + 1), edge(band + alike.len()))];
            band += alike.len();
            if shade(&alike[0]) > 0 {
                fill(area, Ink::Heat, f64::from(shade(&alike[0])) / 50.0, corners)?;
            }
        }
    }
    Ok(())
}

/// Lines of the endpoints and of the named commit.
fn ends(area: &Area, report: &Report, places: &Places, range: &Scale) -> Drawn {
    stroke(area, Ink::Axis, 1, vec![(PLOT.0, TOP), (PLOT.0, BOTTOM), (PLOT.1, BOTTOM)])?;
    write(area, "commit", Ink::Text, Side::Left, false, (8, 10))?;
    write(area, &endpoint("top: good", &report.good.rev), Ink::Faint, Side::Left, false, (PLOT.0, 10))?;
    write(area, &endpoint("bottom: bad", &report.bad.rev), Ink::Faint, Side::Right, false, (PLOT.1, 10))?;
    let named = report.conclusion.commit.as_ref().and_then(|commit| Some((commit, places.of.get(commit)?)));
    let Some((commit, place)) = named else { return Ok(()) };
    let y = range.pixel(*place);
    stroke(area, Ink::Bad, 1, vec![(PLOT.0, y), (PLOT.1, y)])?;
    // Beside the line, on the side with more room and clear of the shade.
    let beside = if y > (TOP + BOTTOM) / 2 { y - 14 } else { y + 16 };
    write(area, &format!("{} is named", commit.short()), Ink::Text, Side::Left, true, (PLOT.0 + 8, beside))
}

fn looked(area: &Area, report: &Report, places: &Places, time: (&Scale, TimeUnit), range: &Scale) -> Drawn {
    let (time, unit) = time;
    for step in &report.path {
        let Some(place) = places.of.get(&step.commit) else { continue };
        let kind = report
            .candidates
            .iter()
            .find(|c| c.commit == step.commit)
            .map_or(Kind::Unsure, |c| Kind::of(report, c));
        let kind = if step.lost.is_some() { Kind::Broken } else { kind };
        let at = (time.pixel(step.spent_seconds / unit.seconds), range.pixel(*place));
        mark(area, kind.mark(), 3, true, at)?;
    }
    Ok(())
}
