//! A profile's text as flat, positioned values: "judging.boots" and where it stands.

use super::problem::{Place, Problem};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plain {
    /// A TOML string.
    Text(String),
    /// Typed on the command line: the type is in the eye of the key.
    Argument(String),
    /// A TOML integer; `None`: too large for any use.
    Integer(Option<i64>),
    /// A TOML float.
    Float(f64),
    /// A TOML boolean.
    Flag(bool),
    /// A TOML array that holds no table.
    List(Vec<(Plain, Place)>),
    /// Any other TOML value, with the name of its type.
    Other(&'static str),
}

impl Plain {
    /// Its type, with article.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Argument(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Flag(_) => "a boolean",
            Self::List(_) => "an array",
            Self::Other(name) => name,
        }
    }
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// Position of the key.
    pub key: Range<usize>,
    /// Position of the value.
    pub place: Place,
    /// The value.
    pub value: Plain,
}

/// The whole profile.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// Values by dotted key; an element of an array of tables is `build.fixups[0]`.
    pub entries: BTreeMap<String, Entry>,
    /// Tables, and arrays of tables, by dotted key: the position of the key.
    pub tables: BTreeMap<String, Range<usize>>,
    /// Number of elements of each array of tables.
    pub lengths: BTreeMap<String, usize>,
}

impl Document {
    /// Parses TOML.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let table = DeTable::parse(text).map_err(|error| Problem {
            place: error.span().map_or(Place::Whole, |span| Place::of(&span)),
            message: format!("not TOML: {}", error.message()),
            help: None,
        })?;
        let mut document = Self::default();
        document.flatten("", table.get_ref());
        Ok(document)
    }

    fn flatten(&mut self, prefix: &str, table: &DeTable) {
        for (key, value) in table {
            let path = if prefix.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{prefix}.{}", key.get_ref())
            };
            self.put(path, key.span(), value);
        }
    }

    fn put(&mut self, path: String, key: Range<usize>, value: &Spanned<DeValue>) {
        if let DeValue::Table(table) = value.get_ref() {
            self.flatten(&path, table);
            self.tables.insert(path, key);
            return;
        }
        if let DeValue::Array(array) = value.get_ref()
            && !array.is_empty()
            && array.iter().all(|element| element.get_ref().is_table())
        {
            for (at, element) in array.iter().enumerate() {
                self.put(format!("{path}[{at}]"), element.span(), element);
            }
            self.lengths.insert(path.clone(), array.len());
            self.tables.insert(path, key);
            return;
        }
        self.entries
            .insert(path, Entry { key, place: Place::of(&value.span()), value: plain(value.get_ref()) });
    }
}

fn plain(value: &DeValue) -> Plain {
    match value {
        DeValue::String(text) => Plain::Text(text.to_string()),
        DeValue::Integer(number) => Plain::Integer(i64::from_str_radix(number.as_str(), number.radix()).ok()),
        // The TOML parser has seen to the form; what still overflows is infinite, and refused as such.
        DeValue::Float(number) => Plain::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Array(array) => Plain::List(
            array.iter().map(|element| (plain(element.get_ref()), Place::of(&element.span()))).collect(),
        ),
        DeValue::Boolean(flag) => Plain::Flag(*flag),
        DeValue::Datetime(_) => Plain::Other("a date"),
        DeValue::Table(_) => Plain::Other("a table"),
    }
}
