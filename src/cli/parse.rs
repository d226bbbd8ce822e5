//! `parse`: what a parser reads from an output, so that it can be checked before a session of hours.

use super::args::{Format, Parse};
use super::{CliError, exit, print};
use crate::report::say;
use crate::session::Reading;
use crate::workload::{Declared, Invalid, Metrics, Output, Parser, Reader, separator_of};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::Read;
use std::path::Path;

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// Runs it. Exit status 11 when the output has no usable numbers.
pub(super) fn run(wanted: &Parse) -> Result<u8, CliError> {
    let Some(name) = &wanted.parser else {
        print(&list(wanted.format))?;
        return Ok(exit::DONE);
    };
    let parser = Parser::named(name).ok_or_else(|| CliError::Usage(unknown(name)))?;
    let Some(file) = &wanted.file else {
        print(&describe(parser, wanted.format))?;
        return Ok(exit::DONE);
    };
    let wrong = |reason| CliError::Usage(format!("use parser {name:?}: its option {reason}"));
    let reading = Reading {
        parser: name.clone(),
        regex: wanted.regex.clone().unwrap_or_default(),
        separator: wanted.separator.as_deref().map(separator_of).transpose().map_err(wrong)?,
        row: wanted.row.clone().unwrap_or_default(),
        ..Reading::default()
    };
    let reader = Reader::of(&reading).map_err(wrong)?.expect("it names a parser");
    let output = Output {
        stdout: bytes(file)?,
        stderr: wanted.stderr.as_deref().map_or(Ok(Vec::new()), bytes)?,
        status: wanted.status,
    };
    let read = match &wanted.metric {
        None => reader.read(&output),
        Some(metric) => reader.judge(metric, &output),
    };
    print(&match wanted.format {
        Format::Text => text(parser, wanted.metric.as_deref(), read.as_ref()),
        Format::Json => as_json(parser, wanted.metric.as_deref(), read.as_ref()),
    })?;
    match read {
        Ok(metrics) => {
            for note in metrics.notes() {
                say(&format!("note: {note}"));
            }
            Ok(exit::DONE)
        }
        Err(invalid) => {
            say(&format!("invalid run: {invalid}"));
            Ok(exit::NOT_MEASURABLE)
        }
    }
}

fn unknown(name: &str) -> String {
    match Parser::nearest(name) {
        Some(parser) => format!("find parser {name:?}: there is none of that name; did you mean {parser}?"),
        None => format!(
            "find parser {name:?}: there is none of that name; there are {}",
            Parser::ALL.map(Parser::name).join(", ")
        ),
    }
}

/// A file, or standard input for "-".
fn bytes(file: &Path) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    // What cannot be read is for the user to mend, like any other argument.
    read.map_err(|error| CliError::Usage(format!("read {}: {error}", file.display())))
}

fn direction(declared: Option<&Declared>) -> &'static str {
    match declared.and_then(|declared| declared.direction) {
        Some(crate::model::Direction::Higher) => "higher",
        Some(crate::model::Direction::Lower) => "lower",
        None => "-",
    }
}

/// The judged metric first, then "also seen"; without one, all.
fn text(parser: Parser, metric: Option<&str>, read: Result<&Metrics, &Invalid>) -> String {
    let Ok(metrics) = read else { return String::new() };
    let width = metrics.values().keys().map(|name| name.chars().count()).max().unwrap_or(0);
    let line = |(name, value): (&String, &f64)| {
        let declared = parser.declared(name);
        let unit = declared.map_or("", |declared| declared.unit);
        let better = direction(declared);
        format!("{name:width$}  {value:>16}  {better:6}  {unit}\n")
    };
    let mut out = String::new();
    let others = match metric.and_then(|metric| metrics.values().get_key_value(metric)) {
        Some(judged) => {
            out.push_str(&line(judged));
            let others: Vec<_> = metrics.values().iter().filter(|(name, _)| *name != judged.0).collect();
            if !others.is_empty() {
                out.push_str("also seen:\n");
            }
            others
        }
        None => metrics.values().iter().collect(),
    };
    out.extend(others.into_iter().map(line));
    out
}

fn as_json(parser: Parser, metric: Option<&str>, read: Result<&Metrics, &Invalid>) -> String {
    let document = match read {
        Ok(metrics) => {
            let each = metrics.values().iter().map(|(name, value)| {
                let declared = parser.declared(name);
                let unit = declared.map(|declared| declared.unit);
                let direction = declared.and_then(|declared| declared.direction);
                (name.clone(), json!({"value": value, "unit": unit, "direction": direction}))
            });
            let each: serde_json::Map<String, Value> = each.collect();
            json!({"schema": SCHEMA, "parser": parser.name(), "judged": metric, "metrics": each, "notes": metrics.notes()})
        }
        Err(invalid) => {
            json!({"schema": SCHEMA, "parser": parser.name(), "judged": metric, "invalid": invalid.reason})
        }
    };
    format!("{document:#}\n")
}

/// All parsers, one a line.
fn list(format: Format) -> String {
    match format {
        Format::Text => {
            Parser::ALL.iter().map(|parser| format!("{:<14} {}\n", parser.name(), parser.reads())).collect()
        }
        Format::Json => {
            let each: Vec<Value> = Parser::ALL
                .iter()
                .map(|parser| json!({"name": parser.name(), "reads": parser.reads()}))
                .collect();
            format!("{:#}\n", json!({"schema": SCHEMA, "parsers": each}))
        }
    }
}

/// What a parser can report.
fn describe(parser: Parser, format: Format) -> String {
    match format {
        Format::Text => {
            let mut out = format!("{}: {}\n", parser.name(), parser.reads());
            for declared in parser.metrics() {
                let better = direction(Some(declared));
                writeln!(out, "{:30} {better:6} {}; {}", declared.name, declared.unit, declared.about)
                    .expect("a String takes any text");
            }
            out
        }
        Format::Json => {
            let each: Vec<Value> = parser
                .metrics()
                .iter()
                .map(|d| json!({"name": d.name, "unit": d.unit, "direction": d.direction, "about": d.about}))
                .collect();
            format!("{:#}\n", json!({"schema": SCHEMA, "parser": parser.name(), "declares": each}))
        }
    }
}
