//! The layers of a recipe, asked key by key: command line over profile over built-in default.
//!
//! Asking is also what makes a key known: whatever stands in the profile and was never asked for is a problem.

use super::Overrides;
use super::document::{Document, Entry, Plain};
use super::problem::{Place, Problem, ProfileError, invalid, position};
use super::source::Source;
use super::value::{Read, show_text};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Where a value is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// An embedded profile of this name.
    Profile(String),
    /// A profile file.
    File {
        /// Its path as given.
        file: String,
        /// Line, from 1.
        line: usize,
    },
    /// The command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Profile(name) => write!(f, "profile {name}"),
            Self::File { file, line } => write!(f, "file {file}:{line}"),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// A value of the recipe for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Dotted key ("judging.boots").
    pub key: String,
    /// The value as TOML writes it; of long text only its size.
    pub value: String,
    /// Where it is from.
    pub origin: Origin,
}

/// Order in which settings are shown, by the first part of the key.
const ORDER: [&str; 30] = [
    "name",
    "description",
    "why",
    "good",
    "bad",
    "paths",
    "find",
    "minimum_effect",
    "expected_effect",
    "confidence",
    "budget",
    "variant",
    "variants",
    "suts",
    "metric",
    "workload",
    "roles",
    "env",
    "steps",
    "settle",
    "canary",
    "saturation",
    "environment",
    "evidence",
    "judging",
    "costs",
    "attempts",
    "deadlines",
    "build",
    "machine",
];

/// A key that has no value and needs one.
struct Missing {
    key: String,
    flag: Option<&'static str>,
}

/// Keys of a table that belong to one `kind` of it only.
pub(super) struct Kinds {
    /// The table ("machine").
    pub table: &'static str,
    /// Its kind in effect.
    pub kind: &'static str,
    /// Kinds with their keys.
    pub keys: &'static [(&'static str, &'static [&'static str])],
}

/// The layers, and what was found in them so far.
pub(super) struct Layers<'s> {
    /// The profile.
    pub source: &'s Source,
    pub(super) document: Document,
    /// Whether the profile could be parsed; of one that could not, nothing is known to be missing.
    is_toml: bool,
    command_line: BTreeMap<String, (&'static str, Plain)>,
    /// Keys of the profile, or beginnings of keys, that the command line has made void.
    dropped: Vec<String>,
    pub(super) asked: BTreeSet<String>,
    pub(super) kinds: Vec<Kinds>,
    settings: Vec<Setting>,
    problems: Vec<Problem>,
    missing: Vec<Missing>,
}

impl<'s> Layers<'s> {
    /// The layers below the command line.
    pub fn new(source: &'s Source) -> Self {
        let mut problems = Vec::new();
        let document = Document::parse(&source.text).unwrap_or_else(|problem| {
            problems.push(problem);
            Document::default()
        });
        Self {
            source,
            document,
            is_toml: problems.is_empty(),
            command_line: BTreeMap::new(),
            dropped: Vec::new(),
            asked: BTreeSet::new(),
            kinds: Vec::new(),
            settings: Vec::new(),
            problems,
            missing: Vec::new(),
        }
    }

    /// Lays the command line over the profile.
    pub fn command_line(&mut self, given: &Overrides) {
        let flags: [(&str, &'static str, &Option<String>); 14] = [
            ("find", "--find", &given.find),
            ("minimum_effect", "--minimum-effect", &given.minimum_effect),
            ("expected_effect", "--expect", &given.expected_effect),
            ("confidence", "--confidence", &given.confidence),
            ("budget", "--budget", &given.budget),
            ("variant", "--variant", &given.variant),
            ("good", "--good", &given.good),
            ("bad", "--bad", &given.bad),
            ("metric.name", "--metric", &given.metric),
            ("metric.direction", "--direction", &given.direction),
            ("build.command", "--build", &given.build),
            ("machine.boot", "--boot", &given.boot),
            ("machine.run", "--run", &given.run),
            ("workload.parser", "--parser", &given.parser),
        ];
        for (key, flag, value) in flags {
            if let Some(value) = value {
                self.put(key, flag, Plain::Argument(value.clone()));
            }
        }
        if given.variant.is_some() {
            // The profile's list begins with another.
            self.dropped.push("variants".to_owned());
        }
        if !given.also.is_empty() {
            let also = |value: &String| {
                let place = Place::CommandLine { flag: "--variant", value: value.clone() };
                (Plain::Argument(value.clone()), place)
            };
            self.put("variants", "--variant", Plain::List(given.also.iter().map(also).collect()));
        }
        for (table, flag, pairs) in [("roles", "--role", &given.roles), ("env", "--env", &given.env)] {
            for pair in pairs {
                match pair.split_once('=') {
                    Some((name, value)) if !name.is_empty() => {
                        self.put(&format!("{table}.{name}"), flag, Plain::Argument(value.to_owned()));
                    }
                    Some(_) | None => {
                        let place = Place::CommandLine { flag, value: pair.clone() };
                        let help = Some(format!("write it as {flag} NAME=VALUE"));
                        self.problem(place, "has no name with its value".to_owned(), help);
                    }
                }
            }
        }
        if !given.paths.is_empty() {
            let path = |value: &String| {
                let place = Place::CommandLine { flag: "--path", value: value.clone() };
                (Plain::Argument(value.clone()), place)
            };
            self.put("paths", "--path", Plain::List(given.paths.iter().map(path).collect()));
        }
        self.switch_to_commands(given);
        if given.parser.is_some() {
            self.dropped.push("machine.parser".to_owned());
            if self.profile_says("workload.parser") != given.parser.as_deref() {
                self.dropped.push("workload.".to_owned());
            }
        }
        // Unit and direction are those of the metric that the profile names.
        if given.metric.as_deref().is_some_and(|name| self.profile_says("metric.name") != Some(name)) {
            self.dropped.extend(["metric.unit", "metric.direction"].map(str::to_owned));
        }
    }

    /// A command on the command line replaces what the profile has of another kind, as a whole.
    fn switch_to_commands(&mut self, given: &Overrides) {
        let command = || Plain::Argument("command".to_owned());
        if given.build.is_some() {
            if self.profile_says("build.kind").is_some_and(|kind| kind != "command") {
                self.dropped.push("build.".to_owned());
            }
            self.put("build.kind", "--build", command());
        }
        let flag = if given.run.is_some() { "--run" } else { "--boot" };
        if given.run.is_some() || given.boot.is_some() {
            if self.profile_says("machine.kind").is_some_and(|kind| kind != "command") {
                // What another command prints is read in another way, too.
                self.dropped.extend(["machine.", "workload."].map(str::to_owned));
            }
            self.put("machine.kind", flag, command());
        }
    }

    fn put(&mut self, key: &str, flag: &'static str, value: Plain) {
        self.command_line.insert(key.to_owned(), (flag, value));
    }

    fn profile_says(&self, key: &str) -> Option<&str> {
        match &self.document.entries.get(key)?.value {
            Plain::Text(text) => Some(text),
            Plain::Argument(_)
            | Plain::Integer(_)
            | Plain::Float(_)
            | Plain::Flag(_)
            | Plain::List(_)
            | Plain::Other(_) => None,
        }
    }

    pub(super) fn is_dropped(&self, key: &str) -> bool {
        self.dropped
            .iter()
            .any(|dropped| key == dropped || dropped.ends_with('.') && key.starts_with(dropped))
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        if self.is_dropped(key) { None } else { self.document.entries.get(key) }
    }

    /// The value in effect, below it the place and origin.
    fn effective(&self, key: &str) -> Option<(Plain, Place, Origin)> {
        if let Some((flag, value)) = self.command_line.get(key) {
            let typed = match value {
                Plain::Argument(text) | Plain::Text(text) => text.clone(),
                Plain::List(list) => {
                    let text = |(value, _): &(Plain, Place)| match value {
                        Plain::Argument(text) | Plain::Text(text) => Some(text.clone()),
                        Plain::List(_)
                        | Plain::Integer(_)
                        | Plain::Float(_)
                        | Plain::Flag(_)
                        | Plain::Other(_) => None,
                    };
                    list.iter().filter_map(text).collect::<Vec<String>>().join(", ")
                }
                Plain::Integer(_) | Plain::Float(_) | Plain::Flag(_) | Plain::Other(_) => String::new(),
            };
            let place = Place::CommandLine { flag, value: typed };
            return Some((value.clone(), place, Origin::CommandLine));
        }
        let entry = self.entry(key)?;
        let origin = if self.source.is_embedded() {
            Origin::Profile(self.source.default_name.clone())
        } else {
            let (line, _, _) = position(&self.source.text, entry.key.start);
            Origin::File { file: self.source.label.clone(), line }
        };
        Some((entry.value.clone(), entry.place.clone(), origin))
    }

    /// The value of `key`, where there is one and it can be read. An unreadable one is noted as a problem.
    pub fn optional<T>(
        &mut self,
        key: &str,
        read: impl Fn(&Plain) -> Read<T>,
        show: impl Fn(&T) -> String,
    ) -> Option<T> {
        self.asked.insert(key.to_owned());
        let (value, place, origin) = self.effective(key)?;
        match read(&value) {
            Ok(value) => {
                self.settings.push(Setting { key: key.to_owned(), value: show(&value), origin });
                Some(value)
            }
            Err(message) => {
                self.problem(place, format!("`{key}` {message}"), None);
                None
            }
        }
    }

    /// The value of `key`, else `default`.
    pub fn or<T>(
        &mut self,
        key: &str,
        default: T,
        read: impl Fn(&Plain) -> Read<T>,
        show: impl Fn(&T) -> String,
    ) -> T {
        let found = self.optional(key, read, &show);
        found.unwrap_or_else(|| {
            self.settings.push(Setting {
                key: key.to_owned(),
                value: show(&default),
                origin: Origin::Default,
            });
            default
        })
    }

    /// Shows what it means that `key` has no value, if it has none.
    pub fn unset(&mut self, key: &str, meaning: &str) {
        if !self.is_given(key) {
            let value = format!("({meaning})");
            self.settings.push(Setting { key: key.to_owned(), value, origin: Origin::Default });
        }
    }

    /// The text of `key`, which must be given, here or by `flag`.
    pub fn required(
        &mut self,
        key: &str,
        flag: Option<&'static str>,
        read: impl Fn(&Plain) -> Read<String>,
    ) -> String {
        let found = self.optional(key, read, |text| show_text(text));
        if found.is_none() && self.effective(key).is_none() {
            self.need(key, flag);
        }
        found.unwrap_or_default()
    }

    /// Notes that `key` must be given.
    pub fn need(&mut self, key: &str, flag: Option<&'static str>) {
        if self.missing.iter().all(|missing| missing.key != key) {
            self.missing.push(Missing { key: key.to_owned(), flag });
        }
    }

    /// A list of texts that are not blank; each problem stands at its element.
    pub fn list(&mut self, key: &str, default: &[&str]) -> Vec<String> {
        let elements = self.optional(key, elements, |list| {
            let texts: Vec<&Plain> = list.iter().map(|(value, _)| value).collect();
            show_list(&texts)
        });
        let Some(elements) = elements else {
            let default: Vec<String> = default.iter().map(|&text| text.to_owned()).collect();
            if self.effective(key).is_none() {
                let value = format!("{default:?}");
                self.settings.push(Setting { key: key.to_owned(), value, origin: Origin::Default });
            }
            return default;
        };
        let mut texts = Vec::new();
        for (value, place) in elements {
            match super::value::filled(&value) {
                Ok(text) => texts.push(text),
                Err(message) => self.problem(place, format!("an element of `{key}` {message}"), None),
            }
        }
        texts
    }

    /// As [`Layers::list`], but what is not given is empty and not shown.
    pub fn given_list(&mut self, key: &str) -> Vec<String> {
        self.asked.insert(key.to_owned());
        if self.is_given(key) { self.list(key, &[]) } else { Vec::new() }
    }

    /// Keys of the values in `table`, as they stand behind its name.
    pub fn keys_under(&mut self, table: &str) -> Vec<String> {
        // So that the command line may name keys in it, and the profile a table without any.
        self.asked.insert(table.to_owned());
        let prefix = format!("{table}.");
        let inside = self.document.entries.keys().filter(|key| !self.is_dropped(key));
        let all = inside.chain(self.command_line.keys());
        let keys: BTreeSet<String> =
            all.filter_map(|key| Some(key.strip_prefix(&prefix)?.to_owned())).collect();
        keys.into_iter().collect()
    }

    /// Names of the tables right under `table`, sorted.
    pub fn tables_under(&mut self, table: &str) -> Vec<String> {
        let prefix = format!("{table}.");
        let inside = self.document.tables.keys().filter(|key| !self.is_dropped(key));
        let names = inside.filter_map(|key| key.strip_prefix(&prefix)?.split('.').next().map(str::to_owned));
        let names: BTreeSet<String> = names.collect();
        self.asked.extend(names.iter().map(|name| format!("{prefix}{name}")));
        names.into_iter().collect()
    }

    /// Notes a problem with a table itself.
    pub fn table_problem(&mut self, table: &str, message: String) {
        let place = self.document.tables.get(table).map_or(Place::Whole, Place::of);
        self.problem(place, message, None);
    }

    /// Number of elements of an array of tables.
    pub fn tables(&mut self, key: &str) -> usize {
        self.asked.insert(key.to_owned());
        if let Some(entry) = self.entry(key)
            && entry.value != Plain::List(Vec::new())
        {
            let place = entry.place.clone();
            self.problem(place, format!("`{key}` takes tables, each under [[{key}]]"), None);
        }
        if self.is_dropped(key) { 0 } else { self.document.lengths.get(key).copied().unwrap_or(0) }
    }

    /// Names of the tables under `table`, sorted, each once. A name may hold dots.
    pub fn named_tables(&self, table: &str) -> Vec<String> {
        let prefix = format!("{table}.");
        let inside = self.document.entries.keys().filter(|key| !self.is_dropped(key));
        let names = inside.filter_map(|key| Some(key.strip_prefix(&prefix)?.rsplit_once('.')?.0.to_owned()));
        names.collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// Says which keys of a table belong to which of its kinds.
    pub fn kinds(&mut self, kinds: Kinds) {
        self.kinds.push(kinds);
    }

    /// Leaves the profile's keys of a table unread.
    pub fn ignore(&mut self, table: &str) {
        self.dropped.push(format!("{table}."));
    }

    /// Whether nothing was wrong so far.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// Whether a value stands for `key` above the defaults.
    pub fn is_given(&self, key: &str) -> bool {
        self.effective(key).is_some()
    }

    /// Notes a problem with the value in effect of `key`.
    pub fn contradiction(&mut self, key: &str, message: String, help: &str) {
        let place = self.effective(key).map_or(Place::Whole, |(_, place, _)| place);
        self.problem(place, message, Some(help.to_owned()));
    }

    pub(super) fn problem(&mut self, place: Place, message: String, help: Option<String>) {
        self.problems.push(Problem { place, message, help });
    }

    /// What the command line still has to give.
    pub fn needs(&self) -> Vec<String> {
        let shown = |missing: &Missing| match missing.flag {
            Some(flag) => format!("{} ({flag})", missing.key),
            None => missing.key.clone(),
        };
        self.missing.iter().map(shown).collect()
    }

    /// All settings, or all problems; what is missing is one where `complete` is asked for.
    pub fn finish(mut self, complete: bool) -> Result<Vec<Setting>, ProfileError> {
        if self.is_toml {
            self.unknown();
            // A value that no flag can give is missing for good.
            let missing = std::mem::take(&mut self.missing);
            for missing in missing.iter().filter(|missing| complete || missing.flag.is_none()) {
                self.report_missing(missing);
            }
        }
        if !self.problems.is_empty() {
            return Err(invalid(&self.source.label, &self.source.text, self.problems));
        }
        let rank = |setting: &Setting| {
            let first = setting.key.split('.').next().unwrap_or_default();
            ORDER.iter().position(|name| *name == first).unwrap_or(ORDER.len())
        };
        self.settings.sort_by_key(rank);
        Ok(self.settings)
    }

    fn report_missing(&mut self, missing: &Missing) {
        let (table, leaf) = missing.key.rsplit_once('.').unwrap_or(("", &missing.key));
        let in_file = match (self.source.is_embedded(), table) {
            (true, _) => None,
            (false, "") => Some(format!("add `{leaf} = ...` to {}", self.source.label)),
            (false, table) => Some(format!("add `{leaf} = ...` to [{table}] of {}", self.source.label)),
        };
        let by_flag = missing.flag.map(|flag| format!("give {flag}"));
        let help: Vec<String> = in_file.into_iter().chain(by_flag).collect();
        if self.document.entries.contains_key(table) {
            // It is a value where a table should be; that is reported.
            return;
        }
        let seen = !self.source.is_embedded() && !self.is_dropped(&missing.key);
        let header = self.document.tables.get(table).filter(|_| seen);
        let place = header.map_or(Place::Whole, Place::of);
        self.problem(place, format!("`{}` is not set", missing.key), Some(help.join(", or ")));
    }
}

fn elements(value: &Plain) -> Read<Vec<(Plain, Place)>> {
    match value {
        Plain::List(list) => Ok(list.clone()),
        Plain::Text(_)
        | Plain::Argument(_)
        | Plain::Integer(_)
        | Plain::Float(_)
        | Plain::Flag(_)
        | Plain::Other(_) => Err(format!("takes an array of strings, not {}", value.type_name())),
    }
}

fn show_list(values: &[&Plain]) -> String {
    let texts: Vec<String> = values.iter().filter_map(|value| super::value::text(value).ok()).collect();
    format!("{texts:?}")
}
