//! What a parser says about a metric before any output is read: name, unit, direction.

use crate::model::Direction;

/// A metric that a parser can report, or a family of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Declared {
    /// Its name. `{...}` stands for a part that the output decides: `{P}` a percentile ("99", "99.9"), `{N}` a whole
    /// number, any other word text that is not empty.
    pub name: &'static str,
    /// The unit that the value is in: the output's own, nothing is converted unless `about` says so.
    pub unit: &'static str,
    /// Which way is better; `None`: neither, or it depends on the workload, so that a profile must say.
    pub direction: Option<Direction>,
    /// What it is, in a few words.
    pub about: &'static str,
    /// The smallest step in which it is printed, in its unit, where that is coarse; > 0.
    pub resolution: Option<f64>,
    /// It counts what failed of this metric, in the same unit; `None`: it counts no failures.
    pub fails: Option<&'static str>,
}

impl Declared {
    /// More is better.
    pub(super) const fn higher(name: &'static str, unit: &'static str, about: &'static str) -> Self {
        Self { name, unit, direction: Some(Direction::Higher), about, resolution: None, fails: None }
    }

    /// Less is better.
    pub(super) const fn lower(name: &'static str, unit: &'static str, about: &'static str) -> Self {
        Self { name, unit, direction: Some(Direction::Lower), about, resolution: None, fails: None }
    }

    /// Neither.
    pub(super) const fn neither(name: &'static str, unit: &'static str, about: &'static str) -> Self {
        Self { name, unit, direction: None, about, resolution: None, fails: None }
    }

    /// It is printed in steps of this size.
    pub(super) const fn in_steps_of(mut self, resolution: f64) -> Self {
        self.resolution = Some(resolution);
        self
    }

    /// It counts what failed of `metric`.
    pub(super) const fn that_failed_of(mut self, metric: &'static str) -> Self {
        self.fails = Some(metric);
        self
    }

    /// Whether `metric` is this one or one of this family.
    pub fn covers(&self, metric: &str) -> bool {
        covers(self.name, metric)
    }
}

fn covers(pattern: &str, name: &str) -> bool {
    let hole = pattern.split_once('{').and_then(|(head, rest)| {
        let (what, tail) = rest.split_once('}')?;
        Some((head, what, tail))
    });
    let Some((head, what, tail)) = hole else { return pattern == name };
    let Some(name) = name.strip_prefix(head) else { return false };
    let fits = |part: &str| match what {
        "P" => part.bytes().all(|b| b.is_ascii_digit() || b == b'.'),
        "N" => part.bytes().all(|b| b.is_ascii_digit()),
        _ => true,
    };
    let ends = name.char_indices().skip(1).map(|(at, _)| at).chain([name.len()]);
    !name.is_empty() && ends.into_iter().any(|end| fits(&name[..end]) && covers(tail, &name[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_covers_its_members_and_nothing_else() {
        for (pattern, name, wanted) in [
            ("time", "time", true),
            ("time", "times", false),
            ("latency_p{P}_ms", "latency_p99.9_ms", true),
            ("latency_p{P}_ms", "latency_p_ms", false),
            ("latency_p{P}_ms", "latency_pmax_ms", false),
            ("t{N}_max", "t12_max", true),
            ("t{N}_max", "tx_max", false),
            ("{stressor}.{what}-per-sec-{of}", "pipe.mb-per-sec-pipe-write-rate", true),
            ("{stressor}.bogo_ops", ".bogo_ops", false),
            ("{proc}_avg_ms", "é_avg_ms", true),
        ] {
            let declared = Declared::neither(pattern, "", "");
            assert_eq!(declared.covers(name), wanted, "{pattern} {name}");
        }
    }
}
