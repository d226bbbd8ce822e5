//! HammerDB TPROC-C: the result line, the time profile, the output of `jobs`.
//!
//! One line a run, behind the virtual user in CLI logs: "TEST RESULT : System achieved 12474 NOPM from 29179 MySQL TPM";
//! with `first_result` TPM, and before 4.0, "achieved 29179 MySQL TPM at 12474 NOPM". Read by the words, not the order.
//!
//! The time profile is a second file (hdbxtprofile.log; it is appended to, so let HammerDB give it a unique name) that
//! the run command prints as well. It has a block for each virtual user and then "SUMMARY OF"; only the summary is
//! read, "KEY: value" by key: 6.0 put P75 where P50 was. SD stands without a unit up to 5.x and in ms in 6.0: two
//! metrics. `jobs JOB result` and `jobs JOB timing` print the same as JSON.
//!
//! A negative NOPM is a transaction counter that wrapped. One user "FINISHED FAILED" is less load than asked for.

use super::text::{json_number, leading, lines, marked};
use super::{Declared, Invalid, Metrics, Output, excerpt};
use serde_json::Value;

pub(super) const METRICS: &[Declared] = &[
    Declared::higher("nopm", "new orders/min", "comparable across databases"),
    Declared::higher("tpm", "transactions/min", "comparable within one database only"),
    Declared::lower("{proc}_min_ms", "ms", "time profile: neword, payment, delivery, slev, ostat"),
    Declared::lower("{proc}_avg_ms", "ms", "time profile"),
    Declared::lower("{proc}_max_ms", "ms", "time profile"),
    Declared::lower("{proc}_p{P}_ms", "ms", "time profile; p25 and p75 since 6.0"),
    Declared::lower("{proc}_sd_ms", "ms", "time profile since 6.0: standard deviation"),
    Declared::lower("{proc}_sd", "as printed: without a unit", "time profile up to 5.x: standard deviation"),
    Declared::higher("{proc}_calls", "calls", "time profile"),
    Declared::neither("{proc}_total_ms", "ms", "time profile: time in all calls"),
    Declared::neither("{proc}_ratio_percent", "%", "time profile: share of the elapsed time"),
];

/// Stored procedures of TPROC-C. Anything else in a profile is not one.
const PROCS: [&str; 5] = ["NEWORD", "PAYMENT", "DELIVERY", "SLEV", "OSTAT"];

const INCOMPLETE: [&str; 2] = ["Timing Data Incomplete", "Timing Gather Timed Out"];

pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let text = lines(&output.stdout);
    if let Some(line) = marked(&text, &["FINISHED FAILED"]) {
        return Err(Invalid::because(format!("a virtual user failed: {}", excerpt(line))));
    }
    let mut metrics = Metrics::default();
    for line in text.lines() {
        if let Some((_, result)) = line.split_once("TEST RESULT : System achieved ") {
            achieved(&mut metrics, result)?;
        }
    }
    if let Some(line) = marked(&text, &INCOMPLETE) {
        metrics.note(format!("no time profile: HammerDB says {}", excerpt(line)));
    } else {
        profile(&mut metrics, &text)?;
        job_timing(&mut metrics, &text)?;
    }
    if metrics.is_empty() {
        return Err(Invalid::because(
            "HammerDB printed neither a \"TEST RESULT\" line nor the summary of a time profile",
        ));
    }
    Ok(metrics)
}

/// "12474 NOPM from 29179 MySQL TPM" or "29179 MySQL TPM at 12474 NOPM".
fn achieved(metrics: &mut Metrics, result: &str) -> Result<(), Invalid> {
    let mut number = None;
    let mut found = 0;
    for word in result.split_whitespace() {
        // In a job's JSON the line ends in `TPM"`.
        let name = match word.trim_matches(['"', ',']) {
            "NOPM" => "nopm",
            "TPM" => "tpm",
            word => {
                number = word.parse::<i64>().ok().or(number);
                continue;
            }
        };
        let value = number.take().ok_or_else(|| unreadable(result))?;
        if value <= 0 {
            let why = if value < 0 { "a counter of the database wrapped" } else { "nothing was done" };
            return Err(Invalid::because(format!("HammerDB's {name} is {value}: {why}")));
        }
        metrics.put(name, value as f64)?;
        found += 1;
    }
    if found == 2 { Ok(()) } else { Err(unreadable(result)) }
}

fn unreadable(result: &str) -> Invalid {
    Invalid::because(format!("HammerDB's result is not NOPM and TPM: {}", excerpt(result.trim())))
}

/// The last summary: the file is appended to, so what stands before is older.
fn profile(metrics: &mut Metrics, text: &str) -> Result<(), Invalid> {
    let Some(at) = text.rfind(">>>>> SUMMARY OF ") else { return Ok(()) };
    if text[at..].contains(">>>>> VIRTUAL USER ") {
        metrics.note("no time profile: its last report has no summary");
        return Ok(());
    }
    let users = |after: &str| leading(after).map(|(users, _)| users);
    let summed = users(text[at..].trim_start_matches(">>>>> SUMMARY OF "));
    let configured = text.lines().find_map(|line| {
        let before = line.strip_suffix(" Active Virtual Users configured")?;
        users(before.rsplit(':').next()?)
    });
    if configured.is_some() && configured != summed {
        metrics.note(
            "no time profile: its last summary is of another number of virtual users than this run had",
        );
        return Ok(());
    }
    let mut proc = None;
    for line in text[at..].lines() {
        if let Some((_, name)) = line.split_once(">>>>> PROC: ") {
            proc = PROCS.into_iter().find(|known| *known == name.trim());
        } else if line.starts_with("+-+-") {
            proc = None;
        } else if let Some(proc) = proc {
            for field in line.split('\t') {
                if let Some((key, value)) = field.split_once(": ") {
                    entry(metrics, proc, key.trim(), value.trim())?;
                }
            }
        }
    }
    Ok(())
}

fn entry(metrics: &mut Metrics, proc: &str, key: &str, value: &str) -> Result<(), Invalid> {
    let broken = || Invalid::because(format!("{proc} {key} of the time profile is {}", excerpt(value)));
    let (number, unit) = leading(value).ok_or_else(broken)?;
    let name = match (key, unit) {
        ("CALLS", "") => "calls".to_owned(),
        ("MIN" | "AVG" | "MAX" | "TOTAL", "ms") => format!("{}_ms", key.to_lowercase()),
        ("SD", "ms") => "sd_ms".to_owned(),
        ("SD", "") => "sd".to_owned(),
        ("RATIO", "%") => "ratio_percent".to_owned(),
        (_, "ms") if is_percentile(key) => format!("{}_ms", key.to_lowercase()),
        ("CALLS" | "MIN" | "AVG" | "MAX" | "TOTAL" | "SD" | "RATIO", _) => return Err(broken()),
        // A key of a layout to come.
        _ => return Ok(()),
    };
    metrics.put(format!("{}_{name}", proc.to_lowercase()), number)
}

fn is_percentile(key: &str) -> bool {
    key.strip_prefix(['P', 'p']).is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()))
}

/// What `jobs JOB timing` prints: objects somewhere in the text, one of which has the procedures.
fn job_timing(metrics: &mut Metrics, text: &str) -> Result<(), Invalid> {
    // It starts on a line of its own; the rest of what `jobs` prints is not always JSON, so each is tried by itself.
    for (at, _) in text.match_indices('{').filter(|(at, _)| text[..*at].ends_with('\n') || *at == 0) {
        let rest = &text[at..];
        if !rest[1..].trim_start().starts_with('"') {
            continue;
        }
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(Value::Object(procs))) = stream.next() else { continue };
        for (proc, figures) in procs {
            let (Some(proc), Value::Object(figures)) =
                (PROCS.into_iter().find(|known| *known == proc), figures)
            else {
                continue;
            };
            for (key, value) in figures {
                let known = match key.as_str() {
                    "calls" | "min_ms" | "avg_ms" | "max_ms" | "total_ms" | "sd" | "sd_ms" => key,
                    "ratio_pct" => "ratio_percent".to_owned(),
                    _ if key.strip_suffix("_ms").is_some_and(is_percentile) => key,
                    _ => continue,
                };
                let number = json_number(&value).ok_or_else(|| {
                    Invalid::because(format!("{proc} {known} of the job's timing is not a number"))
                })?;
                metrics.put(format!("{}_{known}", proc.to_lowercase()), number)?;
            }
        }
    }
    Ok(())
}
