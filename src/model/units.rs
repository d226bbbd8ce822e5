//! Quantities with their unit, sign and range.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Whether more or less of a metric is the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// More is better (throughput).
    Higher,
    /// Less is better (time, latency).
    Lower,
}

impl Direction {
    /// `+1.0` where a growing value is worse (`Lower`), `-1.0` where it is better.
    pub fn worse_sign(self) -> f64 {
        match self {
            Self::Higher => -1.0,
            Self::Lower => 1.0,
        }
    }
}

impl FromStr for Direction {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "higher" => Ok(Self::Higher),
            "lower" => Ok(Self::Lower),
            _ => Err(format!(
                "direction {text:?} is neither \"higher\" nor \"lower\" (which of them is better?)"
            )),
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Higher => "higher is better",
            Self::Lower => "lower is better",
        })
    }
}

/// What the user looks for between the endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Find {
    /// The bad endpoint is worse than the good one.
    Regression,
    /// The bad endpoint is better than the good one.
    Improvement,
    /// Whichever sign the endpoints show.
    Any,
}

impl FromStr for Find {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "regression" => Ok(Self::Regression),
            "improvement" => Ok(Self::Improvement),
            "any" => Ok(Self::Any),
            _ => Err(format!("{text:?} is none of \"regression\", \"improvement\", \"any\"")),
        }
    }
}

impl fmt::Display for Find {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Regression => "regression",
            Self::Improvement => "improvement",
            Self::Any => "any",
        })
    }
}

/// The sign of the change that a session follows, once its endpoints are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sense {
    /// The later side is worse.
    Regression,
    /// The later side is better.
    Improvement,
}

impl Sense {
    /// `+1.0` for a regression, `-1.0` for an improvement: what turns "positive = worse" into "positive = the
    /// change looked for".
    pub fn sign(self) -> f64 {
        match self {
            Self::Regression => 1.0,
            Self::Improvement => -1.0,
        }
    }
}

impl fmt::Display for Sense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Regression => "regression",
            Self::Improvement => "improvement",
        })
    }
}

/// A relative quantity as a fraction: `0.02` is 2 %. Finite. Parsed from `2%` or `0.02`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Relative(pub f64);

impl FromStr for Relative {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bare = text.trim();
        let (digits, scale) = match bare.strip_suffix('%') {
            Some(digits) => (digits.trim_end(), 0.01),
            None => (bare, 1.0),
        };
        match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Self(value * scale)),
            Ok(_) | Err(_) => Err(format!("{text:?} is not a relative size; write it as 2% or 0.02")),
        }
    }
}

impl fmt::Display for Relative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+.1} %", self.0 * 100.0)
    }
}

/// What is judged: a named number that a run reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// The name under which a run reports it.
    pub name: String,
    /// Unit as text for people ("s", "NOPM"); may be empty.
    pub unit: String,
    /// Which way is better.
    pub direction: Direction,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_size_is_read_from_percent_or_fraction() {
        assert_eq!("2%".parse(), Ok(Relative(0.02)));
        assert_eq!("0.02".parse(), Ok(Relative(0.02)));
        assert!("two".parse::<Relative>().is_err());
        assert!("NaN".parse::<Relative>().is_err());
        assert!("inf%".parse::<Relative>().is_err());
    }

    #[test]
    fn a_forty_fold_time_prints_as_3888_9_percent() {
        assert_eq!(Relative(39.889 / 1.0 - 1.0).to_string(), "+3888.9 %");
    }
}
