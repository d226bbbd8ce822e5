//! How the values of a profile are read. Every error is a lower-case sentence about the value.

use super::document::Plain;
use crate::model::Relative;
use jiff::SignedDuration;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A value that was read, or why it cannot be.
pub(super) type Read<T> = Result<T, String>;

fn wants(what: &str, value: &Plain) -> String {
    format!("takes {what}, not {}", value.type_name())
}

/// Any text.
pub(super) fn text(value: &Plain) -> Read<String> {
    match value {
        Plain::Text(text) | Plain::Argument(text) => Ok(text.clone()),
        Plain::Integer(_) | Plain::Float(_) | Plain::Flag(_) | Plain::List(_) | Plain::Other(_) => {
            Err(wants("a string", value))
        }
    }
}

/// Text that is not blank.
pub(super) fn filled(value: &Plain) -> Read<String> {
    let text = text(value)?;
    if text.trim().is_empty() { Err("is empty".to_owned()) } else { Ok(text) }
}

/// One of a type's words.
pub(super) fn word<T: FromStr<Err = String>>(value: &Plain) -> Read<T> {
    text(value)?.parse().map_err(|reason| format!("is wrong: {reason}"))
}

/// One of these words.
pub(super) fn one_of<'w>(value: &Plain, words: &[&'w str]) -> Read<&'w str> {
    let text = text(value)?;
    words.iter().copied().find(|word| *word == text).ok_or_else(|| {
        let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        format!("is none of {}", words.join(", "))
    })
}

/// A whole number in a range.
pub(super) fn count(value: &Plain, range: &RangeInclusive<u32>) -> Read<u32> {
    let number = match value {
        Plain::Integer(number) => *number,
        Plain::Argument(text) => text.parse().ok(),
        Plain::Text(_) | Plain::Float(_) | Plain::Flag(_) | Plain::List(_) | Plain::Other(_) => {
            return Err(wants("an integer", value));
        }
    };
    let fits = number.and_then(|number| u32::try_from(number).ok()).filter(|number| range.contains(number));
    fits.ok_or_else(|| format!("must be from {} to {}", range.start(), range.end()))
}

/// A fraction: `"2%"` or `0.02`.
pub(super) fn fraction(value: &Plain) -> Read<f64> {
    let number = match value {
        Plain::Text(text) | Plain::Argument(text) => {
            text.parse::<Relative>().map_err(|reason| format!("is wrong: {reason}"))?.0
        }
        Plain::Float(number) => *number,
        // Exact for all that can be in range; the rest is out of it either way.
        Plain::Integer(number) => number.and_then(|n| i32::try_from(n).ok()).map_or(f64::INFINITY, f64::from),
        Plain::Flag(_) | Plain::List(_) | Plain::Other(_) => {
            return Err(wants("a fraction like \"2%\" or 0.02", value));
        }
    };
    Ok(number)
}

/// Any number in a range, both ends included.
pub(super) fn number(value: &Plain, least: f64, most: f64) -> Read<f64> {
    let number = match value {
        Plain::Float(number) => *number,
        Plain::Integer(number) => number.and_then(|n| i32::try_from(n).ok()).map_or(f64::INFINITY, f64::from),
        Plain::Argument(text) => text.parse().unwrap_or(f64::NAN),
        Plain::Text(_) | Plain::Flag(_) | Plain::List(_) | Plain::Other(_) => {
            return Err(wants("a number", value));
        }
    };
    if (least..=most).contains(&number) { Ok(number) } else { Err(format!("must be from {least} to {most}")) }
}

/// `true` or `false`.
pub(super) fn flag(value: &Plain) -> Read<bool> {
    match value {
        Plain::Flag(flag) => Ok(*flag),
        Plain::Text(_)
        | Plain::Argument(_)
        | Plain::Integer(_)
        | Plain::Float(_)
        | Plain::List(_)
        | Plain::Other(_) => Err(wants("true or false", value)),
    }
}

/// One value for a file of the kernel: text or a whole number, as it is written into the file.
pub(super) fn scalar(value: &Plain) -> Read<String> {
    match value {
        Plain::Text(text) | Plain::Argument(text) if text.contains(['\'', '\n', '\t']) => {
            Err("holds a quote, a tab or a line end".to_owned())
        }
        Plain::Text(_) | Plain::Argument(_) => filled(value).map(|text| text.trim().to_owned()),
        Plain::Integer(Some(number)) => Ok(number.to_string()),
        Plain::Integer(None) | Plain::Float(_) | Plain::Flag(_) | Plain::List(_) | Plain::Other(_) => {
            Err(wants("a string or an integer", value))
        }
    }
}

/// The smallest change worth finding.
pub(super) fn minimum_effect(value: &Plain) -> Read<Relative> {
    let number = fraction(value)?;
    let has_percent = matches!(value, Plain::Text(text) | Plain::Argument(text) if text.contains('%'));
    if (1.0..10.0).contains(&number) && !has_percent {
        Err(format!("is {:.0} % as it stands; write \"{number}%\" or a fraction below 1", number * 100.0))
    } else if number > 0.0 && number < 10.0 {
        Ok(Relative(number))
    } else {
        Err("must be more than 0 and less than 10 (1000 %)".to_owned())
    }
}

/// A probability asked of a conclusion.
pub(super) fn confidence(value: &Plain) -> Read<f64> {
    let number = fraction(value)?;
    if number > 0.5 && number < 1.0 {
        Ok(number)
    } else {
        Err("must be between 0.5 and 1, both excluded (0.99 = one wrong answer in a hundred)".to_owned())
    }
}

/// A length of time, in seconds.
pub(super) fn duration(value: &Plain) -> Read<u64> {
    match value {
        Plain::Text(text) | Plain::Argument(text) => parse_duration(text),
        Plain::Integer(_) | Plain::Float(_) | Plain::Flag(_) | Plain::List(_) | Plain::Other(_) => {
            Err(wants("a time with its unit in a string (\"90s\", \"1h30m\")", value))
        }
    }
}

/// Parses a length of time like "12h", "90m", "30s" or "1h30m" into whole seconds, at least one. Errors with the
/// reason.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let duration: SignedDuration = text.trim().parse().map_err(|_| {
        format!("{text:?} is not a time; write it like \"30s\", \"90m\", \"12h\" or \"1h30m\"")
    })?;
    match u64::try_from(duration.as_secs()) {
        Ok(seconds) if seconds > 0 && duration.subsec_nanos() == 0 => Ok(seconds),
        Ok(_) | Err(_) => Err("must be a whole number of seconds, at least one".to_owned()),
    }
}

/// A time as people write it.
pub(super) fn show_duration(seconds: &u64) -> String {
    let seconds = i64::try_from(*seconds).unwrap_or(i64::MAX);
    format!("\"{:#}\"", SignedDuration::from_secs(seconds))
}

/// Shows a text as TOML has it.
pub(super) fn quoted(text: &String) -> String {
    format!("{text:?}")
}

/// Text as TOML shows it; several lines as their number.
pub(super) fn show_text(text: &str) -> String {
    match text.lines().count() {
        0 | 1 => format!("{text:?}"),
        lines => format!("({lines} lines)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_with_its_units_and_shown_so_that_it_reads_back() {
        for (text, seconds) in [
            ("30s", 30),
            ("90m", 5400),
            ("12h", 43200),
            ("1h30m", 5400),
            (" 1h 30m ", 5400),
            ("90 min", 5400),
        ] {
            assert_eq!(parse_duration(text), Ok(seconds), "{text}");
            assert_eq!(parse_duration(show_duration(&seconds).trim_matches('"')), Ok(seconds), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_time_of_whole_seconds_is_refused() {
        for text in ["", "30", "soon", "0s", "-5m", "5m ago", "1.5s", "100ms", "9999999999999999999h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
