//! Calling the scripts of sut/ and reading what they say.

use super::error::Error;
use crate::lab::ssh::far::{Far, Script, Told};
use std::time::Duration;

/// Scripts that look: the machine may be busy, and its disks slow.
pub(in crate::lab::ssh) const LOOKS: Duration = Duration::from_secs(60);

/// Scripts that write much and sync: an initramfs with all modules takes minutes on a slow machine.
pub(in crate::lab::ssh) const WRITES: Duration = Duration::from_secs(1200);

/// How much of a failed script's standard error is shown, in characters.
const SHOWN: usize = 600;

/// Exit statuses of the scripts; sut/common.sh says what they mean.
pub(in crate::lab::ssh) const ABSENT: i32 = 2;
pub(in crate::lab::ssh) const FOREIGN: i32 = 3;
pub(in crate::lab::ssh) const RUNS: i32 = 4;
pub(in crate::lab::ssh) const DIFFERS: i32 = 5;
pub(in crate::lab::ssh) const NO_PROGRAM: i32 = 6;
pub(in crate::lab::ssh) const NOT_SET: i32 = 7;

/// The lines `key=value` of an answer, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::lab::ssh) struct Facts(Vec<(String, String)>);

impl Facts {
    pub fn read(stdout: &[u8]) -> Self {
        let text = String::from_utf8_lossy(stdout);
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Self(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// The first value of `key` that is not empty.
    pub fn one(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(found, value)| found == key && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == key).map(|(_, value)| value.as_str())
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        self.one(key)?.trim().parse().ok()
    }

    /// Groups: each begins with a line `head=NAME`; the lines `head.key=value` behind it are its own.
    pub fn groups(&self, head: &str) -> Vec<(String, Self)> {
        let mut groups: Vec<(String, Self)> = Vec::new();
        for (key, value) in &self.0 {
            if key == head {
                groups.push((value.clone(), Self::default()));
            } else if let Some(inner) = key.strip_prefix(head).and_then(|rest| rest.strip_prefix('.'))
                && let Some((_, facts)) = groups.last_mut()
            {
                facts.0.push((inner.to_owned(), value.clone()));
            }
        }
        groups
    }

    /// The lines `head.key=value`, without the head.
    pub fn below(&self, head: &str) -> Self {
        let inner = |key: &str| Some(key.strip_prefix(head)?.strip_prefix('.')?.to_owned());
        Self(self.0.iter().filter_map(|(key, value)| Some((inner(key)?, value.clone()))).collect())
    }
}

/// One script there, under the root its paths start with.
pub(in crate::lab::ssh) struct Call<'a> {
    pub what: &'a str,
    pub text: &'static str,
    pub args: &'a [&'a str],
    pub deadline: Duration,
}

impl Call<'_> {
    /// Runs it; gives its end, whatever its status.
    pub async fn told(&self, far: &mut dyn Far, root: &str) -> Result<Told, Error> {
        let args: Vec<&str> = std::iter::once(root).chain(self.args.iter().copied()).collect();
        let script = Script { what: self.what, text: self.text, args: &args, deadline: self.deadline };
        Ok(far.sh(script).await?)
    }

    /// Runs it; gives its answer, when it did what it was for.
    pub async fn facts(&self, far: &mut dyn Far, root: &str) -> Result<Facts, Error> {
        let told = self.told(far, root).await?;
        if told.status == 0 { Ok(Facts::read(&told.stdout)) } else { Err(self.failed(far.host(), &told)) }
    }

    /// The error that its exit status means.
    pub fn failed(&self, host: &str, told: &Told) -> Error {
        let (what, host) = (self.what.to_owned(), host.to_owned());
        let text = String::from_utf8_lossy(&told.stderr);
        let text = text.trim();
        let skipped = text.chars().count().saturating_sub(SHOWN);
        let reason: String = text.chars().skip(skipped).collect();
        match told.status {
            RUNS => Error::Runs { what, host },
            NO_PROGRAM => Error::Missing { what, host, reason },
            NOT_SET => Error::NotSet { what, host, reason },
            status => Error::Failed { what, host, status, reason },
        }
    }

    /// The error that its answer lacks `key`.
    pub fn lacks(&self, host: &str, key: &str) -> Error {
        Error::Answer { what: self.what.to_owned(), host: host.to_owned(), missing: key.to_owned() }
    }
}
