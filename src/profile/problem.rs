//! What is wrong with a profile, where, and what to do about it.

use std::fmt::{self, Write as _};
use std::ops::Range;

/// Why there is no recipe. The text fits "failed to ...".
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Neither an embedded profile nor a file.
    #[error("find profile {name:?}: there is none of that name ({known}) and no such file")]
    Unknown {
        /// As asked for.
        name: String,
        /// Names that exist.
        known: String,
    },
    /// The file cannot be read.
    #[error("read profile {file}: {reason}")]
    Unreadable {
        /// Its path.
        file: String,
        /// Why.
        reason: String,
    },
    /// It, or the command line over it, is wrong; every problem with its position, one after the other.
    #[error("use {label}: {count}\n{problems}", count = counted(*count))]
    Invalid {
        /// The profile or its file.
        label: String,
        /// How many problems.
        count: usize,
        /// The problems as text of several lines.
        problems: String,
    },
}

fn counted(count: usize) -> String {
    if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") }
}

/// Where a problem is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Bytes of the profile's text.
    Profile {
        /// First byte.
        start: usize,
        /// One past the last byte.
        end: usize,
    },
    /// A flag and its value.
    CommandLine {
        /// "--confidence".
        flag: &'static str,
        /// As typed.
        value: String,
    },
    /// Nowhere: something is missing.
    Whole,
}

impl Place {
    pub fn of(span: &Range<usize>) -> Self {
        Self::Profile { start: span.start, end: span.end }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Problem {
    /// Where; the first field, so that problems sort by it.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// Line and column (both from 1, in characters) of a byte of `text`, and the bounds of its line.
pub(super) fn position(text: &str, at: usize) -> (usize, usize, Range<usize>) {
    let at = text.floor_char_boundary(at);
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    let line = text[..start].matches('\n').count() + 1;
    (line, text[start..at].chars().count() + 1, start..end)
}

/// A problem with the profile `label` of this text, as lines for people.
pub(super) struct Shown<'a> {
    pub label: &'a str,
    pub text: &'a str,
    pub problem: &'a Problem,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { place, message, help } = self.problem;
        match place {
            Place::Profile { start, end } => {
                let (line, column, bounds) = position(self.text, *start);
                // A tab would put the caret elsewhere than the terminal shows the text.
                let source = self.text[bounds.clone()].trim_end().replace('\t', " ");
                let end = self.text.floor_char_boundary((*end).min(bounds.end)).max(bounds.start);
                let marked = self.text.get(*start..end).map_or(1, |t| t.trim_end().chars().count().max(1));
                writeln!(f, "{}:{line}:{column}: {message}", self.label)?;
                writeln!(f, "{line:5} | {source}")?;
                write!(f, "      | {:pad$}{}", "", "^".repeat(marked), pad = column - 1)?;
            }
            Place::CommandLine { flag, value } => write!(f, "command line: {flag} {value:?}: {message}")?,
            Place::Whole => write!(f, "{}: {message}", self.label)?,
        }
        match help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

/// All problems as one error.
pub(super) fn invalid(label: &str, text: &str, mut problems: Vec<Problem>) -> ProfileError {
    problems.sort();
    let mut shown = String::new();
    for problem in &problems {
        let gap = if shown.is_empty() { "" } else { "\n" };
        write!(shown, "{gap}{}", Shown { label, text, problem }).expect("a String takes any text");
    }
    ProfileError::Invalid { label: label.to_owned(), count: problems.len(), problems: shown }
}
