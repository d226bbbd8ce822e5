//! pgbench 12 to 17.
//!
//! To 13 there are two lines "tps = ..", "including connections establishing" and "excluding ..". Since 14 there is one,
//! "without initial connection time", which is the latter; with `-C` it is "including reconnection times", which is
//! neither. Lines of single scripts (" - tps = 12.3") and of progress ("progress: 1.0 s, 1359.9 tps, ..") hold the same
//! words and do not start with them. A client that aborted leaves fewer transactions than asked for.

use super::text::{leading, lines, lossy, number_of, refuse};
use super::{Declared, Invalid, Metrics, Output, excerpt};

pub(super) const METRICS: &[Declared] = &[
    Declared::higher(
        "tps",
        "transactions/s",
        "without the time to connect (any version; not with -C since 14)",
    ),
    Declared::higher("tps_including_connecting", "transactions/s", "up to 13 only"),
    Declared::higher("tps_including_reconnecting", "transactions/s", "since 14, with -C only"),
    Declared::lower("latency_avg_ms", "ms", "mean of the transactions"),
    Declared::lower("latency_avg_us", "us", "the same where an older version prints us"),
    Declared::lower("latency_stddev_ms", "ms", "with -P, -L or --rate"),
    Declared::lower("initial_connection_ms", "ms", "since 14, without -C"),
    Declared::lower("average_connection_ms", "ms", "since 14, with -C"),
    Declared::higher("transactions", "transactions", "processed; fixed with -t"),
    Declared::lower("failed_transactions", "transactions", "since 15").that_failed_of("transactions"),
    Declared::lower("late_transactions", "transactions", "above the limit of -L"),
    Declared::lower("retries", "retries", "since 15, with --max-tries"),
];

const BROKEN: [&str; 5] = [
    "Run was aborted",
    "pgbench: fatal:",
    "pgbench: error:",
    "results are incomplete",
    "connection to server",
];

pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let (stdout, stderr) = (lines(&output.stdout), lossy(&output.stderr));
    refuse("pgbench says that the run is broken", &BROKEN, [&stdout, &stderr])?;
    let mut metrics = Metrics::default();
    for line in stdout.lines() {
        if let Some(count) = line.strip_prefix("number of transactions actually processed:") {
            processed(&mut metrics, count)?;
        } else if let Some(rate) = line.strip_prefix("tps =") {
            tps(&mut metrics, rate)?;
        } else {
            figure(&mut metrics, line)?;
        }
    }
    let rates = ["tps", "tps_including_connecting", "tps_including_reconnecting"];
    if rates.iter().all(|name| metrics.get(name).is_none()) {
        return Err(Invalid::because("pgbench printed no \"tps =\": it did not end its run"));
    }
    Ok(metrics)
}

/// "6828" or "800/800".
fn processed(metrics: &mut Metrics, count: &str) -> Result<(), Invalid> {
    let (done, rest) = number_of("number of transactions actually processed", count)?;
    let wanted = rest.strip_prefix('/').and_then(leading).map(|(wanted, _)| wanted);
    if done <= 0.0 {
        return Err(Invalid::because("pgbench processed 0 transactions"));
    }
    if wanted.is_some_and(|wanted| done < wanted) {
        return Err(Invalid::because(format!(
            "pgbench processed {} transactions: some clients aborted",
            count.trim()
        )));
    }
    metrics.put("transactions", done)
}

fn tps(metrics: &mut Metrics, rate: &str) -> Result<(), Invalid> {
    let (value, kind) = number_of("tps", rate)?;
    let name = match kind.trim() {
        "(without initial connection time)" | "(excluding connections establishing)" => "tps",
        "(including connections establishing)" => "tps_including_connecting",
        "(including reconnection times)" => "tps_including_reconnecting",
        kind => {
            return Err(Invalid::because(format!("a kind of tps that is not known: {}", excerpt(kind))));
        }
    };
    metrics.put(name, value)
}

fn figure(metrics: &mut Metrics, line: &str) -> Result<(), Invalid> {
    for (label, name) in [
        ("latency average", "latency_avg"),
        ("latency stddev", "latency_stddev"),
        ("initial connection time", "initial_connection"),
        ("average connection time", "average_connection"),
    ] {
        let Some(rest) = line.strip_prefix(label) else { continue };
        let Some(rest) = rest.trim_start().strip_prefix(['=', ':']) else { continue };
        let (value, unit) = number_of(label, rest)?;
        return match unit.split_whitespace().next() {
            Some(unit @ ("ms" | "us")) => metrics.put(format!("{name}_{unit}"), value),
            Some(_) | None => Err(Invalid::because(format!("no unit that is known: {}", excerpt(line)))),
        };
    }
    for (label, name) in
        [("number of failed transactions:", "failed_transactions"), ("total number of retries:", "retries")]
    {
        if let Some(rest) = line.strip_prefix(label) {
            return metrics.put(name, number_of(label, rest)?.0);
        }
    }
    if let Some((_, late)) = line
        .strip_prefix("number of transactions above the ")
        .and_then(|rest| rest.split_once("latency limit"))
    {
        let late = late.trim_start_matches([':', ' ']);
        return metrics.put("late_transactions", number_of("latency limit", late)?.0);
    }
    Ok(())
}
