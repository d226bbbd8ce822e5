//! json, regex and csv: for any program, told by the profile where its numbers stand.
//!
//! json: a metric is a JSON pointer (RFC 6901), under a name of the profile's or as it stands ("/end/sum/jitter_ms"). The
//! document begins at the first line that starts with a brace or bracket. regex: each named group is a metric, and must
//! match once in the whole of standard output. csv: the columns of the one data row, or of the row that `row` picks.

use super::text::{decimal, json, json_number, lossy};
use super::{Declared, Invalid, Metrics, Options, Output, excerpt};
use serde_json::Value;

pub(super) const JSON: &[Declared] =
    &[Declared::neither("{pointer}", "the profile's", "any JSON pointer, or a name from [workload.metrics]")];
pub(super) const REGEX: &[Declared] =
    &[Declared::neither("{group}", "the profile's", "each named group of the profile's `regex`")];
pub(super) const CSV: &[Declared] =
    &[Declared::neither("{column}", "the profile's", "each column, or a name from [workload.metrics]")];

/// Deeper or larger documents are listed up to here; a value further on is still found by its pointer.
const LISTED: usize = 2000;

/// Reads the pointers of `options` and `judged`; without either, every number under its own pointer.
pub(super) fn json_values(
    options: &Options,
    judged: Option<&str>,
    output: &Output,
) -> Result<Metrics, Invalid> {
    let document = match json(&lossy(&output.stdout)) {
        Some(Ok(document)) => document,
        Some(Err(error)) => return Err(Invalid::because(format!("the JSON is broken or cut: {error}"))),
        None => return Err(Invalid::because("no JSON in it: no line starts with a brace or bracket")),
    };
    let mut metrics = Metrics::default();
    if options.places.is_empty() && judged.is_none() {
        list(&mut metrics, String::new(), &document)?;
    }
    let pointer = judged.filter(|name| name.starts_with('/') && !options.places.contains_key(*name));
    let places = options.places.iter().map(|(name, at)| (name.as_str(), at.as_str()));
    for (name, at) in places.chain(pointer.map(|pointer| (pointer, pointer))) {
        match document.pointer(at) {
            Some(value) => {
                let number = json_number(value).ok_or_else(|| {
                    Invalid::because(format!("{at} is not a number: {}", excerpt(&value.to_string())))
                })?;
                metrics.put(name, number)?;
            }
            None => metrics.note(format!("nothing at {at}")),
        }
    }
    Ok(metrics)
}

fn list(metrics: &mut Metrics, at: String, value: &Value) -> Result<(), Invalid> {
    if metrics.values().len() >= LISTED {
        metrics.note(format!("only the first {LISTED} numbers are listed"));
        return Ok(());
    }
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                list(metrics, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), value)?;
            }
        }
        Value::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                list(metrics, format!("{at}/{index}"), value)?;
            }
        }
        Value::Number(_) => {
            if let Some(number) = json_number(value) {
                metrics.put(at, number)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
    Ok(())
}

/// Reads the named groups.
pub(super) fn regex_groups(options: &Options, output: &Output) -> Result<Metrics, Invalid> {
    let Some(regex) = &options.regex else {
        return Err(Invalid::because("no regular expression is given: set `regex` with named groups"));
    };
    let text = lossy(&output.stdout);
    let mut metrics = Metrics::default();
    for found in regex.captures_iter(&text) {
        for name in regex.capture_names().flatten() {
            let Some(group) = found.name(name) else { continue };
            let value = decimal(group.as_str().trim()).ok_or_else(|| {
                Invalid::because(format!(
                    "the group {name:?} matched {}, which is no number",
                    excerpt(group.as_str())
                ))
            })?;
            if metrics.get(name).is_some() {
                return Err(Invalid::because(format!(
                    "the group {name:?} matches more than once: write the regex so that it fits one place only"
                )));
            }
            metrics.put(name, value)?;
        }
    }
    if metrics.is_empty() {
        Err(Invalid::because("the regular expression matches nowhere"))
    } else {
        Ok(metrics)
    }
}

/// Reads the columns of one row.
pub(super) fn csv_columns(options: &Options, output: &Output) -> Result<Metrics, Invalid> {
    let broken = |error: csv::Error| Invalid::because(format!("the CSV cannot be read: {error}"));
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(options.separator)
        .trim(csv::Trim::All)
        .from_reader(output.stdout.as_slice());
    let names = reader.headers().map_err(broken)?.clone();
    let column = |wanted: &str| {
        let mut at = names.iter().enumerate().filter(|(_, name)| *name == wanted).map(|(at, _)| at);
        match (at.next(), at.next()) {
            (Some(at), None) => Ok(Some(at)),
            (Some(_), Some(_)) => Err(Invalid::because(format!("two columns are called {wanted:?}"))),
            (None, _) => Ok(None),
        }
    };
    let key = match &options.row {
        Some((name, value)) => {
            let at = column(name)?.ok_or_else(|| {
                Invalid::because(format!(
                    "no column {name:?} by which to find the row; columns: {}",
                    listed(&names)
                ))
            })?;
            Some((at, value))
        }
        None => None,
    };
    let mut row = None;
    for record in reader.records() {
        let record = record.map_err(broken)?;
        if key.is_none_or(|(at, value)| record.get(at) == Some(value.as_str()))
            && row.replace(record).is_some()
        {
            return Err(Invalid::because(
                "more than one row fits: set `row` to \"COLUMN=VALUE\" that only one has",
            ));
        }
    }
    let row = row.ok_or_else(|| Invalid::because("no row below the names of the columns fits"))?;
    let mut metrics = Metrics::default();
    if options.places.is_empty() {
        for (name, value) in names.iter().zip(row.iter()) {
            if let Some(value) = decimal(value) {
                metrics.put(name, value)?;
            }
        }
    }
    for (name, wanted) in &options.places {
        let Some(text) = column(wanted)?.and_then(|at| row.get(at)) else {
            metrics.note(format!("no column {wanted:?}; columns: {}", listed(&names)));
            continue;
        };
        let value = decimal(text).ok_or_else(|| {
            Invalid::because(format!("the column {wanted:?} holds {}, which is no number", excerpt(text)))
        })?;
        metrics.put(name, value)?;
    }
    Ok(metrics)
}

fn listed(names: &csv::StringRecord) -> String {
    let names: Vec<&str> = names.iter().take(20).collect();
    excerpt(&names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Parser, Reader};
    use std::collections::BTreeMap;

    fn output(stdout: &str) -> Output {
        Output { stdout: stdout.as_bytes().to_vec(), ..Output::default() }
    }

    fn options(places: &[(&str, &str)]) -> Options {
        let places = places.iter().map(|(name, at)| ((*name).to_owned(), (*at).to_owned())).collect();
        Options { places, ..Options::default() }
    }

    #[test]
    fn json_is_read_by_pointer_under_its_own_name_or_the_profiles() {
        let document = output("talk\n{\"a\": {\"b~/c\": [1, \"2.5\"]}, \"n\": null}\n");
        let reader = Reader::new(Parser::Json, options(&[("tps", "/a/b~0~1c/1"), ("gone", "/x")]));
        assert_eq!(reader.parse("tps", &document), Ok(BTreeMap::from([("tps".to_owned(), 2.5)])));
        let reason = reader.parse("gone", &document).expect_err("is not there").reason;
        assert_eq!(reason, "no metric \"gone\" in it; nothing at /x; seen: tps");
        let plain = Reader::new(Parser::Json, Options::default());
        assert_eq!(plain.parse("/a/b~0~1c/0", &document).map(|m| m["/a/b~0~1c/0"]), Ok(1.0));
        assert_eq!(plain.read(&document).map(|m| m.values().len()), Ok(1), "numbers only are listed");
        assert!(plain.parse("/n", &document).is_err(), "null is not 0");
        assert!(plain.read(&output("{\"a\": 1")).is_err(), "a cut document has no value");
    }

    #[test]
    fn each_named_group_matches_once_or_the_run_is_invalid() {
        let regex = regex::Regex::new(r"tps: (?P<tps>\S+)|lat: (?P<lat>\S+)").expect("a sound pattern");
        let reader = Reader::new(Parser::Regex, Options { regex: Some(regex), ..Options::default() });
        let both = reader.parse("tps", &output("tps: 12.5\nlat: 3\n")).expect("both are there");
        assert_eq!((both["tps"], both["lat"]), (12.5, 3.0));
        for text in ["", "tps: nan\n", "tps: 1\ntps: 1\n", "lat: 3\n"] {
            assert!(reader.parse("tps", &output(text)).is_err(), "{text:?}");
        }
    }

    #[test]
    fn csv_is_read_by_column_from_the_one_row_that_is_meant() {
        let table = output("tasks;ops;name\n1;10;a\n2;19;b\n");
        let mut wanted = options(&[("ops_per_s", "ops")]);
        wanted.separator = b';';
        let reason =
            Reader::new(Parser::Csv, wanted.clone()).parse("ops_per_s", &table).expect_err("two rows").reason;
        assert!(reason.contains("more than one row"), "{reason}");
        wanted.row = Some(("tasks".to_owned(), "2".to_owned()));
        assert_eq!(
            Reader::new(Parser::Csv, wanted).parse("ops_per_s", &table).map(|m| m["ops_per_s"]),
            Ok(19.0)
        );
        let plain = Reader::new(Parser::Csv, Options::default());
        assert_eq!(plain.parse("b", &output("a,b\nx,2\n")).map(|m| m["b"]), Ok(2.0));
        for text in ["", "a,b\n", "a,b\n1\n", "b,b\n1,2\n"] {
            assert!(plain.parse("b", &output(text)).is_err(), "{text:?}");
        }
    }
}
