//! Helpers that the parsers share: strict numbers, labels, JSON in the midst of talk.

use super::{Invalid, excerpt};
use serde_json::Value;
use std::borrow::Cow;

/// Bytes as text; what is not UTF-8 becomes a mark that no label holds.
pub(super) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The whole lines of a benchmark that ends each of its lines: what stands behind the last line end was cut, and half
/// of a number is a number ("Time: 0.2" of 0.279).
pub(super) fn lines(bytes: &[u8]) -> Cow<'_, str> {
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    lossy(&bytes[..end])
}

/// A decimal number as benchmarks print them: digits, a point, perhaps an exponent. Not "nan", "inf", "0x1".
pub(super) fn decimal(text: &str) -> Option<f64> {
    let plain = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    text.parse().ok().filter(|value: &f64| plain && value.is_finite())
}

/// The number at the start of `text`, and what follows it.
pub(super) fn leading(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(text.len());
    // An exponent belongs to it only when digits follow ("4.60e+03", not "5events").
    let exponent = text[end..].strip_prefix(['e', 'E']).map_or(0, |rest| {
        let sign = usize::from(rest.starts_with(['+', '-']));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 { 1 + sign + digits } else { 0 }
    });
    let end = end + exponent;
    decimal(&text[..end]).map(|value| (value, text[end..].trim_start()))
}

/// What stands behind a label at the start of a line, without the blanks around it.
pub(super) fn behind<'a>(line: &'a str, label: &str) -> Option<&'a str> {
    line.trim_start().strip_prefix(label).map(str::trim)
}

/// The number at the start of what stands behind a label, or that there is none.
pub(super) fn number_of<'a>(label: &str, text: &'a str) -> Result<(f64, &'a str), Invalid> {
    leading(text).ok_or_else(|| Invalid::because(format!("no number at {label:?}: {}", excerpt(text.trim()))))
}

/// The first of these lines that holds one of the marks.
pub(super) fn marked<'a>(text: &'a str, marks: &[&str]) -> Option<&'a str> {
    text.lines().find(|line| marks.iter().any(|mark| line.contains(mark))).map(str::trim)
}

/// Refuses a run whose output holds one of the marks: what `says` so, and the first such line of the first stream that has one.
pub(super) fn refuse(says: &str, marks: &[&str], streams: [&str; 2]) -> Result<(), Invalid> {
    match streams.into_iter().find_map(|stream| marked(stream, marks)) {
        Some(line) => Err(Invalid::because(format!("{says}: {}", excerpt(line)))),
        None => Ok(()),
    }
}

/// Words of a free text as one: "MB per sec pipe write rate" is `mb-per-sec-pipe-write-rate`.
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() {
            slug.extend(c.to_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// A percentile in its shortest form: "99.0000" is "99", "99.900000" is "99.9".
pub(super) fn percentile(text: &str) -> Option<String> {
    let text = text.trim();
    let plain = !text.is_empty() && text.len() < 16 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value = decimal(text).filter(|value| plain && (0.0..=100.0).contains(value))?;
    Some(value.to_string())
}

/// The JSON that begins at the first line that starts with a brace or bracket. `None`: there is no such line. An
/// error is one of JSON: what starts so and does not end was cut.
pub(super) fn json(text: &str) -> Option<Result<Value, serde_json::Error>> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with(['{', '[']) {
            let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
            return stream.next();
        }
        at += line.len();
    }
    None
}

/// The one JSON object of a program's output.
pub(super) fn object(program: &str, text: &str) -> Result<Value, Invalid> {
    match json(text) {
        Some(Ok(value)) if value.is_object() => Ok(value),
        Some(Ok(_)) => Err(Invalid::because(format!("{program}'s JSON is not an object"))),
        Some(Err(error)) => Err(Invalid::because(format!("{program}'s JSON is broken or cut: {error}"))),
        None => Err(Invalid::because(format!("{program} printed no JSON"))),
    }
}

/// A JSON number, or text that is one (HammerDB writes "22.097").
pub(super) fn json_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64().filter(|value| value.is_finite()),
        Value::String(text) => decimal(text.trim()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_nothing() {
        for (text, wanted) in [
            ("1.5", Some(1.5)),
            ("4.60e+03", Some(4600.0)),
            ("-3", Some(-3.0)),
            ("nan", None),
            ("inf", None),
            ("1e999", None),
            ("e5", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(decimal(text), wanted, "{text:?}");
        }
        assert_eq!(leading("  12.5ms x"), Some((12.5, "ms x")));
        assert_eq!(leading("5events"), Some((5.0, "events")));
        assert_eq!(leading("2.1e+05 y"), Some((210_000.0, "y")));
        assert_eq!(leading("ms 5"), None);
    }

    #[test]
    fn names_are_made_alike_from_text_and_percentiles() {
        assert_eq!(slug("MB per sec pipe write rate"), "mb-per-sec-pipe-write-rate");
        assert_eq!(slug("context switch (pipe method) "), "context-switch-pipe-method");
        for (text, wanted) in [
            ("99.0000", Some("99")),
            ("99.900000", Some("99.9")),
            ("50", Some("50")),
            ("max", None),
            ("101", None),
        ] {
            assert_eq!(percentile(text).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn json_is_found_behind_talk_and_its_end_matters() {
        assert_eq!(
            json("fio: talk\n{\"a\": 1}\nmore\n").map(Result::ok),
            Some(Some(serde_json::json!({"a": 1})))
        );
        assert!(matches!(json("{\"a\": 1"), Some(Err(_))));
        assert!(json("talk").is_none());
    }
}
