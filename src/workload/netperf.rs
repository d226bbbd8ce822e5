//! netperf: TCP_STREAM and the like, TCP_RR and UDP_RR, UDP_STREAM; omni's KEY=VALUE (`-k`) and CSV (`-o`).
//!
//! The classic output is a header of some lines and one of numbers. The last header line names each column by its unit
//! ("bytes bytes bytes secs. 10^6bits/sec", "bytes bytes bytes bytes secs. per sec"); the value is what stands in that
//! column. In request/response tests the same column is "per sec" (higher is better) or "usecs per tran" (lower).
//! UDP_STREAM prints two lines of numbers: what was sent, and below it, without the columns of message size and errors,
//! what arrived; they differ when packets drop. "Interim result:" lines (`-D`) are not the result.

use super::text::{decimal, lines, lossy, marked, refuse};
use super::{Declared, Invalid, Metrics, Output, excerpt};

pub(super) const METRICS: &[Declared] = &[
    Declared::higher(
        "throughput_{unit}",
        "as its name says",
        "streams: throughput_mbit_per_s; -f changes the unit",
    ),
    Declared::higher("sent_{unit}", "as its name says", "UDP_STREAM: sender (sent_mbit_per_s)"),
    Declared::higher("received_{unit}", "as its name says", "UDP_STREAM: receiver (received_mbit_per_s)"),
    Declared::higher("transactions_per_s", "transactions/s", "request/response tests"),
    Declared::lower(
        "usecs_per_transaction",
        "us",
        "request/response tests whose column says \"usecs per tran\"",
    ),
    Declared::lower("latency_p{P}_us", "us", "omni: 50, 90, 99"),
    Declared::lower("latency_min_us", "us", "omni"),
    Declared::lower("latency_mean_us", "us", "omni"),
    Declared::lower("latency_max_us", "us", "omni"),
    Declared::lower("latency_stddev_us", "us", "omni"),
];

/// Units of a throughput, as headers and omni write them.
const UNITS: [(&str, &str); 10] = [
    ("10^3bits/s", "kbit_per_s"),
    ("10^6bits/s", "mbit_per_s"),
    ("10^9bits/s", "gbit_per_s"),
    ("10^12bits/s", "tbit_per_s"),
    ("KBytes/s", "kib_per_s"),
    ("MBytes/s", "mib_per_s"),
    ("GBytes/s", "gib_per_s"),
    ("TBytes/s", "tib_per_s"),
    ("Trans/s", "transactions_per_s"),
    ("bytes/s", "bytes_per_s"),
];

const OMNI: [(&str, &str, &str); 7] = [
    ("P50_LATENCY", "50th Percentile Latency Microseconds", "latency_p50_us"),
    ("P90_LATENCY", "90th Percentile Latency Microseconds", "latency_p90_us"),
    ("P99_LATENCY", "99th Percentile Latency Microseconds", "latency_p99_us"),
    ("MIN_LATENCY", "Minimum Latency Microseconds", "latency_min_us"),
    ("MEAN_LATENCY", "Mean Latency Microseconds", "latency_mean_us"),
    ("MAX_LATENCY", "Maximum Latency Microseconds", "latency_max_us"),
    ("STDDEV_LATENCY", "Stddev Latency Microseconds", "latency_stddev_us"),
];

const BROKEN: [&str; 6] = [
    "are you sure there is a netserver",
    "partial response received",
    "Connection refused",
    "remote error",
    "netperf: error",
    "could not establish",
];

pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let (stdout, stderr) = (lines(&output.stdout), lossy(&output.stderr));
    refuse("netperf failed", &BROKEN, [&stdout, &stderr])?;
    let mut metrics = Metrics::default();
    if marked(&stdout, &["Desired confidence was not achieved"]).is_some() {
        metrics.note("netperf did not reach the confidence asked for");
    }
    let keys: Vec<(&str, &str)> = stdout.lines().filter_map(|line| line.trim().split_once('=')).collect();
    if keys.iter().any(|(key, _)| *key == "THROUGHPUT") {
        omni(&mut metrics, &keys)?;
    } else if let Some(fields) = csv(&stdout) {
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        omni(&mut metrics, &fields)?;
    } else {
        classic(&mut metrics, &stdout)?;
    }
    if metrics.is_empty() {
        return Err(Invalid::because("netperf printed no result"));
    }
    let zero = metrics.values().iter().find(|(name, value)| **value <= 0.0 && !name.starts_with("latency_"));
    match zero {
        Some((name, value)) => {
            Err(Invalid::because(format!("netperf's {name} is {value}: nothing was transferred")))
        }
        None => Ok(metrics),
    }
}

fn unit(text: &str) -> Option<&'static str> {
    // "10^6bits/sec" in headers, "10^6bits/s" of omni.
    let text = text.strip_suffix("ec").unwrap_or(text);
    UNITS.iter().find(|(printed, _)| *printed == text).map(|(_, name)| *name)
}

/// What the column of the result is.
enum Column {
    Throughput(&'static str),
    PerSecond,
    PerTransaction,
}

fn classic(metrics: &mut Metrics, text: &str) -> Result<(), Invalid> {
    let mut column: Option<(usize, Column)> = None;
    let mut datagrams = text.lines().any(|line| line.contains("UDP") && line.contains("STREAM TEST"));
    let mut rows = 0;
    for line in text.lines() {
        datagrams |= line.contains("Okay Errors");
        if let Some(found) = header(line) {
            if column.is_some() {
                return Err(Invalid::because("two results of netperf: one run is one netperf"));
            }
            column = Some(found);
            continue;
        }
        let Some((at, what)) = &column else { continue };
        let values: Option<Vec<f64>> = line.split_whitespace().map(decimal).collect();
        let Some(values) = values.filter(|values| values.len() > 2) else { continue };
        // Below a result of requests are the two sizes at the other end; of datagrams, what arrived there.
        let receiver = datagrams && rows == 1;
        let at = if receiver { at.saturating_sub(2) } else { *at };
        rows += 1;
        if rows > if datagrams { 2 } else { 1 } {
            break;
        }
        let value = *values.get(at).ok_or_else(|| {
            Invalid::because(format!(
                "a line of netperf's numbers does not fit its header: {}",
                excerpt(line.trim())
            ))
        })?;
        match what {
            Column::Throughput(unit) if receiver => metrics.put(format!("received_{unit}"), value)?,
            Column::Throughput(unit) if datagrams => metrics.put(format!("sent_{unit}"), value)?,
            Column::Throughput(unit) => metrics.put(format!("throughput_{unit}"), value)?,
            Column::PerSecond => metrics.put("transactions_per_s", value)?,
            Column::PerTransaction => metrics.put("usecs_per_transaction", value)?,
        }
    }
    if datagrams && rows == 1 {
        metrics.note("netperf printed no line of the receiver");
    }
    Ok(())
}

/// Column of the result and what it is, from the last line of a header.
fn header(line: &str) -> Option<(usize, Column)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if !words.first()?.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let at = |word: &str| words.iter().position(|w| *w == word);
    if let Some((at, unit)) = words.iter().enumerate().find_map(|(at, word)| Some((at, unit(word)?))) {
        return Some((at, Column::Throughput(unit)));
    }
    match (at("usecs"), at("per")) {
        (Some(at), _) => Some((at, Column::PerTransaction)),
        (None, Some(at)) if words.get(at + 1) == Some(&"sec") => Some((at, Column::PerSecond)),
        (None, _) => None,
    }
}

fn omni(metrics: &mut Metrics, fields: &[(&str, &str)]) -> Result<(), Invalid> {
    let value = |key: &str, long: &str| {
        let found = fields.iter().find(|(name, _)| *name == key || *name == long);
        found.map(|(_, value)| value.trim().trim_matches('"'))
    };
    let number = |key: &str, text: &str| {
        decimal(text)
            .ok_or_else(|| Invalid::because(format!("netperf's {key} is not a number: {}", excerpt(text))))
    };
    if let Some(text) = value("THROUGHPUT", "Throughput") {
        let throughput = number("THROUGHPUT", text)?;
        match value("THROUGHPUT_UNITS", "Throughput Units").map(unit) {
            Some(Some("transactions_per_s")) => metrics.put("transactions_per_s", throughput)?,
            Some(Some(unit)) => metrics.put(format!("throughput_{unit}"), throughput)?,
            Some(None) => metrics.note("no throughput: its unit is not known"),
            None => metrics
                .note("no throughput: netperf was not asked for THROUGHPUT_UNITS, so its unit is not known"),
        }
    }
    if let Some(text) = value("TRANSACTION_RATE", "Transaction Rate Tran/s") {
        // -1 where it does not apply.
        let rate = number("TRANSACTION_RATE", text)?;
        if rate > 0.0 && metrics.get("transactions_per_s").is_none() {
            metrics.put("transactions_per_s", rate)?;
        }
    }
    for (key, long, name) in OMNI {
        if let Some(text) = value(key, long) {
            let latency = number(key, text)?;
            if latency >= 0.0 {
                metrics.put(name, latency)?;
            }
        }
    }
    Ok(())
}

/// The two lines of `-o`: names and values.
fn csv(text: &str) -> Option<Vec<(String, String)>> {
    let start = text.lines().position(|line| line.contains("Throughput") && line.contains(','))?;
    let table: Vec<&str> = text.lines().skip(start).take(2).collect();
    let table = table.join("\n");
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(table.as_bytes());
    let names = reader.headers().ok()?.clone();
    let row = reader.records().next()?.ok()?;
    Some(names.iter().map(str::to_owned).zip(row.iter().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interim_line_is_no_result() {
        let stdout = b"Interim result: 9000.1 10^6bits/s over 1.000 seconds ending at 1\n".to_vec();
        assert!(parse(&Output { stdout, ..Output::default() }).is_err());
    }
}
