//! Workloads: what a run prints and how it is read.
//!
//! Owns: the parsers, one file each, and the rule that they share: one run, one value per metric, finite;
//! anything that is missing, doubled, cut or marked as incomplete is invalid, never a guess. Must not do:
//! start anything, judge a number, read a file. Invariant: no input makes a parser panic (tested with random
//! bytes). Tested here and beside each parser, over recorded outputs in tests/golden/outputs/.

mod hackbench;
mod number;

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

/// A way to read an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parser {
    /// The last line of standard output is the value; its metric is the one that the recipe judges.
    Number,
    /// hackbench of rt-tests: `time`, in seconds, lower is better.
    Hackbench,
}

impl Parser {
    /// Every parser.
    pub const ALL: [Self; 2] = [Self::Number, Self::Hackbench];

    /// The name that a profile uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Hackbench => "hackbench",
        }
    }

    /// The parser of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|parser| parser.name() == name)
    }

    /// Whether an output read so can have the metric `metric`.
    pub fn reports(self, metric: &str) -> bool {
        match self {
            Self::Number => true,
            Self::Hackbench => metric == hackbench::METRIC,
        }
    }

    /// The values in `output` by metric name; each is finite. `metric` names the value where the output
    /// itself does not.
    pub fn parse(self, metric: &str, output: &Output) -> Result<BTreeMap<String, f64>, Invalid> {
        if output.status != 0 {
            return Err(Invalid::because(format!(
                "exit status {}, so its numbers do not count",
                output.status
            )));
        }
        match self {
            Self::Number => number::parse(output).map(|value| BTreeMap::from([(metric.to_owned(), value)])),
            Self::Hackbench => {
                hackbench::parse(output).map(|value| BTreeMap::from([(hackbench::METRIC.to_owned(), value)]))
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_parser_is_found_by_its_name_and_no_other() {
        for parser in Parser::ALL {
            assert_eq!(Parser::named(parser.name()), Some(parser));
        }
        assert_eq!(Parser::named("Hackbench"), None);
    }

    #[test]
    fn numbers_of_a_failed_run_are_not_read() {
        let output = Output { stdout: b"Time: 0.279\n".to_vec(), stderr: Vec::new(), status: 1 };
        for parser in Parser::ALL {
            assert!(parser.parse("time", &output).is_err(), "{parser}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_parser_panic_or_report_a_value_that_is_not_finite(
            stdout in proptest::collection::vec(any::<u8>(), 0..300),
            stderr in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let output = Output { stdout, stderr, status: 0 };
            for parser in Parser::ALL {
                if let Ok(metrics) = parser.parse("m", &output) {
                    prop_assert!(metrics.values().all(|value| value.is_finite()));
                }
            }
        }

        #[test]
        fn no_text_near_the_real_one_makes_a_parser_panic(
            head in "[a-zA-Z: \r\n]{0,20}", value in "[-+0-9.eEinfNa]{0,12}", tail in "(\r?\n|\\PC{0,20})",
        ) {
            let stdout = format!("{head}Time: {value}{tail}").into_bytes();
            let output = Output { stdout, stderr: Vec::new(), status: 0 };
            for parser in Parser::ALL {
                if let Ok(metrics) = parser.parse("m", &output) {
                    prop_assert!(metrics.values().all(|value| value.is_finite()));
                }
            }
        }
    }
}
