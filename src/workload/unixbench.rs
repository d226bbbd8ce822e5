//! UnixBench (byte-unixbench's Run).
//!
//! On a machine of several CPUs the whole report is printed twice: for 1 parallel copy, then for N. Each metric carries
//! the number of copies, from "running N parallel copies of tests". A test has a line "NAME value lps (10.0 s, 7
//! samples)" and a row "NAME baseline result index". When not all tests ran the score says "(Partial Only)": another
//! number under nearly the same label. "---" stands where a test has no index.

use super::text::{decimal, leading, lines, slug};
use super::{Declared, Invalid, Metrics, Output, excerpt};

pub(super) const METRICS: &[Declared] = &[
    Declared::higher("copies{N}.index_score", "index", "System Benchmarks Index Score of all tests"),
    Declared::higher(
        "copies{N}.partial_index_score",
        "index",
        "the same of some tests; not comparable with all",
    ),
    Declared::higher("copies{N}.{test}.index", "index", "one test against its baseline"),
    Declared::higher("copies{N}.{test}", "lps, KBps, lpm or MWIPS, as the test prints", "one test"),
];

/// Units of a test's line. MWIPS has one decimal, the others too.
const UNITS: [&str; 4] = ["lps", "KBps", "lpm", "MWIPS"];

pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let text = lines(&output.stdout);
    let mut metrics = Metrics::default();
    let mut copies: Option<u32> = None;
    let mut in_table = false;
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("running ")
            && rest.contains("parallel cop")
        {
            copies = leading(rest).map(|(number, _)| number as u32);
            in_table = false;
            continue;
        }
        let Some(copies) = copies else { continue };
        if line.starts_with("System Benchmarks Index Score") {
            score(&mut metrics, copies, line)?;
        } else if line.contains("BASELINE") && line.contains("RESULT") && line.contains("INDEX") {
            in_table = true;
        } else if in_table {
            in_table = row(&mut metrics, copies, line)?;
        } else {
            test(&mut metrics, copies, line)?;
        }
    }
    if metrics.is_empty() {
        return Err(Invalid::because(
            "UnixBench printed no report (\"running N parallel copies of tests\" and results)",
        ));
    }
    Ok(metrics)
}

/// "System Benchmarks Index Score (Partial Only)       1234.5"
fn score(metrics: &mut Metrics, copies: u32, line: &str) -> Result<(), Invalid> {
    let value = line.split_whitespace().last().and_then(decimal).ok_or_else(|| {
        Invalid::because(format!("UnixBench's score is not a number: {}", excerpt(line.trim())))
    })?;
    let name = if line.contains("(Partial Only)") { "partial_index_score" } else { "index_score" };
    metrics.put(format!("copies{copies}.{name}"), value)
}

/// "Dhrystone 2 using register variables    116700.0   34567890.1   2962.1"; whether the table goes on.
fn row(metrics: &mut Metrics, copies: u32, line: &str) -> Result<bool, Invalid> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name @ .., _baseline, _result, index] = words.as_slice() else { return Ok(false) };
    if name.is_empty() {
        return Ok(!line.trim().starts_with('='));
    }
    if let Some(index) = decimal(index) {
        metrics.put(format!("copies{copies}.{}.index", slug(&name.join(" "))), index)?;
    }
    Ok(true)
}

/// "Dhrystone 2 using register variables       34567890.1 lps   (10.0 s, 7 samples)"
fn test(metrics: &mut Metrics, copies: u32, line: &str) -> Result<(), Invalid> {
    let Some((figures, samples)) = line.rsplit_once('(') else { return Ok(()) };
    if !samples.contains(" sample") {
        return Ok(());
    }
    let words: Vec<&str> = figures.split_whitespace().collect();
    let [name @ .., value, unit] = words.as_slice() else { return Ok(()) };
    let name = slug(&name.join(" "));
    if name.is_empty() || !UNITS.contains(unit) {
        return Ok(());
    }
    let value = decimal(value)
        .ok_or_else(|| Invalid::because(format!("UnixBench's {name} is not a number: {}", excerpt(value))))?;
    if value <= 0.0 {
        return Err(Invalid::because(format!("UnixBench's {name} is {value}: it did nothing")));
    }
    metrics.put(format!("copies{copies}.{name}"), value)
}
