//! A parser with what the profile tells it: what reads the outputs of a session.

use super::{Invalid, Metrics, Output, Parser, generic, number};
use regex::Regex;
use std::collections::BTreeMap;

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
