//! fio `--output-format=json`.
//!
//! Each entry of "jobs" has an object a direction, with zeros where it was not used: those are left out. With one job the
//! metrics are "read.iops", with several "NAME.read.iops"; several jobs of one name (numjobs without group_reporting)
//! are ambiguous. "bw" is KiB/s and "bw_bytes" B/s; latencies are in ns. A job that failed has "error" other than 0.
//!
//! fio makes directories that are missing and exits 0: a typing error in a path measures another disk.

use super::text::{json_number, lossy, object, percentile};
use super::{Declared, Invalid, Metrics, Output};
use serde_json::Value;

pub(super) const METRICS: &[Declared] = &[
    Declared::higher(
        "{dir}.iops",
        "operations/s",
        "dir: read, write, trim; behind \"JOB.\" where there are several",
    ),
    Declared::higher("{dir}.bw_bytes_per_s", "B/s", "bandwidth"),
    Declared::higher("{dir}.bw_kib_per_s", "KiB/s", "the same, rounded by fio"),
    Declared::neither("{dir}.runtime_ms", "ms", "lower is better where the amount is fixed"),
    Declared::lower("{dir}.{kind}_min_ns", "ns", "kind: slat (submission), clat (completion), lat (both)"),
    Declared::lower("{dir}.{kind}_mean_ns", "ns", "mean"),
    Declared::lower("{dir}.{kind}_max_ns", "ns", "longest"),
    Declared::lower("{dir}.{kind}_stddev_ns", "ns", "standard deviation"),
    Declared::lower("{dir}.{kind}_p{P}_ns", "ns", "percentiles, of clat unless fio was asked for others"),
    Declared::lower("usr_cpu_percent", "%", "behind \"JOB.\" where there are several"),
    Declared::lower("sys_cpu_percent", "%", "likewise"),
    Declared::lower("context_switches", "switches", "likewise"),
    Declared::lower("{job}.usr_cpu_percent", "%", "of one of several jobs"),
    Declared::lower("{job}.sys_cpu_percent", "%", "of one of several jobs"),
    Declared::lower("{job}.context_switches", "switches", "of one of several jobs"),
];

pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let document = object("fio", &lossy(&output.stdout))?;
    let Some(Value::Array(jobs)) = document.get("jobs") else {
        return Err(Invalid::because("fio's JSON has no \"jobs\""));
    };
    let mut metrics = Metrics::default();
    let mut names: Vec<&str> = Vec::new();
    for job in jobs {
        let name = job.get("jobname").and_then(Value::as_str).unwrap_or_default();
        match job.get("error").and_then(json_number) {
            Some(0.0) => {}
            Some(code) => {
                return Err(Invalid::because(format!("fio's job {name:?} failed with error {code}")));
            }
            None => {
                return Err(Invalid::because(format!("fio's job {name:?} does not say whether it failed")));
            }
        }
        if names.contains(&name) {
            return Err(Invalid::because(format!(
                "several jobs are called {name:?}: give fio group_reporting=1, or each job its name"
            )));
        }
        names.push(name);
        let prefix = if jobs.len() == 1 { String::new() } else { format!("{name}.") };
        one(&mut metrics, &prefix, job)?;
    }
    if metrics.values().keys().any(|name| name.ends_with(".iops")) {
        Ok(metrics)
    } else {
        Err(Invalid::because("fio did 0 operations"))
    }
}

fn one(metrics: &mut Metrics, prefix: &str, job: &Value) -> Result<(), Invalid> {
    for dir in ["read", "write", "trim"] {
        let Some(figures) = job.get(dir) else { continue };
        let at = |key: &str| figures.get(key).and_then(json_number);
        if at("total_ios").unwrap_or(0.0) <= 0.0 {
            continue;
        }
        for (key, name) in [
            ("iops", "iops"),
            ("bw_bytes", "bw_bytes_per_s"),
            ("bw", "bw_kib_per_s"),
            ("runtime", "runtime_ms"),
        ] {
            if let Some(value) = at(key) {
                metrics.put(format!("{prefix}{dir}.{name}"), value)?;
            }
        }
        for kind in ["slat", "clat", "lat"] {
            if let Some(latency) = figures.get(format!("{kind}_ns")) {
                latencies(metrics, &format!("{prefix}{dir}.{kind}"), latency)?;
            }
        }
    }
    for (key, name) in
        [("usr_cpu", "usr_cpu_percent"), ("sys_cpu", "sys_cpu_percent"), ("ctx", "context_switches")]
    {
        if let Some(value) = job.get(key).and_then(json_number) {
            metrics.put(format!("{prefix}{name}"), value)?;
        }
    }
    Ok(())
}

fn latencies(metrics: &mut Metrics, name: &str, latency: &Value) -> Result<(), Invalid> {
    // Without samples all are 0.
    if latency.get("N").and_then(json_number).unwrap_or(0.0) <= 0.0 {
        return Ok(());
    }
    for key in ["min", "mean", "max", "stddev"] {
        if let Some(value) = latency.get(key).and_then(json_number) {
            metrics.put(format!("{name}_{key}_ns"), value)?;
        }
    }
    for (p, value) in latency.get("percentile").and_then(Value::as_object).into_iter().flatten() {
        if let (Some(p), Some(value)) = (percentile(p), json_number(value)) {
            metrics.put(format!("{name}_p{p}_ns"), value)?;
        }
    }
    Ok(())
}
