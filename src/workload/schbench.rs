//! schbench, all generations, and its `--json`.
//!
//! The text is on standard error. 2016 to 2022 it is one table, "Latency percentiles (usec)"; since 2023 three: wakeup
//! latencies, request latencies, requests a second. They are printed again every interval; the last set that is whole
//! counts. A line of a table is "50.0000th: 7", "50.0th: 7" or "50.0th: 7 (149 samples)", one of them behind "* ": read
//! by label. Percentiles come from buckets on a log scale, some percent apart at the tail.
//!
//! Traps: "rps" is higher-is-better beside latencies that are not. The last "sched delay" line is printed when the
//! threads are gone and always says 0, so the one before the end counts. Without a final line ("average rps", "final
//! rps goal", "avg worker transfer") a run of 2023 or later was cut short.

use super::text::{json, json_number, leading, lines, lossy, number_of, percentile};
use super::{Declared, Invalid, Metrics, Output, excerpt};
use serde_json::Value;

pub(super) const METRICS: &[Declared] = &[
    Declared::lower("wakeup_latency_p{P}_us", "us", "since 2023"),
    Declared::lower("wakeup_latency_min_us", "us", "since 2023"),
    Declared::lower("wakeup_latency_max_us", "us", "since 2023"),
    Declared::lower("request_latency_p{P}_us", "us", "since 2023"),
    Declared::lower("request_latency_min_us", "us", "since 2023"),
    Declared::lower("request_latency_max_us", "us", "since 2023"),
    Declared::higher("rps_p{P}", "requests/s", "since 2023: percentile of the rates of each second"),
    Declared::higher("rps_min", "requests/s", "since 2023"),
    Declared::higher("rps_max", "requests/s", "since 2023"),
    Declared::higher("rps_average", "requests/s", "since 2023, text only: \"average rps\""),
    Declared::neither("rps_goal", "requests/s", "with -A: \"final rps goal\""),
    Declared::lower("sched_delay_message_us", "us", "text only: last before the end"),
    Declared::lower("sched_delay_worker_us", "us", "text only: last before the end"),
    Declared::higher("worker_transfer_ops_per_s", "operations/s", "pipe mode"),
    Declared::lower("latency_p{P}_us", "us", "until 2022: the one table"),
    Declared::lower("latency_min_us", "us", "until 2022"),
    Declared::lower("latency_max_us", "us", "until 2022"),
];

/// Titles of the tables, and how their metrics begin and end.
const TABLES: [(&str, &str, &str); 4] = [
    ("Wakeup Latencies percentiles (usec)", "wakeup_latency_", "_us"),
    ("Request Latencies percentiles (usec)", "request_latency_", "_us"),
    ("RPS percentiles (requests)", "rps_", ""),
    ("Latency percentiles (usec)", "latency_", "_us"),
];

/// A table that is being read; it counts once its last line, "min=, max=", is there.
struct Table {
    prefix: &'static str,
    suffix: &'static str,
    samples: Option<f64>,
    values: Vec<(String, f64)>,
}

pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let (stdout, stderr) = (lossy(&output.stdout), lines(&output.stderr));
    let mut metrics = Metrics::default();
    // A run command may send the one to the other (2>&1).
    let text = if has_table(&stderr) { stderr } else { lines(&output.stdout) };
    tables(&mut metrics, &text)?;
    match json(&stdout) {
        Some(Ok(Value::Object(object))) => from_json(&mut metrics, &object)?,
        Some(Err(error)) if stdout.trim_start().starts_with('{') => {
            return Err(Invalid::because(format!("schbench's JSON is broken or cut: {error}")));
        }
        Some(Ok(_) | Err(_)) | None => {}
    }
    if metrics.is_empty() {
        return Err(Invalid::because(
            "schbench printed no whole table of percentiles (its text is on standard error)",
        ));
    }
    Ok(metrics)
}

fn has_table(text: &str) -> bool {
    text.lines().any(|line| title(line).is_some())
}

fn title(line: &str) -> Option<(&'static str, &'static str, &str)> {
    TABLES.into_iter().find_map(|(title, prefix, suffix)| {
        line.trim_start().strip_prefix(title).map(|rest| (prefix, suffix, rest))
    })
}

fn tables(metrics: &mut Metrics, text: &str) -> Result<(), Invalid> {
    let mut table: Option<Table> = None;
    let (mut new, mut ended) = (false, false);
    for line in text.lines() {
        if let Some((prefix, suffix, rest)) = title(line) {
            new |= prefix != "latency_";
            table = Some(Table { prefix, suffix, samples: samples(rest), values: Vec::new() });
        } else if let Some(open) = table.as_mut()
            && row(open, line)?
        {
            close(metrics, open)?;
            table = None;
        }
        ended |= tail(metrics, line, ended)?;
    }
    if new && !ended {
        return Err(Invalid::because(
            "schbench was cut short: neither \"average rps\" nor \"final rps goal\" ends its output",
        ));
    }
    Ok(())
}

/// "(149 total samples)" of a title.
fn samples(rest: &str) -> Option<f64> {
    let open = rest.rsplit_once('(')?.1;
    leading(open).filter(|(_, unit)| unit.starts_with("total samples")).map(|(count, _)| count)
}

/// Reads a line of a table; whether it is the last.
fn row(table: &mut Table, line: &str) -> Result<bool, Invalid> {
    let line = line.trim_start().trim_start_matches('*').trim_start();
    if let Some((p, value)) = line.split_once("th:") {
        if let Some(p) = percentile(p) {
            let (value, _) = number_of(&format!("{p}th"), value)?;
            table.values.push((format!("p{p}"), value));
        }
        return Ok(false);
    }
    if !line.contains("min=") || !line.contains("max=") {
        return Ok(false);
    }
    for field in line.split(',') {
        if let Some((key @ ("min" | "max"), value)) = field.trim().split_once('=') {
            table.values.push((key.to_owned(), number_of(key, value)?.0));
        }
    }
    Ok(true)
}

fn close(metrics: &mut Metrics, table: &mut Table) -> Result<(), Invalid> {
    if table.samples == Some(0.0) {
        return Err(Invalid::because(format!("schbench took 0 samples for its {}table", table.prefix)));
    }
    for (name, value) in table.values.drain(..) {
        metrics.replace(format!("{}{name}{}", table.prefix, table.suffix), value)?;
    }
    Ok(())
}

/// A line outside of tables; whether it is one that only the end of a run prints.
fn tail(metrics: &mut Metrics, line: &str, ended: bool) -> Result<bool, Invalid> {
    let line = line.trim();
    for (label, name) in [
        ("average rps:", "rps_average"),
        ("final rps goal was", "rps_goal"),
        ("avg worker transfer:", "worker_transfer_ops_per_s"),
    ] {
        if let Some(rest) = line.strip_prefix(label) {
            let (value, unit) = number_of(label, rest)?;
            if name != "worker_transfer_ops_per_s" || unit.starts_with("ops/sec") {
                metrics.put(name, value)?;
            }
            return Ok(true);
        }
    }
    if let Some(rest) = line.strip_prefix("sched delay: message").filter(|_| !ended) {
        let broken = || Invalid::because(format!("schbench's sched delay cannot be read: {}", excerpt(line)));
        let (message, rest) = leading(rest).ok_or_else(broken)?;
        let (_, worker) = rest.split_once("worker").ok_or_else(broken)?;
        metrics.replace("sched_delay_message_us", message)?;
        metrics.replace("sched_delay_worker_us", leading(worker).ok_or_else(broken)?.0)?;
    }
    Ok(false)
}

/// "int": {"wakeup_latency_pct99.0": 33, ..., "rps_min": 328}.
fn from_json(metrics: &mut Metrics, object: &serde_json::Map<String, Value>) -> Result<(), Invalid> {
    let Some(Value::Object(figures)) = object.get("int") else {
        return Err(Invalid::because("schbench's JSON has no \"int\""));
    };
    for (key, value) in figures {
        let table =
            TABLES.iter().find_map(|(_, prefix, suffix)| Some((key.strip_prefix(prefix)?, prefix, suffix)));
        let Some((leaf, prefix, suffix)) = table else { continue };
        let leaf = match leaf.strip_prefix("pct").map(percentile) {
            Some(Some(p)) => format!("p{p}"),
            None if leaf == "min" || leaf == "max" => leaf.to_owned(),
            Some(None) | None => continue,
        };
        let value = json_number(value)
            .ok_or_else(|| Invalid::because(format!("schbench's {key:?} is not a number")))?;
        metrics.replace(format!("{prefix}{leaf}{suffix}"), value)?;
    }
    Ok(())
}
