//! Identifiers: commits, steps, machines, boots.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A full commit id: 40 (SHA-1) or 64 (SHA-256) lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitId(String);

impl CommitId {
    /// Parses a full id. Errors (with the reason) on any other length or character.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ok = matches!(text.len(), 40 | 64)
            && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if ok {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("{text:?} is not a full commit id (40 or 64 lower-case hexadecimal digits)"))
        }
    }

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 12 digits, the kernel's convention for naming a commit.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl TryFrom<String> for CommitId {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<CommitId> for String {
    fn from(id: CommitId) -> Self {
        id.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

number_id!(
    /// One started effect (build, boot or run); unique in a session, counted from 1.
    StepId(u64)
);
number_id!(
    /// One machine under test of the session's pool; counted from 0.
    SutId(u32)
);
number_id!(
    /// The how-manieth boot of the session this is; counted from 1.
    BootNo(u64)
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_or_upper_case_commit_id_is_refused() {
        assert!(CommitId::parse(&"a".repeat(40)).is_ok());
        assert!(CommitId::parse(&"A".repeat(40)).is_err());
        assert!(CommitId::parse("abc123").is_err());
    }
}
