//! What was read from one output, and why a value is not among it.

use super::Invalid;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// More values than any benchmark reports: an output that seems to hold them is something else.
const MANY: usize = 20_000;

/// Names that a reason lists.
const LISTED: usize = 30;

/// Values by metric name, each finite; and remarks on what could not be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metrics {
    values: BTreeMap<String, f64>,
    notes: Vec<String>,
}

impl Metrics {
    /// The values.
    pub fn values(&self) -> &BTreeMap<String, f64> {
        &self.values
    }

    /// The values alone.
    pub fn into_values(self) -> BTreeMap<String, f64> {
        self.values
    }

    /// Why something that one could expect is missing, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(super) fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    /// Adds a value. Two different ones under one name make the run invalid: which of them is the run's, nobody knows.
    pub(super) fn put(&mut self, name: impl Into<String>, value: f64) -> Result<(), Invalid> {
        let name = name.into();
        if !value.is_finite() {
            return Err(Invalid::because(format!("{name:?} is not a finite number")));
        }
        if self.values.len() >= MANY {
            return Err(Invalid::because(format!("it holds more than {MANY} values")));
        }
        match self.values.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(value);
                Ok(())
            }
            Entry::Occupied(entry) if *entry.get() == value => Ok(()),
            Entry::Occupied(entry) => Err(Invalid::because(format!(
                "{:?} is there twice, as {} and as {value}: one run is one benchmark",
                entry.key(),
                entry.get()
            ))),
        }
    }

    /// Sets a value that stands for all before it (interval output: the last counts).
    pub(super) fn replace(&mut self, name: impl Into<String>, value: f64) -> Result<(), Invalid> {
        let name = name.into();
        self.values.remove(&name);
        self.put(name, value)
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if self.notes.len() < LISTED && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Itself, if `judged` is among the values; else that it is missing, and what there is.
    pub(super) fn with(self, judged: &str) -> Result<Self, Invalid> {
        if self.values.contains_key(judged) {
            return Ok(self);
        }
        let names: Vec<&str> = self.values.keys().take(LISTED).map(String::as_str).collect();
        let more = match self.values.len().saturating_sub(LISTED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let seen = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let notes: String = self.notes.iter().map(|note| format!("; {note}")).collect();
        Err(Invalid::because(format!("no metric {judged:?} in it{notes}; seen: {seen}{more}")))
    }
}
