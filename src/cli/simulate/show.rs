//! What the searches came to, as text and as JSON.

use super::lab::Setting;
use super::{Findings, Line};
use crate::sim::{Change, Strategy, Summary, Tally, wilson};
use serde_json::{Value, json};
use std::fmt::Write;

/// As JSON: an object, or a list of them if several strategies were compared.
pub(super) fn json(findings: &Findings) -> String {
    let objects: Vec<Value> = findings.lines.iter().map(|line| object(line, findings)).collect();
    let shown = match <[Value; 1]>::try_from(objects) {
        Ok([only]) => only,
        Err(several) => Value::Array(several),
    };
    format!("{shown:#}\n")
}

fn object(line: &Line, findings: &Findings) -> Value {
    let tally = &line.tally;
    let hours = |minutes: Option<f64>| minutes.map(|minutes| minutes / 60.0);
    let calibration: Vec<Value> = tally
        .calibration()
        .into_iter()
        .map(|(low, high, n, right)| json!({ "stated": [low, high], "n": n, "right": right }))
        .collect();
    json!({
        "strategy": line.strategy.to_string(),
        "searches": tally.searches,
        "right": tally.right,
        "wrong": tally.wrong,
        "set": tally.set,
        "none": tally.none,
        "builds": summary(&counts(&tally.builds)),
        "boots": summary(&counts(&tally.boots)),
        "runs": summary(&counts(&tally.runs)),
        "hours": summary(&hours_of(tally)),
        "oracle_hours": hours(findings.oracle),
        "bound_hours": hours(findings.bound),
        "calibration": calibration,
    })
}

fn summary(values: &[f64]) -> Value {
    let of = Summary::of(values);
    json!({ "mean": of.mean, "median": of.median, "p90": of.p90 })
}

fn counts(values: &[u32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

fn hours_of(tally: &Tally) -> Vec<f64> {
    tally.minutes.iter().map(|minutes| minutes / 60.0).collect()
}

/// As text, within 80 columns.
pub(super) fn text(setting: &Setting, findings: &Findings) -> String {
    let mut out = heading(setting);
    for line in &findings.lines {
        out.push('\n');
        out.push_str(&block(line, findings));
    }
    out.push('\n');
    let several = findings.lines.len() > 1;
    for line in &findings.lines {
        let by = if several { format!("{}: ", line.strategy) } else { String::new() };
        out.push_str(&wrapped(&format!("{by}{}", sentence(setting, line))));
    }
    out
}

fn heading(setting: &Setting) -> String {
    let size = |units: f64| percent(units * setting.run_noise.0);
    let noise = &setting.noise;
    let kind = if setting.graph.is_line() { "in a line" } else { "in a graph" };
    let change = match setting.change {
        Change::None(_) => format!("no change ({} believed)", percent(setting.effect.0)),
        Change::One(_) => format!("a change of {}", percent(setting.effect.0)),
        Change::Two(first, second) => format!("changes of {} and {}", size(first), size(second)),
    };
    let mut blur = vec![format!("run {}", size(1.0)), format!("boot {}", size(noise.boot))];
    let more = [
        (noise.build, format!("build {}", size(noise.build))),
        (noise.outliers, format!("{} outliers", percent(noise.outliers))),
        (noise.drift_linear, format!("drift {} a run", size(noise.drift_linear))),
        (noise.drift_walk, format!("wandering {} a run", size(noise.drift_walk))),
        (noise.bimodal, format!("{} of boots in a second mode", percent(noise.bimodal))),
        (noise.unbuildable, format!("{} do not build", percent(noise.unbuildable))),
    ];
    blur.extend(more.into_iter().filter(|(amount, _)| *amount > 0.0).map(|(_, text)| text));
    let costs = &setting.costs;
    let budget = setting.budget.map_or(String::new(), |budget| format!("; budget {}", time(budget / 60.0)));
    let lines = [
        format!("lab: {} commits {kind}, {change}", setting.graph.candidates().len()),
        format!("noise: {}", blur.join(", ")),
        format!(
            "costs: build {}, boot {}, run {}{budget}",
            time(costs.build / 60.0),
            time(costs.boot / 60.0),
            time(costs.run / 60.0)
        ),
        format!("{} searches, seed {}", setting.searches, setting.seed),
    ];
    lines.iter().map(|line| wrapped(line)).collect()
}

fn block(line: &Line, findings: &Findings) -> String {
    let tally = &line.tally;
    let mut out = format!("{}\n", line.strategy);
    let answers = [("right", tally.right), ("wrong", tally.wrong), ("set", tally.set), ("none", tally.none)];
    for (name, count) in answers {
        let _ = writeln!(out, "  {name:<8}{count:>6}  {}", interval(count, tally.searches));
    }
    out.push_str("              mean    median  90 % within\n");
    let spent = [
        ("builds", counts(&tally.builds)),
        ("boots", counts(&tally.boots)),
        ("runs", counts(&tally.runs)),
        ("hours", hours_of(tally)),
    ];
    for (name, values) in spent {
        let of = Summary::of(&values);
        let digits = usize::from(name == "hours" || of.mean < 100.0);
        let _ =
            writeln!(out, "  {name:<8}{:>8.digits$}{:>10.digits$}{:>10.digits$}", of.mean, of.median, of.p90);
    }
    let mean = Summary::of(&hours_of(tally)).mean;
    if let Some(oracle) = findings.oracle.filter(|_| line.strategy != Strategy::Oracle) {
        let _ = writeln!(
            out,
            "  {:.2} times the hours of an oracle ({})",
            mean / (oracle / 60.0),
            time(oracle / 60.0)
        );
    }
    if let Some(bound) = findings.bound {
        let _ =
            writeln!(out, "  {:.2} times the lower bound ({})", mean / (bound / 60.0), time(bound / 60.0));
    }
    for (low, high, n, right) in tally.calibration() {
        let _ = writeln!(out, "  stated {low} to {high}: {right} of {n} right, {}", interval(right, n));
    }
    out
}

/// The answer to the user's question.
fn sentence(setting: &Setting, line: &Line) -> String {
    let tally = &line.tally;
    let hours = Summary::of(&hours_of(tally));
    let commits = setting.graph.candidates().len();
    let what = match setting.change {
        Change::None(_) => format!(
            "With this lab and no change among {commits} commits, \"no difference\" is said in {} of {} searches",
            tally.right, tally.searches
        ),
        Change::One(_) | Change::Two(..) => {
            let sets = match tally.set {
                0 => String::new(),
                set => format!(" ({set} of them as a set of suspects)"),
            };
            format!(
                "With this lab a {} change among {commits} commits is found in {} of {} searches{sets}",
                percent(setting.effect.0),
                tally.right + tally.set,
                tally.searches
            )
        }
    };
    format!("{what}; median {}, 90 % within {}; wrong: {}.", time(hours.median), time(hours.p90), tally.wrong)
}

fn interval(count: u32, of: u32) -> String {
    let share = wilson(count, of);
    let percent = |share: f64| share * 100.0;
    format!("{:.1} % ({:.1} to {:.1} %)", percent(share.share), percent(share.low), percent(share.high))
}

/// A relative size with the digits it has, at most four.
fn percent(size: f64) -> String {
    format!("{} %", (size * 1e6).round() / 1e4)
}

/// A time of machines: minutes below two hours.
fn time(hours: f64) -> String {
    if hours < 2.0 {
        format!("{} min", (hours * 600.0).round() / 10.0)
    } else if hours < 10.0 {
        format!("{hours:.1} h")
    } else {
        format!("{hours:.0} h")
    }
}

/// Breaks at blanks, within 79 columns; further lines are indented.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > 79 {
            out.push_str("\n  ");
            width = 2;
        } else if width > 0 {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += length;
    }
    out.push('\n');
    out
}
