//! Verdicts and the numbers behind them.

use super::Direction;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A relative change with its interval: fraction of the reference, positive = worse, finite; `low <= relative <=
/// high`. `+0.05` is 5 % worse.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Point estimate.
    pub relative: f64,
    /// Lower end of the interval at the level stated beside it.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Effect {
    /// The change of the metric itself, with its interval and what that is: "-7.4 % (-8.0 to -6.8 %), worse" for a
    /// throughput. An interval that holds zero is neither better nor worse.
    pub fn words(self, direction: Direction) -> String {
        let percent = |x: f64| {
            let shown = direction.worse_sign() * x * 100.0;
            // No "-0.0".
            if shown.abs() < 0.05 { 0.0 } else { shown }
        };
        let (a, b) = (percent(self.low), percent(self.high));
        let meaning = if self.low > 0.0 {
            "worse"
        } else if self.high < 0.0 {
            "better"
        } else {
            "within the noise"
        };
        format!("{:+.1} % ({:+.1} to {:+.1} %), {meaning}", percent(self.relative), a.min(b), a.max(b))
    }
}

/// What a commit showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Like the good endpoint.
    Baseline,
    /// Like the bad endpoint: it has the change looked for (of either sign).
    Regressed,
    /// The measurements do not say; more boots would.
    Undecided,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Baseline => "baseline",
            Self::Regressed => "regressed",
            Self::Undecided => "undecided",
        })
    }
}

/// The numbers behind a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Boots of the judged commit that entered.
    pub boots: u32,
    /// Runs of the judged commit that entered.
    pub runs: u32,
    /// Effect against the good endpoint, with interval.
    pub effect: Effect,
    /// Probability of error of this verdict, one-sided, in `[0, 1]`; for `Undecided` the smaller of the two sides'.
    pub p_error: f64,
    /// The level `p_error` was held against.
    pub level: f64,
    /// What it was judged against, in words.
    pub reference: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_reads_as_the_metrics_own_change() {
        let effect = Effect { relative: 0.074, low: 0.068, high: 0.08 };
        assert_eq!(effect.words(Direction::Higher), "-7.4 % (-8.0 to -6.8 %), worse");
        assert_eq!(effect.words(Direction::Lower), "+7.4 % (+6.8 to +8.0 %), worse");
        let repaired = Effect { relative: -38.889, low: -39.0, high: -38.0 };
        assert_eq!(repaired.words(Direction::Higher), "+3888.9 % (+3800.0 to +3900.0 %), better");
        let nothing = Effect { relative: -0.0001, low: -0.006, high: 0.007 };
        assert_eq!(nothing.words(Direction::Higher), "+0.0 % (-0.7 to +0.6 %), within the noise");
    }
}
