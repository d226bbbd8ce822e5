//! sysbench 1.0 and 1.1: OLTP, cpu, threads, mutex, memory.
//!
//! The result is the block at the end of standard output. Lines of `--report-interval` carry the same words, in
//! brackets ("[ 10s ] thds: 4 tps: ..."), and so do histograms; only lines of the block are read, by label. 1.0 prints
//! no events a second but for the cpu test: there they are the number of events over the total time. 1.1 prints
//! "events/s (eps)" and calls the time "time elapsed". The percentile is what `--percentile` set (95 by itself); with 0
//! the line reads "percentile stats: disabled". A forced shutdown prints a whole block too, of half a run.

use super::text::{behind, leading, lines, lossy, number_of, percentile, refuse};
use super::{Declared, Invalid, Metrics, Output, excerpt};

pub(super) const METRICS: &[Declared] = &[
    Declared::higher("tps", "transactions/s", "OLTP: transactions"),
    Declared::higher("qps", "queries/s", "OLTP: queries"),
    Declared::lower(
        "ignored_errors_per_s",
        "errors/s",
        "OLTP: deadlocks and other errors that were tried again",
    )
    .that_failed_of("tps"),
    Declared::lower("reconnects_per_s", "reconnects/s", "OLTP: reconnects"),
    Declared::higher(
        "events_per_s",
        "events/s",
        "as printed (1.1; cpu test of 1.0), else total number of events / total time",
    ),
    Declared::higher("events", "events", "total number of events; fixed with --events"),
    Declared::lower(
        "total_time_s",
        "s",
        "of a fixed number of events (mutex, --events); else what --time set",
    ),
    Declared::higher("operations_per_s", "operations/s", "memory: operations"),
    Declared::higher("mib_per_s", "MiB/s", "memory: transferred"),
    Declared::lower("latency_min_ms", "ms", "shortest event"),
    Declared::lower("latency_avg_ms", "ms", "mean of the events"),
    Declared::lower("latency_max_ms", "ms", "longest event"),
    Declared::lower("latency_p{P}_ms", "ms", "the percentile that --percentile set"),
    Declared::lower("fairness_events_stddev", "events", "spread over the threads"),
    Declared::lower("fairness_time_stddev_s", "s", "spread over the threads"),
];

const BROKEN: [&str; 3] = ["Number of unfinished transactions on forced shutdown", "FATAL:", "ALERT:"];

pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let (stdout, stderr) = (lines(&output.stdout), lossy(&output.stderr));
    refuse("sysbench says that the run is broken", &BROKEN, [&stdout, &stderr])?;
    let mut metrics = Metrics::default();
    let mut in_latency = false;
    for line in stdout.lines() {
        if line.trim_start().starts_with('[') {
            continue;
        }
        if !line.starts_with([' ', '\t']) && !line.trim().is_empty() {
            in_latency = line.trim() == "Latency (ms):";
        }
        if in_latency { latency(&mut metrics, line)? } else { figure(&mut metrics, line)? }
    }
    finish(metrics)
}

/// A line outside of the latency block.
fn figure(metrics: &mut Metrics, line: &str) -> Result<(), Invalid> {
    for (label, name) in [
        ("transactions:", "tps"),
        ("queries:", "qps"),
        ("ignored errors:", "ignored_errors_per_s"),
        ("reconnects:", "reconnects_per_s"),
        ("Total operations:", "operations_per_s"),
    ] {
        if let Some(rest) = behind(line, label) {
            let (_, rate) = number_of(label, rest)?;
            let (rate, unit) = number_of(label, rate.trim_start_matches('('))?;
            if !unit.starts_with("per sec") {
                return Err(Invalid::because(format!(
                    "no rate per second at {label:?}: {}",
                    excerpt(line.trim())
                )));
            }
            return metrics.put(name, rate);
        }
    }
    for (label, name) in [
        ("events per second:", "events_per_s"),
        ("events/s (eps):", "events_per_s"),
        ("total number of events:", "events"),
        ("total time:", "total_time_s"),
        ("time elapsed:", "total_time_s"),
    ] {
        if let Some(rest) = behind(line, label) {
            return metrics.put(name, number_of(label, rest)?.0);
        }
    }
    for (label, name) in [
        ("events (avg/stddev):", "fairness_events_stddev"),
        ("execution time (avg/stddev):", "fairness_time_stddev_s"),
    ] {
        if let Some((_, stddev)) = behind(line, label).and_then(|rest| rest.split_once('/')) {
            return metrics.put(name, number_of(label, stddev)?.0);
        }
    }
    // "9332.81 MiB transferred (4663.31 MiB/sec)"
    if let Some((_, rate)) = line.split_once("MiB transferred (") {
        let (rate, unit) = number_of("MiB transferred", rate)?;
        if unit.starts_with("MiB/sec") {
            return metrics.put("mib_per_s", rate);
        }
    }
    Ok(())
}

fn latency(metrics: &mut Metrics, line: &str) -> Result<(), Invalid> {
    let Some((label, value)) = line.trim().split_once(':') else { return Ok(()) };
    let name = match label {
        "min" | "avg" | "max" => format!("latency_{label}_ms"),
        "percentile stats" => {
            metrics.note("sysbench ran with --percentile=0, so it has no percentile");
            return Ok(());
        }
        _ => match leading(label).filter(|(_, rest)| rest.ends_with("percentile")) {
            Some((p, _)) => match percentile(&p.to_string()) {
                Some(p) => format!("latency_p{p}_ms"),
                None => return Ok(()),
            },
            None => return Ok(()),
        },
    };
    metrics.put(name, number_of(label, value)?.0)
}

fn finish(mut metrics: Metrics) -> Result<Metrics, Invalid> {
    let (Some(events), Some(time)) = (metrics.get("events"), metrics.get("total_time_s")) else {
        return Err(Invalid::because(
            "sysbench printed no final block (\"total time\" and \"total number of events\"): it did not end its run",
        ));
    };
    if events <= 0.0 {
        return Err(Invalid::because("sysbench did 0 events"));
    }
    if metrics.get("events_per_s").is_none() && time > 0.0 {
        metrics.put("events_per_s", events / time)?;
    }
    Ok(metrics)
}
