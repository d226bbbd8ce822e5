//! Reading what commands printed: the measurement, and the last words of one that failed.
//!
//! Only the end of a log is read, so that output of any size costs the same; any byte may occur in it.

use crate::model::RunResult;
use crate::workload::{Output, Reader};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// How much of a log's end is looked at, in bytes; a measurement with hundreds of metrics fits.
const TAIL: u64 = 64 * 1024;

/// How much a parser is given of each stream, in bytes; no benchmark prints so much, and more is not to be kept in memory.
const WHOLE: u64 = 64 << 20;

/// How much of a foreign line a message quotes, in characters.
const QUOTED: usize = 160;

/// The last line of a log that is not blank.
struct LastLine {
    bytes: Vec<u8>,
    /// Whether its start lies before the part that was read.
    cut: bool,
}

/// The end of a log, and where in it that begins.
fn tail(log: &Path) -> io::Result<(Vec<u8>, u64)> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    // Limited: something that is still writing must not make it endless.
    file.take(TAIL).read_to_end(&mut tail)?;
    Ok((tail, start))
}

fn last_line(log: &Path) -> io::Result<Option<LastLine>> {
    let (tail, start) = tail(log)?;
    let text = tail.trim_ascii_end();
    if text.is_empty() {
        return Ok(None);
    }
    let line = text.iter().rposition(|&b| b == b'\n').map(|end| &text[end + 1..]);
    let cut = line.is_none() && start > 0;
    Ok(Some(LastLine { bytes: line.unwrap_or(text).trim_ascii().to_vec(), cut }))
}

/// The last line of a log that does not begin with `but`, fit for a message. `None` where there is none.
pub(super) fn last_words(log: &Path, but: &str) -> Option<String> {
    // A log that cannot be read has no words; the failure that is being reported is another one.
    let tail = tail(log).ok()?.0;
    let lines = tail.split(|&byte| byte == b'\n').rev().map(<[u8]>::trim_ascii);
    lines.into_iter().find(|line| !line.is_empty() && !line.starts_with(but.as_bytes())).map(quoted)
}

/// The first line of a small file, trimmed; `None` where there is no such file.
pub(super) fn first_line(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(text.lines().next().unwrap_or_default().trim().to_owned()))
}

/// Reads the measurement at the end of a run's standard output; `judged` must be in it.
pub(super) fn read_measurement(log: &Path, judged: &str) -> io::Result<RunResult> {
    Ok(match last_line(log)? {
        Some(line) if line.cut => {
            RunResult::Invalid { reason: format!("the last line of output is longer than {TAIL} bytes") }
        }
        line => of_line(line.as_ref().map(|line| line.bytes.as_slice()), judged),
    })
}

/// The same of output that is in memory.
pub(in crate::lab) fn read_last(stdout: &[u8], judged: &str) -> RunResult {
    let last = stdout.trim_ascii_end().rsplit(|&byte| byte == b'\n').next();
    of_line(last.filter(|line| !line.is_empty()), judged)
}

fn of_line(last: Option<&[u8]>, judged: &str) -> RunResult {
    let none = "printed no measurement: standard output is empty or ends in blank lines";
    match last.map_or_else(|| Err(none.to_owned()), |line| parse_measurement(line, judged)) {
        Ok(metrics) => RunResult::measured(metrics),
        Err(reason) => RunResult::Invalid { reason },
    }
}

/// Both streams of a call; `None`: more than is kept in memory.
pub(super) fn whole_output(out: &Path, err: &Path) -> io::Result<Option<Output>> {
    let whole = |log: &Path| -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        File::open(log)?.take(WHOLE + 1).read_to_end(&mut bytes)?;
        Ok(if bytes.len() as u64 > WHOLE { None } else { Some(bytes) })
    };
    Ok(whole(out)?.zip(whole(err)?).map(|(stdout, stderr)| Output { stdout, stderr, status: 0 }))
}

/// Why an output is not read at all.
pub(super) fn too_much() -> String {
    format!("it printed more than {} MiB", WHOLE >> 20)
}

/// Reads the metrics of a run by a parser; `judged` must be among them.
pub(super) fn read_output(out: &Path, err: &Path, reader: &Reader, judged: &str) -> io::Result<RunResult> {
    Ok(match whole_output(out, err)? {
        Some(output) => read_by(reader, &output, judged),
        None => RunResult::Invalid { reason: too_much() },
    })
}

/// Reads the metrics of a run by a parser; `judged` must be among them.
pub(in crate::lab) fn read_by(reader: &Reader, output: &Output, judged: &str) -> RunResult {
    match reader.parse(judged, output) {
        Ok(metrics) => RunResult::measured(metrics),
        Err(invalid) => RunResult::Invalid { reason: format!("{}: {invalid}", reader.parser()) },
    }
}

/// Parses the line that is a measurement: one number (then it is the value of `judged`), `{"metrics": {NAME: number,
/// ...}}` or `{"invalid": REASON}`. Every value given is finite and `judged` is among them. Errors are the reason why
/// the line cannot be used.
pub fn parse_measurement(line: &[u8], judged: &str) -> Result<BTreeMap<String, f64>, String> {
    let text = std::str::from_utf8(line)
        .map_err(|_| format!("the last line of output is not UTF-8 text: {}", quoted(line)))?
        .trim();
    if text.starts_with('{') {
        return parse_object(text, judged);
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(BTreeMap::from([(judged.to_owned(), value)])),
        Ok(_) => Err(format!("the number is not finite: {}", quoted(line))),
        Err(_) => Err(not_a_number(text)),
    }
}

fn not_a_number(text: &str) -> String {
    let numbers = text.split_whitespace().filter(|word| word.parse::<f64>().is_ok()).count();
    let shown = quoted(text.as_bytes());
    if numbers > 1 {
        format!("the last line of output holds {numbers} numbers, not one: {shown}")
    } else if text.ends_with('}') {
        format!("the last line of output is the end of an object that is not on one line: {shown}")
    } else {
        format!("the last line of output is not a number: {shown}")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    metrics: Option<Metrics>,
    invalid: Option<String>,
}

fn parse_object(text: &str, judged: &str) -> Result<BTreeMap<String, f64>, String> {
    let object: Object = serde_json::from_str(text)
        .map_err(|error| format!("the last line of output is not a measurement object ({error})"))?;
    if let Some(reason) = object.invalid {
        let reason = quoted(reason.as_bytes());
        return Err(if reason.is_empty() { "declared invalid without a reason".to_owned() } else { reason });
    }
    let Some(Metrics(metrics)) = object.metrics else {
        return Err("the measurement object has neither \"metrics\" nor \"invalid\"".to_owned());
    };
    if metrics.contains_key(judged) {
        return Ok(metrics);
    }
    let names: Vec<&str> = metrics.keys().map(String::as_str).collect();
    let present = if names.is_empty() { "none".to_owned() } else { quoted(names.join(", ").as_bytes()) };
    Err(format!("the judged metric {judged:?} is missing; present: {present}"))
}

/// Metrics by name, each once: of two values under one name neither can be trusted.
struct Metrics(BTreeMap<String, f64>);

impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetricsVisitor)
    }
}

struct MetricsVisitor;

impl<'de> Visitor<'de> for MetricsVisitor {
    type Value = Metrics;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of numbers by metric name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
        let mut metrics = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value::<f64>()?;
            if !value.is_finite() {
                return Err(A::Error::custom(format!("metric {name:?} is not finite")));
            }
            if metrics.insert(name.clone(), value).is_some() {
                return Err(A::Error::custom(format!("metric {name:?} stands twice")));
            }
        }
        Ok(Metrics(metrics))
    }
}

/// A foreign line made fit for a message: no control characters, not too long.
fn quoted(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let clean = clean.trim();
    match clean.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}...", &clean[..end]),
        None => clean.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(output: &[u8]) -> RunResult {
        let dir = tempfile::tempdir().expect("temporary directory");
        let log = dir.path().join("log");
        std::fs::write(&log, output).expect("writes");
        read_measurement(&log, "time").expect("the log is readable")
    }

    fn value(output: &[u8]) -> f64 {
        let result = read(output);
        let RunResult::Measured { metrics, .. } = result else { panic!("{result:?}") };
        metrics["time"]
    }

    fn reason(output: &[u8]) -> String {
        let result = read(output);
        let RunResult::Invalid { reason } = result else { panic!("{result:?}") };
        reason
    }

    #[test]
    fn the_last_line_that_is_not_blank_is_the_measurement() {
        assert_eq!(value(b"0.279"), 0.279);
        assert_eq!(value(b"0.279\n"), 0.279);
        assert_eq!(value(b"warming up\n9.9\n  0.279 \n\n \n"), 0.279);
        assert_eq!(value(b"warming up\r\n0.279\r\n"), 0.279);
        assert_eq!(value(b"-1.5e3"), -1500.0);
        assert_eq!(value(b"\xff\xfe\x00 not text\n7\n"), 7.0);
    }

    #[test]
    fn output_of_any_size_is_read_from_its_end() {
        let mut output = vec![b'x'; 3 * 1024 * 1024];
        assert_eq!(reason(&output), "the last line of output is longer than 65536 bytes");
        output.extend_from_slice(b"\n42\n");
        assert_eq!(value(&output), 42.0);
        output.extend(vec![b'\n'; 65536]);
        assert!(reason(&output).starts_with("printed no measurement"));
    }

    #[test]
    fn what_is_not_one_finite_number_is_invalid_with_its_reason() {
        for (output, expected) in [
            ("", "printed no measurement: standard output is empty or ends in blank lines"),
            ("NaN", "the number is not finite: NaN"),
            ("inf", "the number is not finite: inf"),
            ("1e999", "the number is not finite: 1e999"),
            ("1 2", "the last line of output holds 2 numbers, not one: 1 2"),
            ("Time: 0.279", "the last line of output is not a number: Time: 0.279"),
            ("0,279", "the last line of output is not a number: 0,279"),
            ("12\nfailed", "the last line of output is not a number: failed"),
            ("\x1b[31mred", "the last line of output is not a number: [31mred"),
        ] {
            assert_eq!(reason(output.as_bytes()), expected);
        }
        assert!(reason(b"1\xff").contains("not UTF-8"));
    }

    #[test]
    fn an_object_gives_every_metric_and_must_hold_the_judged_one() {
        assert_eq!(value(br#"{"metrics": {"time": 1, "p99": 2.5}}"#), 1.0);
        assert_eq!(
            reason(br#"{"metrics": {"p50": 1, "p99": 2.5}}"#),
            "the judged metric \"time\" is missing; present: p50, p99"
        );
        assert_eq!(reason(br#"{"metrics": {}}"#), "the judged metric \"time\" is missing; present: none");
        assert_eq!(reason(br#"{"invalid": "not saturated"}"#), "not saturated");
        assert_eq!(reason(br#"{"invalid": ""}"#), "declared invalid without a reason");
        assert_eq!(reason(br#"{"metrics": {"time": 1}, "invalid": "splat"}"#), "splat");
        assert_eq!(reason(b"{}"), "the measurement object has neither \"metrics\" nor \"invalid\"");
    }

    #[test]
    fn a_malformed_object_is_invalid_and_never_a_number() {
        for (output, part) in [
            (r#"{"metrics": {"time": "1"}}"#, "invalid type: string"),
            (r#"{"metrics": {"time": null}}"#, "invalid type: null"),
            (r#"{"metrics": {"time": 1e999}}"#, "number out of range"),
            (r#"{"metrics": {"time": NaN}}"#, "expected value"),
            (r#"{"metrics": {"time": 1, "time": 2}}"#, "metric \"time\" stands twice"),
            (r#"{"metrics": {"time": 1}} 2"#, "trailing characters"),
            (r#"{"metric": {"time": 1}}"#, "unknown field `metric`"),
            (r#"{"metrics": [1]}"#, "an object of numbers by metric name"),
            (r#"{"metrics": "#, "EOF"),
            ("{\n \"metrics\": {\"time\": 1}\n}", "not on one line"),
        ] {
            assert!(reason(output.as_bytes()).contains(part), "{output} gave {}", reason(output.as_bytes()));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(output: Vec<u8>) {
            read(&output);
        }

        #[test]
        fn no_line_that_looks_like_an_object_breaks_the_reader(inner in "[\\{\\}\\[\\]\",:a-z0-9.eE+\\- \\\\]{0,80}") {
            if let Ok(metrics) = parse_measurement(format!("{{{inner}").as_bytes(), "time") {
                prop_assert!(metrics.values().all(|value| value.is_finite()));
            }
        }

        #[test]
        fn every_finite_number_is_read_back_exactly(number in proptest::num::f64::NORMAL | proptest::num::f64::ZERO) {
            prop_assert_eq!(value(format!("noise\n{number:?}\r\n").as_bytes()).to_bits(), number.to_bits());
            let object = serde_json::json!({ "metrics": { "time": number } }).to_string();
            prop_assert_eq!(value(object.as_bytes()).to_bits(), number.to_bits());
        }
    }
}
