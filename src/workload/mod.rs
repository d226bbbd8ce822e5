//! Workloads: what a run prints and how it is read.
//!
//! Owns: the parsers, one file each, and the rules that they share: one run, one value per metric, finite, read by its
//! label and never by its position; anything that is missing, doubled, cut or marked as incomplete is invalid, never a
//! guess; a metric that a version or layout of the benchmark does not have is absent, never 0. Must not do: start
//! anything, judge a number, read a file. Invariant: no input makes a parser panic (tested with random bytes and with
//! damaged outputs, fuzzed in fuzz/). Tested in `tests.rs` here over the outputs in tests/golden/outputs/, and beside
//! each parser. docs/parsers.md is the list of all metrics.

mod cyclictest;
mod declared;
mod fio;
mod generic;
mod hackbench;
mod hammerdb;
mod iperf3;
mod metrics;
mod netperf;
mod number;
mod perf_bench;
mod pgbench;
mod reader;
mod schbench;
pub mod schedstat;
mod stress_ng;
mod sysbench;
#[cfg(test)]
mod tests;
mod text;
pub mod tunables;
mod unixbench;
mod will_it_scale;

pub use declared::Declared;
pub use metrics::Metrics;
pub use reader::{Options, Reader, declared_of, known_of, parser_of, pattern_of, row_of, separator_of};

use std::collections::BTreeMap;
use std::fmt;

/// What one run left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Exit status, 0 to 255.
    pub status: i32,
}

/// An output without usable numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Invalid {
    /// Why, in one line.
    pub reason: String,
}

impl Invalid {
    fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// A way to read an output. Head comments of the files tell each format's traps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parser {
    /// The last line of standard output is the value; its metric is the one that the recipe judges.
    Number,
    /// Any JSON, by pointers.
    Json,
    /// Any text, by named groups of a regular expression.
    Regex,
    /// Any table with named columns.
    Csv,
    /// hackbench of rt-tests.
    Hackbench,
    /// HammerDB TPROC-C.
    HammerDb,
    /// sysbench 1.0 and 1.1.
    Sysbench,
    /// schbench.
    Schbench,
    /// perf bench sched.
    PerfBench,
    /// cyclictest of rt-tests.
    Cyclictest,
    /// stress-ng.
    StressNg,
    /// pgbench 12 to 17.
    Pgbench,
    /// netperf.
    Netperf,
    /// iperf3 -J.
    Iperf3,
    /// fio --output-format=json.
    Fio,
    /// will-it-scale, a binary or runtest.py.
    WillItScale,
    /// UnixBench.
    UnixBench,
}

impl Parser {
    /// Every parser.
    pub const ALL: [Self; 17] = [
        Self::Number,
        Self::Json,
        Self::Regex,
        Self::Csv,
        Self::Hackbench,
        Self::HammerDb,
        Self::Sysbench,
        Self::Schbench,
        Self::PerfBench,
        Self::Cyclictest,
        Self::StressNg,
        Self::Pgbench,
        Self::Netperf,
        Self::Iperf3,
        Self::Fio,
        Self::WillItScale,
        Self::UnixBench,
    ];

    /// The name that a profile uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Json => "json",
            Self::Regex => "regex",
            Self::Csv => "csv",
            Self::Hackbench => "hackbench",
            Self::HammerDb => "hammerdb",
            Self::Sysbench => "sysbench",
            Self::Schbench => "schbench",
            Self::PerfBench => "perf-bench",
            Self::Cyclictest => "cyclictest",
            Self::StressNg => "stress-ng",
            Self::Pgbench => "pgbench",
            Self::Netperf => "netperf",
            Self::Iperf3 => "iperf3",
            Self::Fio => "fio",
            Self::WillItScale => "will-it-scale",
            Self::UnixBench => "unixbench",
        }
    }

    /// What it reads, in a line.
    pub fn reads(self) -> &'static str {
        match self {
            Self::Number => "the last line of standard output, one number: the judged metric",
            Self::Json => "any JSON, by pointers",
            Self::Regex => "any text, by the named groups of a regular expression",
            Self::Csv => "any table with named columns",
            Self::Hackbench => "hackbench of rt-tests",
            Self::HammerDb => {
                "HammerDB TPROC-C: result line, time profile up to 5.x and of 6.0, JSON of jobs"
            }
            Self::Sysbench => "sysbench 1.0 and 1.1: OLTP, cpu, threads, mutex, memory",
            Self::Schbench => "schbench of 2016 and later on standard error, and its --json",
            Self::PerfBench => "perf bench sched messaging, pipe, all; -f simple",
            Self::Cyclictest => "cyclictest of rt-tests: text, histogram (-h), --json",
            Self::StressNg => {
                "stress-ng --metrics and --metrics-brief on standard error, YAML (-Y) on standard output"
            }
            Self::Pgbench => "pgbench 12 to 17",
            Self::Netperf => "netperf: streams, request/response, UDP, omni with -k or -o",
            Self::Iperf3 => "iperf3 -J",
            Self::Fio => "fio --output-format=json",
            Self::WillItScale => "will-it-scale: a test's binary, or runtest.py",
            Self::UnixBench => "UnixBench (Run)",
        }
    }

    /// The parser of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|parser| parser.name() == name)
    }

    /// The parser whose name is most like `name`, if one is.
    pub fn nearest(name: &str) -> Option<Self> {
        /// Below this likeness (Jaro-Winkler, 0 to 1) a suggestion is more confusing than none.
        const ALIKE: f64 = 0.75;
        let likeness = |parser: &Self| strsim::jaro_winkler(&name.to_lowercase(), parser.name());
        let best = Self::ALL.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        best.filter(|parser| likeness(parser) >= ALIKE)
    }

    /// What it can report. Where two of them cover a metric, the first counts.
    pub fn metrics(self) -> &'static [Declared] {
        match self {
            Self::Number => number::METRICS,
            Self::Json => generic::JSON,
            Self::Regex => generic::REGEX,
            Self::Csv => generic::CSV,
            Self::Hackbench => hackbench::METRICS,
            Self::HammerDb => hammerdb::METRICS,
            Self::Sysbench => sysbench::METRICS,
            Self::Schbench => schbench::METRICS,
            Self::PerfBench => perf_bench::METRICS,
            Self::Cyclictest => cyclictest::METRICS,
            Self::StressNg => stress_ng::METRICS,
            Self::Pgbench => pgbench::METRICS,
            Self::Netperf => netperf::METRICS,
            Self::Iperf3 => iperf3::METRICS,
            Self::Fio => fio::METRICS,
            Self::WillItScale => will_it_scale::METRICS,
            Self::UnixBench => unixbench::METRICS,
        }
    }

    /// What it declares about the metric `metric`.
    pub fn declared(self, metric: &str) -> Option<&'static Declared> {
        self.metrics().iter().find(|declared| declared.covers(metric))
    }

    /// Whether an output read so can have the metric `metric`; of the parsers that a profile tells where to look,
    /// [`Reader::reports`] knows more.
    pub fn reports(self, metric: &str) -> bool {
        self.is_told() || self.declared(metric).is_some()
    }

    /// Whether what it reports is for the profile to say.
    pub fn is_told(self) -> bool {
        match self {
            Self::Number | Self::Json | Self::Regex | Self::Csv => true,
            Self::Hackbench
            | Self::HammerDb
            | Self::Sysbench
            | Self::Schbench
            | Self::PerfBench
            | Self::Cyclictest
            | Self::StressNg
            | Self::Pgbench
            | Self::Netperf
            | Self::Iperf3
            | Self::Fio
            | Self::WillItScale
            | Self::UnixBench => false,
        }
    }

    /// Everything in `output`.
    pub fn read(self, output: &Output) -> Result<Metrics, Invalid> {
        Reader::new(self, Options::default()).read(output)
    }

    /// The values in `output` by metric name, each finite, `metric` among them. It also names the value where the
    /// output itself does not.
    pub fn parse(self, metric: &str, output: &Output) -> Result<BTreeMap<String, f64>, Invalid> {
        Reader::new(self, Options::default()).parse(metric, output)
    }
}

impl fmt::Display for Parser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Shortens a line for a reason.
fn excerpt(line: &str) -> String {
    const LIMIT: usize = 80;
    match line.char_indices().nth(LIMIT) {
        Some((at, _)) => format!("{:?}...", &line[..at]),
        None => format!("{line:?}"),
    }
}
