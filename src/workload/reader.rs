//! A parser with what the profile tells it: what reads the outputs of a session.

use super::{Declared, Invalid, Metrics, Output, Parser, generic, number};
use crate::model::Direction;
use crate::session::{MachineSpec, Reading};
use regex::Regex;
use std::collections::BTreeMap;

/// What a separator has to be.
const SEPARATOR: &str = "must be one character such as \",\", \";\" or a tab";

/// What json, regex and csv are told; the other parsers need none of it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where each metric stands: a JSON pointer, or a column.
    pub places: BTreeMap<String, String>,
    /// A pattern whose named groups are metrics.
    pub regex: Option<Regex>,
    /// What separates columns.
    pub separator: u8,
    /// The row whose column reads so; `None`: the table has one.
    pub row: Option<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { places: BTreeMap::new(), regex: None, separator: b',', row: None }
    }
}

/// A parser and its options.
#[derive(Debug, Clone)]
pub struct Reader {
    parser: Parser,
    options: Options,
}

impl Reader {
    /// Options that the parser does not know are of no effect; a profile is checked for them.
    pub fn new(parser: Parser, options: Options) -> Self {
        Self { parser, options }
    }

    /// What a recipe asks for; `None`: what it prints is read in the machine's own way. Errors with what is wrong.
    pub fn of(reading: &Reading) -> Result<Option<Self>, String> {
        if reading.parser.is_empty() {
            return Ok(None);
        }
        let parser =
            Parser::named(&reading.parser).ok_or_else(|| format!("no parser {:?}", reading.parser))?;
        let regex = match reading.regex.as_str() {
            "" => None,
            pattern => Some(pattern_of(pattern)?),
        };
        let row = match reading.row.as_str() {
            "" => None,
            row => Some(row_of(row)?),
        };
        let separator = reading.separator.map_or(Ok(b','), byte_of)?;
        let places = reading.metrics.iter().map(|(name, place)| (name.clone(), place.at.clone())).collect();
        Ok(Some(Self::new(parser, Options { places, regex, separator, row })))
    }

    /// The parser.
    pub fn parser(&self) -> Parser {
        self.parser
    }

    /// Whether an output read so can have the metric `metric`.
    pub fn reports(&self, metric: &str) -> bool {
        match self.parser {
            Parser::Json => self.options.places.contains_key(metric) || metric.starts_with('/'),
            Parser::Csv => self.options.places.is_empty() || self.options.places.contains_key(metric),
            Parser::Regex => {
                let mut groups = self.options.regex.iter().flat_map(Regex::capture_names).flatten();
                groups.any(|group| group == metric)
            }
            Parser::Number => true,
            Parser::Hackbench
            | Parser::HammerDb
            | Parser::Sysbench
            | Parser::Schbench
            | Parser::PerfBench
            | Parser::Cyclictest
            | Parser::StressNg
            | Parser::Pgbench
            | Parser::Netperf
            | Parser::Iperf3
            | Parser::Fio
            | Parser::WillItScale
            | Parser::UnixBench => self.parser.reports(metric),
        }
    }

    /// Everything in `output`.
    pub fn read(&self, output: &Output) -> Result<Metrics, Invalid> {
        self.values(None, output)
    }

    /// The values in `output` by metric name, each finite, `judged` among them. `judged` also names the value where the
    /// output itself does not.
    pub fn parse(&self, judged: &str, output: &Output) -> Result<BTreeMap<String, f64>, Invalid> {
        self.judge(judged, output).map(Metrics::into_values)
    }

    /// The same with the remarks.
    pub fn judge(&self, judged: &str, output: &Output) -> Result<Metrics, Invalid> {
        self.values(Some(judged), output)?.with(judged)
    }

    fn values(&self, judged: Option<&str>, output: &Output) -> Result<Metrics, Invalid> {
        if output.status != 0 {
            return Err(Invalid::because(format!(
                "exit status {}, so its numbers do not count",
                output.status
            )));
        }
        match self.parser {
            Parser::Number => number::parse(judged.unwrap_or("value"), output),
            Parser::Json => generic::json_values(&self.options, judged, output),
            Parser::Regex => generic::regex_groups(&self.options, output),
            Parser::Csv => generic::csv_columns(&self.options, output),
            Parser::Hackbench => super::hackbench::parse(output),
            Parser::HammerDb => super::hammerdb::parse(output),
            Parser::Sysbench => super::sysbench::parse(output),
            Parser::Schbench => super::schbench::parse(output),
            Parser::PerfBench => super::perf_bench::parse(output),
            Parser::Cyclictest => super::cyclictest::parse(output),
            Parser::StressNg => super::stress_ng::parse(output),
            Parser::Pgbench => super::pgbench::parse(output),
            Parser::Netperf => super::netperf::parse(output),
            Parser::Iperf3 => super::iperf3::parse(output),
            Parser::Fio => super::fio::parse(output),
            Parser::WillItScale => super::will_it_scale::parse(output),
            Parser::UnixBench => super::unixbench::parse(output),
        }
    }
}

/// A regular expression that has a named group. Errors with the reason.
pub fn pattern_of(pattern: &str) -> Result<Regex, String> {
    let regex = Regex::new(pattern).map_err(|error| {
        // The last line says what is wrong, those before it draw where.
        let error = error.to_string();
        let what = error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        format!("is no regular expression: {what}")
    })?;
    if regex.capture_names().flatten().next().is_none() {
        return Err("has no named group such as (?P<tps>[0-9.]+), so it names no metric".to_owned());
    }
    Ok(regex)
}

/// "COLUMN=VALUE". Errors with the reason.
pub fn row_of(row: &str) -> Result<(String, String), String> {
    match row.split_once('=') {
        Some((column, value)) if !column.trim().is_empty() => {
            Ok((column.trim().to_owned(), value.trim().to_owned()))
        }
        Some(_) | None => Err("must be like \"COLUMN=VALUE\", e.g. \"tasks=4\"".to_owned()),
    }
}

/// A separator of columns, as a user writes it. Errors with the reason.
pub fn separator_of(text: &str) -> Result<char, String> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(separator), None) => byte_of(separator).map(|_| separator),
        (Some(_) | None, _) => Err(SEPARATOR.to_owned()),
    }
}

fn byte_of(separator: char) -> Result<u8, String> {
    match u8::try_from(separator) {
        Ok(byte) if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\n\r".contains(&byte) => {
            Ok(byte)
        }
        Ok(_) | Err(_) => Err(SEPARATOR.to_owned()),
    }
}

/// The parser in effect: the recipe's, else the machine's; `None` where a command's last line is the measurement.
pub fn parser_of(reading: &Reading, machine: &MachineSpec) -> Option<Parser> {
    match (reading.parser.as_str(), machine) {
        ("", MachineSpec::Qemu(qemu)) => Parser::named(&qemu.parser),
        ("", MachineSpec::Command { .. } | MachineSpec::Ssh(_)) => None,
        (name, _) => Parser::named(name),
    }
}

/// What profile or parser says about the metric `name`: its unit (empty: nothing), and which way is better.
pub fn declared_of(reading: &Reading, machine: &MachineSpec, name: &str) -> (String, Option<Direction>) {
    if let Some(place) = reading.metrics.get(name) {
        return (place.unit.clone(), place.direction);
    }
    match known_of(reading, machine, name) {
        Some(declared) => (declared.unit.to_owned(), declared.direction),
        None => (String::new(), None),
    }
}

/// What the parser in effect knows of the metric `name`; `None` where the profile tells the parser what to read.
pub fn known_of(reading: &Reading, machine: &MachineSpec, name: &str) -> Option<&'static Declared> {
    let parser = parser_of(reading, machine).filter(|parser| !parser.is_told());
    parser.and_then(|parser| parser.declared(name))
}
