//! cyclictest of rt-tests: text, histogram (`-h`), `--json`.
//!
//! Text: a line a thread, "T: 0 (11815) P: 0 I:1000 C: 500 Min: 50 Act: 62 Avg: 71 Max: 2258"; without `-q` each is
//! printed many times over itself, the last counts. Histogram: a line a bucket with a column a thread, then "# Min
//! Latencies:" and others with a value a thread. A latency beyond the last bucket is counted as an overflow and in no
//! bucket: where a percentile falls there, it does not exist.
//!
//! With `-N` the same labels carry ns instead of us, and nothing in the text says so.

use super::text::{decimal, json, json_number, leading, lines, lossy, number_of, refuse};
use super::{Declared, Invalid, Metrics, Output, excerpt};
use serde_json::Value;
use std::collections::BTreeMap;

/// What all latencies are in.
const UNIT: &str = "us (ns with -N)";

pub(super) const METRICS: &[Declared] = &[
    Declared::lower("min", UNIT, "least of all threads"),
    Declared::lower("avg", UNIT, "mean of the threads' averages, each with the same weight"),
    Declared::lower("max", UNIT, "most of all threads"),
    Declared::lower("p{P}", UNIT, "p50, p90, p99, p99.9 over all threads, from a histogram that holds them"),
    Declared::lower("overflows", "samples", "histogram: latencies beyond its last bucket"),
    Declared::lower("t{N}_min", UNIT, "of one thread"),
    Declared::lower("t{N}_avg", UNIT, "of one thread"),
    Declared::lower("t{N}_max", UNIT, "of one thread"),
];

/// Percentiles taken from a histogram.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// A tracing limit (`-b`) ends a run early, with the worst latency just seen.
const BROKEN: [&str; 3] = ["# Break thread:", "# Break value:", "FATAL:"];

#[derive(Default)]
struct Thread {
    min: Option<f64>,
    avg: Option<f64>,
    max: Option<f64>,
    cycles: Option<f64>,
}

/// What was read of all threads.
#[derive(Default)]
struct Seen {
    threads: BTreeMap<usize, Thread>,
    /// Samples by latency.
    buckets: BTreeMap<u64, f64>,
    overflows: Option<f64>,
    /// Columns of a bucket's line, without the latency.
    columns: usize,
}

pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let (stdout, stderr) = (lossy(&output.stdout), lossy(&output.stderr));
    refuse("cyclictest ended early", &BROKEN, [&stdout, &stderr])?;
    let seen = match json(&stdout) {
        Some(Ok(Value::Object(object))) => from_json(&object)?,
        Some(Err(error)) => {
            return Err(Invalid::because(format!("cyclictest's JSON is broken or cut: {error}")));
        }
        Some(Ok(_)) | None => from_text(&lines(&output.stdout))?,
    };
    finish(seen)
}

fn from_text(text: &str) -> Result<Seen, Invalid> {
    let mut seen = Seen::default();
    for line in text.lines() {
        // Without -q the cursor goes back up by an escape sequence.
        let line = line.rsplit('\u{1b}').next().unwrap_or_default();
        let line = line.trim_start_matches(|c: char| {
            c == '[' || c == 'A' || c.is_ascii_digit() && line.starts_with('[')
        });
        if let Some(rest) = line.trim_start().strip_prefix("T:") {
            thread(&mut seen, rest)?;
        } else if let Some(comment) = line.strip_prefix("# ") {
            summary(&mut seen, comment)?;
        } else {
            bucket(&mut seen, line)?;
        }
    }
    Ok(seen)
}

/// " 0 (11815) P: 0 I:1000 C:    500 Min:     50 Act:   62 Avg:   71 Max:    2258"
fn thread(seen: &mut Seen, rest: &str) -> Result<(), Invalid> {
    let broken =
        || Invalid::because(format!("a thread of cyclictest cannot be read: {}", excerpt(rest.trim())));
    let (number, _) = leading(rest).ok_or_else(broken)?;
    let at = |label: &str| {
        let (_, value) = rest.split_once(label).ok_or_else(broken)?;
        leading(value).map(|(value, _)| value).ok_or_else(broken)
    };
    let (min, avg, max, cycles) = (at("Min:")?, at("Avg:")?, at("Max:")?, at("C:")?);
    let read = Thread { min: Some(min), avg: Some(avg), max: Some(max), cycles: Some(cycles) };
    seen.threads.insert(number as usize, read);
    Ok(())
}

fn summary(seen: &mut Seen, comment: &str) -> Result<(), Invalid> {
    let Some((label, values)) = comment.split_once(':') else { return Ok(()) };
    if !["Total", "Min Latencies", "Avg Latencies", "Max Latencies", "Histogram Overflows"].contains(&label) {
        return Ok(());
    }
    let mut sum = 0.0;
    for (thread, value) in values.split_whitespace().enumerate() {
        let (value, _) = number_of(label, value)?;
        sum += value;
        let thread = seen.threads.entry(thread).or_default();
        match label {
            "Min Latencies" => thread.min = Some(value),
            "Avg Latencies" => thread.avg = Some(value),
            "Max Latencies" => thread.max = Some(value),
            _ => *thread.cycles.get_or_insert(0.0) += value,
        }
    }
    if label == "Histogram Overflows" {
        seen.overflows = Some(sum);
    }
    Ok(())
}

/// "000043 000001 000000": a latency, and how often each thread had it.
fn bucket(seen: &mut Seen, line: &str) -> Result<(), Invalid> {
    let mut words = line.split_whitespace();
    let Some(at) = words.next().filter(|word| word.len() >= 6).and_then(|word| word.parse::<u64>().ok())
    else {
        return Ok(());
    };
    let mut count = 0.0;
    seen.columns = words.clone().count();
    for word in words {
        count += decimal(word).ok_or_else(|| {
            Invalid::because(format!("a bucket of cyclictest cannot be read: {}", excerpt(line.trim())))
        })?;
    }
    if count > 0.0 {
        *seen.buckets.entry(at).or_default() += count;
    }
    Ok(())
}

fn from_json(object: &serde_json::Map<String, Value>) -> Result<Seen, Invalid> {
    if let Some(code) = object.get("return_code").and_then(json_number).filter(|code| *code != 0.0) {
        return Err(Invalid::because(format!("cyclictest's return_code is {code}")));
    }
    let Some(Value::Object(threads)) = object.get("thread") else {
        return Err(Invalid::because("cyclictest's JSON has no \"thread\""));
    };
    let mut seen = Seen::default();
    let mut counted = 0.0;
    for (name, figures) in threads {
        let number: usize = name.parse().map_err(|_| {
            Invalid::because(format!("a thread of cyclictest's JSON is called {}", excerpt(name)))
        })?;
        let at = |key: &str| figures.get(key).and_then(json_number);
        let thread = Thread { min: at("min"), avg: at("avg"), max: at("max"), cycles: at("cycles") };
        counted += thread.cycles.unwrap_or(0.0);
        seen.threads.insert(number, thread);
        for (bucket, count) in figures.get("histogram").and_then(Value::as_object).into_iter().flatten() {
            if let (Ok(bucket), Some(count)) = (bucket.parse::<u64>(), json_number(count)) {
                *seen.buckets.entry(bucket).or_default() += count;
            }
        }
    }
    if !seen.buckets.is_empty() {
        // The JSON has no overflows; what ran and is in no bucket is one.
        seen.overflows = Some((counted - seen.buckets.values().sum::<f64>()).max(0.0));
    }
    Ok(seen)
}

fn finish(seen: Seen) -> Result<Metrics, Invalid> {
    let Seen { threads, buckets, overflows, columns } = seen;
    if threads.is_empty() {
        return Err(Invalid::because("cyclictest printed no thread (\"T: 0 ..\" or \"# Max Latencies:\")"));
    }
    let mut metrics = Metrics::default();
    let (mut min, mut sum, mut max) = (f64::INFINITY, 0.0, 0.0_f64);
    for (number, thread) in &threads {
        if thread.cycles == Some(0.0) {
            return Err(Invalid::because(format!("thread {number} of cyclictest ran 0 cycles")));
        }
        let (Some(low), Some(mean), Some(high)) = (thread.min, thread.avg, thread.max) else {
            return Err(Invalid::because(format!("thread {number} of cyclictest lacks its min, avg or max")));
        };
        min = min.min(low);
        sum += mean;
        max = max.max(high);
        for (what, value) in [("min", low), ("avg", mean), ("max", high)] {
            metrics.put(format!("t{number}_{what}"), value)?;
        }
    }
    metrics.put("min", min)?;
    metrics.put("avg", sum / threads.len() as f64)?;
    metrics.put("max", max)?;
    if let Some(overflows) = overflows {
        metrics.put("overflows", overflows)?;
        if columns == 0 || columns == threads.len() {
            percentiles(&mut metrics, &buckets, overflows)?;
        } else {
            metrics.note(format!(
                "no percentiles: the histogram has {columns} columns for {} threads",
                threads.len()
            ));
        }
    }
    Ok(metrics)
}

fn percentiles(metrics: &mut Metrics, buckets: &BTreeMap<u64, f64>, overflows: f64) -> Result<(), Invalid> {
    let total = buckets.values().sum::<f64>() + overflows;
    for (name, share) in PERCENTILES {
        let mut below = 0.0;
        // The least latency that this share of all samples does not exceed.
        let at = buckets.iter().find(|(_, count)| {
            below += **count;
            below >= share * total
        });
        match at {
            Some((latency, _)) => metrics.put(name, *latency as f64)?,
            None => metrics.note(format!(
                "no {name}: {overflows} of {total} samples lie beyond the histogram (raise -h)"
            )),
        }
    }
    Ok(())
}
