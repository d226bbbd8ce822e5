//! `[workload]`: how what a run prints is read, and what follows for the judged metric.

use super::document::Plain;
use super::layers::Layers;
use super::value::{Read, filled, one_of, quoted, show_text, text, word};
use crate::model::{Direction, Metric};
use crate::session::{MachineSpec, Place, Reading};
use crate::workload::{Options, Parser, Reader, declared_of, parser_of, pattern_of, row_of, separator_of};

/// Table of the metrics that the profile describes.
const METRICS: &str = "workload.metrics";

/// Keys that only some parsers take, with these.
const TAKEN_BY: [(&str, &[&str]); 4] = [
    ("workload.regex", &["regex"]),
    ("workload.separator", &["csv"]),
    ("workload.row", &["csv"]),
    (METRICS, &["json", "csv"]),
];

/// Asks for the table.
pub(super) fn reading(l: &mut Layers) -> Reading {
    let parser = l.optional("workload.parser", parser_name, quoted).unwrap_or_default();
    let regex = l.optional("workload.regex", pattern, |pattern| show_text(pattern)).unwrap_or_default();
    let separator = l.optional("workload.separator", separator, |separator| format!("{separator:?}"));
    let row = l.optional("workload.row", row, quoted).unwrap_or_default();
    let at = if parser == "csv" { "column" } else { "pointer" };
    let mut reading = Reading { parser, regex, separator, row, ..Reading::default() };
    for name in l.named_tables(METRICS) {
        let table = format!("{METRICS}.{name}");
        let place = l.required(&format!("{table}.{at}"), None, if at == "column" { filled } else { pointer });
        let unit = l.optional(&format!("{table}.unit"), text, quoted).unwrap_or_default();
        let direction = l.optional(&format!("{table}.direction"), word, direction_shown);
        reading.metrics.insert(name, Place { at: place, unit, direction });
    }
    reading
}

fn parser_name(value: &Plain) -> Read<String> {
    let name = filled(value)?;
    let parsers = Parser::ALL.map(Parser::name);
    one_of(value, &parsers).map(str::to_owned).map_err(|reason| match Parser::nearest(&name) {
        Some(parser) => format!("is no parser; did you mean {:?}?", parser.name()),
        None => reason,
    })
}

fn pattern(value: &Plain) -> Read<String> {
    let pattern = filled(value)?;
    pattern_of(&pattern).map(|_| pattern)
}

fn row(value: &Plain) -> Read<String> {
    let row = filled(value)?;
    row_of(&row).map(|_| row)
}

fn separator(value: &Plain) -> Read<char> {
    separator_of(&text(value)?)
}

fn pointer(value: &Plain) -> Read<String> {
    let pointer = filled(value)?;
    if pointer.starts_with('/') {
        Ok(pointer)
    } else {
        Err("must be a JSON pointer, which starts with / (\"/end/sum/jitter_ms\")".to_owned())
    }
}

fn direction_shown(direction: &Direction) -> String {
    format!("{:?}", direction_word(*direction))
}

/// As a profile writes it.
pub(super) fn direction_word(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "higher",
        Direction::Lower => "lower",
    }
}

/// Values that are each right and do not fit together.
pub(super) fn contradictions(l: &mut Layers, metric: &Metric, reading: &Reading, machine: &MachineSpec) {
    let given = |reading: &Reading, key: &str| match key {
        METRICS => !reading.metrics.is_empty(),
        "workload.regex" => !reading.regex.is_empty(),
        "workload.row" => !reading.row.is_empty(),
        _ => reading.separator.is_some(),
    };
    for (key, takers) in TAKEN_BY {
        if given(reading, key) && !takers.contains(&reading.parser.as_str()) {
            let at = if key == METRICS { first_place(reading) } else { key.to_owned() };
            let named: Vec<String> = takers.iter().map(|taker| format!("{taker:?}")).collect();
            let message = format!("`{key}` goes with workload.parser = {}", named.join(" or "));
            l.contradiction(&at, message, "remove it, or set `parser` in [workload]");
        }
    }
    if reading.parser == "regex" && reading.regex.is_empty() {
        let message = "the parser \"regex\" needs `workload.regex`".to_owned();
        l.contradiction("workload.parser", message, "set `regex = '(?P<tps>[0-9.]+) per sec'` in [workload]");
        return;
    }
    if !reading.parser.is_empty() && l.is_given("machine.parser") {
        let message = "`machine.parser` and `workload.parser` are both set".to_owned();
        l.contradiction("machine.parser", message, "remove one of them");
    }
    judged(l, metric, reading, machine);
}

fn first_place(reading: &Reading) -> String {
    let name = reading.metrics.keys().next().map_or("", String::as_str);
    format!("{METRICS}.{name}.pointer")
}

/// Whether a unit is the declared one ("us"), or one of several that an option chooses between ("us (ns with -N)").
fn fits(unit: &str, declared: &str) -> bool {
    let of_several = declared.contains('(') && declared.split([' ', '(', ')']).any(|word| word == unit);
    declared.is_empty() || unit == declared || (of_several && !unit.is_empty())
}

/// What is judged is reported, and better the way the parser says.
fn judged(l: &mut Layers, metric: &Metric, reading: &Reading, machine: &MachineSpec) {
    let Some(parser) = parser_of(reading, machine) else { return };
    let reports = match Reader::of(reading) {
        Ok(Some(reader)) => reader.reports(&metric.name),
        // Of a parser of the machine nothing more is said.
        Ok(None) | Err(_) => Reader::new(parser, Options::default()).reports(&metric.name),
    };
    if !reports {
        let message = format!("the parser {:?} does not report the metric {:?}", parser.name(), metric.name);
        let help = if reading.parser.is_empty() {
            "judge a metric that it reports, or set `parser = \"number\"` in [machine]"
        } else if parser.is_told() {
            "judge a metric that it is told of, or say where this one stands (in [workload])"
        } else {
            "judge a metric that it reports: docs/parsers.md lists them, `sched-bisect parse` shows those of an output"
        };
        l.contradiction("metric.name", message, help);
        return;
    }
    let (unit, direction) = declared_of(reading, machine, &metric.name);
    // A value is recorded as it is read: under another unit a report would be wrong by its factor.
    if !fits(&metric.unit, &unit) {
        let message =
            format!("`metric.unit` is {:?}, but {:?} is read in {unit:?}", metric.unit, metric.name);
        l.contradiction(
            "metric.unit",
            message,
            "remove it: the parser knows the unit, and nothing is converted",
        );
    }
    if let Some(direction) = direction.filter(|direction| *direction != metric.direction) {
        let message = format!(
            "`metric.direction` is {:?}, but of {:?} {direction}",
            direction_word(metric.direction),
            metric.name
        );
        l.contradiction(
            "metric.direction",
            message,
            "remove it; to look for a gain set `find = \"improvement\"`",
        );
    }
}
