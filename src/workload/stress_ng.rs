//! stress-ng `--metrics` and `--metrics-brief` on standard error, and its YAML (`-Y`).
//!
//! Text: lines behind "stress-ng: metrc: [pid]" ("info:" in older ones). The table's columns are named by two header
//! lines; how many there are depends on version and option, so the second header names the columns of each row. Below
//! it "miscellaneous metrics", free text with a number, whose words decide what is better ("nanosecs per .." or "..
//! per sec"). Their names are the text as one word, as in the YAML; the values differ a little between the two (means
//! of another kind), so an output is read as the one or the other.
//!
//! Traps: the two rates (per second of real time, of CPU time) can move in opposite directions. Bogo operations are not
//! comparable across releases of stress-ng. A stressor that is not there or was skipped is no error in old ones.

use super::text::{decimal, leading, lines, slug};
use super::{Declared, Invalid, Metrics, Output, excerpt};
use serde::Deserialize;
use std::collections::BTreeMap;

pub(super) const METRICS: &[Declared] = &[
    Declared::higher("{stressor}.bogo_ops", "operations", "in the time given"),
    Declared::higher("{stressor}.bogo_ops_per_s", "operations/s", "of real time"),
    Declared::higher("{stressor}.bogo_ops_per_cpu_s", "operations/s", "of user and system time"),
    Declared::neither("{stressor}.real_time_s", "s", "run time; lower is better with --{stressor}-ops"),
    Declared::neither("{stressor}.user_time_s", "s", "user time of all instances"),
    Declared::neither("{stressor}.system_time_s", "s", "system time of all instances"),
    Declared::neither("{stressor}.cpu_percent", "%", "CPU used per instance (--metrics)"),
    Declared::lower("{stressor}.rss_max_kb", "KB", "resident set (--metrics)"),
    Declared::lower(
        "{stressor}.nanosecs-{what}",
        "ns",
        "miscellaneous metrics, e.g. nanosecs per context switch",
    ),
    Declared::lower("{stressor}.nanoseconds-{what}", "ns", "miscellaneous metrics"),
    Declared::lower("{stressor}.microsecs-{what}", "us", "miscellaneous metrics"),
    Declared::lower("{stressor}.millisecs-{what}", "ms", "miscellaneous metrics"),
    Declared::higher("{stressor}.{unit}-per-sec", "as its name says, per s", "miscellaneous metrics"),
    Declared::higher("{stressor}.{unit}-per-sec-{what}", "as its name says, per s", "miscellaneous metrics"),
    Declared::neither("{stressor}.{what}", "as its name says", "other miscellaneous metrics"),
];

/// Columns by the label in the second header line (in the first for the one that has no second).
const COLUMNS: [(&str, &str); 5] = [
    ("(secs)", ""),
    ("(real time)", "bogo_ops_per_s"),
    ("(usr+sys time)", "bogo_ops_per_cpu_s"),
    ("instance (%)", "cpu_percent"),
    ("(KB)", "rss_max_kb"),
];

/// The three columns of "(secs)", in the order of the first header line.
const TIMES: [(&str, &str); 3] =
    [("real time", "real_time_s"), ("usr time", "user_time_s"), ("sys time", "system_time_s")];

const BROKEN: [&str; 8] = [
    "No stress workers invoked",
    "not implemented",
    "will be skipped",
    "corrupted bogo-ops counter",
    "unsuccessful run completed",
    "aborted early",
    "counters are zero, data may be incorrect",
    "could not be run",
];

pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let (stdout, stderr) = (lines(&output.stdout), lines(&output.stderr));
    broken(&stderr)?;
    broken(&stdout)?;
    let mut metrics = Metrics::default();
    // Through a forced terminal lines end in CR LF.
    let stdout = stdout.replace("\r\n", "\n");
    if let Some(document) = yaml_document(&stdout)? {
        from_yaml(&mut metrics, document)?;
    } else {
        // A run command may send the one to the other (2>&1).
        let text = if stderr.contains("bogo ops/s") { stderr.as_ref() } else { stdout.as_str() };
        from_text(&mut metrics, text)?;
    }
    if metrics.is_empty() {
        return Err(Invalid::because(
            "stress-ng printed no metrics (give it --metrics-brief; they are on standard error)",
        ));
    }
    for (name, value) in metrics.values() {
        if name.ends_with(".bogo_ops") && *value <= 0.0 {
            return Err(Invalid::because(format!("{name} is {value}: the stressor did nothing")));
        }
    }
    Ok(metrics)
}

/// "stress-ng: metrc: [12226] text" without what is before the text; and the kind of line.
fn message(line: &str) -> Option<(&str, &str)> {
    let (kind, rest) = line.trim().split_once("stress-ng: ")?.1.split_once(':')?;
    let text = rest.trim_start();
    let text = match text.strip_prefix('[') {
        Some(pid) => pid.split_once(']')?.1,
        None => text,
    };
    Some((kind, text.strip_prefix(' ').unwrap_or(text)))
}

fn broken(text: &str) -> Result<(), Invalid> {
    for line in text.lines() {
        let Some((kind, message)) = message(line) else { continue };
        let counted = ["failed:", "skipped:", "metrics untrustworthy:"]
            .iter()
            .filter_map(|label| leading(message.trim_start().strip_prefix(label)?))
            .any(|(count, _)| count > 0.0);
        if counted || kind == "fail" || BROKEN.iter().any(|mark| message.contains(mark)) {
            return Err(Invalid::because(format!(
                "stress-ng says that the run is broken: {}",
                excerpt(message.trim())
            )));
        }
    }
    Ok(())
}

fn from_text(metrics: &mut Metrics, text: &str) -> Result<(), Invalid> {
    let mut times: Vec<&'static str> = Vec::new();
    let mut columns: Vec<&'static str> = Vec::new();
    let mut miscellaneous = false;
    for line in text.lines() {
        let Some((_, line)) = message(line).filter(|(kind, _)| ["info", "metrc"].contains(kind)) else {
            continue;
        };
        if line.trim_start().starts_with("stressor ") && line.contains("bogo ops") {
            times = in_order(line, &TIMES);
        } else if line.contains("(real time)") && line.contains("(usr+sys time)") {
            columns = header(line, &times)?;
        } else if line.trim_start().starts_with("miscellaneous metrics") {
            miscellaneous = true;
        } else if miscellaneous {
            other(metrics, line)?;
        } else if !columns.is_empty() {
            row(metrics, &columns, line)?;
        }
    }
    Ok(())
}

/// Names of the labels in `line`, from left to right.
fn in_order(line: &str, labels: &[(&str, &'static str)]) -> Vec<&'static str> {
    let mut found: Vec<(usize, &'static str)> = Vec::new();
    for (label, name) in labels {
        found.extend(line.match_indices(label).map(|(at, _)| (at, *name)));
    }
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name).collect()
}

/// The columns after "stressor" and "bogo ops".
fn header(line: &str, times: &[&'static str]) -> Result<Vec<&'static str>, Invalid> {
    let mut times = times.iter();
    let named = in_order(line, &COLUMNS)
        .into_iter()
        .map(|name| if name.is_empty() { times.next().copied().unwrap_or_default() } else { name });
    let names: Vec<&'static str> = named.collect();
    if names.contains(&"") {
        return Err(Invalid::because(format!(
            "the header of stress-ng's table is not known: {}",
            excerpt(line.trim())
        )));
    }
    Ok(names)
}

fn row(metrics: &mut Metrics, columns: &[&'static str], line: &str) -> Result<(), Invalid> {
    let mut words = line.split_whitespace();
    let (Some(stressor), Some(count)) = (words.next(), words.next().and_then(decimal)) else { return Ok(()) };
    let values: Option<Vec<f64>> = words.map(decimal).collect();
    let Some(values) = values.filter(|values| values.len() == columns.len()) else {
        return Err(Invalid::because(format!(
            "a row of stress-ng's table does not fit its header: {}",
            excerpt(line)
        )));
    };
    metrics.put(format!("{stressor}.bogo_ops"), count)?;
    for (column, value) in columns.iter().zip(values) {
        metrics.put(format!("{stressor}.{column}"), value)?;
    }
    Ok(())
}

/// "switch   3831.12 nanosecs per context switch (pipe method) (geometic mean of 2 instances)"
fn other(metrics: &mut Metrics, line: &str) -> Result<(), Invalid> {
    let Some((stressor, rest)) = line.trim().split_once(char::is_whitespace) else { return Ok(()) };
    let Some((value, words)) = leading(rest) else { return Ok(()) };
    let words = match words.rsplit_once('(') {
        Some((words, mean)) if mean.contains("mean of") => words,
        Some(_) | None => words,
    };
    let what = slug(words);
    if what.is_empty() { Ok(()) } else { metrics.put(format!("{stressor}.{what}"), value) }
}

#[derive(Deserialize)]
struct Document {
    metrics: Vec<BTreeMap<String, Scalar>>,
}

/// A value of the YAML: what is no number is a name.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Number(f64),
    Text(String),
    Other(serde::de::IgnoredAny),
}

/// The part of the text that is the YAML, from "---" to "...". Without its end it was cut; the text on the other stream
/// is no stand-in for it, since its values are rounded.
fn yaml_document(text: &str) -> Result<Option<&str>, Invalid> {
    let start = if text.starts_with("---\n") { Some(0) } else { text.find("\n---\n").map(|at| at + 1) };
    let Some(start) = start else { return Ok(None) };
    let document = &text[start..];
    match document.find("\n...\n") {
        Some(end) => Ok(Some(&document[..end + 1])),
        None => Err(Invalid::because("stress-ng's YAML was cut: it has no end (\"...\")")),
    }
}

fn from_yaml(metrics: &mut Metrics, document: &str) -> Result<(), Invalid> {
    let document: Document = serde_saphyr::from_str(document).map_err(|error| {
        let error = error.to_string();
        let line = error.lines().next().unwrap_or_default();
        Invalid::because(format!("stress-ng's YAML is broken or cut: {}", excerpt(line)))
    })?;
    for entry in document.metrics {
        let Some(Scalar::Text(stressor)) = entry.get("stressor") else {
            return Err(Invalid::because("an entry of stress-ng's YAML names no stressor"));
        };
        let stressor = stressor.clone();
        for (key, value) in entry {
            let name = match key.as_str() {
                "stressor" => continue,
                "bogo-ops" => "bogo_ops",
                "bogo-ops-per-second-usr-sys-time" => "bogo_ops_per_cpu_s",
                "bogo-ops-per-second-real-time" => "bogo_ops_per_s",
                "wall-clock-time" => "real_time_s",
                "user-time" => "user_time_s",
                "system-time" => "system_time_s",
                "cpu-usage-per-instance" => "cpu_percent",
                "max-rss" => "rss_max_kb",
                other => other,
            };
            match value {
                Scalar::Number(value) => metrics.put(format!("{stressor}.{name}"), value)?,
                Scalar::Text(_) | Scalar::Other(_) => metrics.note(format!("{stressor}.{name} is no number")),
            }
        }
    }
    Ok(())
}
