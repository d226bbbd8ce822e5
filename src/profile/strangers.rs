//! Keys of a profile that nothing asked for: what is said about each.

use super::layers::{Kinds, Layers};
use super::problem::Place;

impl Layers<'_> {
    /// Notes every key of the profile that nothing asked for.
    pub(super) fn unknown(&mut self) {
        let mut reported: Vec<String> = Vec::new();
        let tables = self.document.tables.iter().map(|(key, span)| (key.clone(), span.clone()));
        let entries = self.document.entries.iter().map(|(key, entry)| (key.clone(), entry.key.clone()));
        // Tables first: an unknown table is one problem, not one for each of its keys.
        let all: Vec<_> = tables.chain(entries).collect();
        for (key, span) in all {
            let inside = reported.iter().any(|table| {
                key.strip_prefix(table.as_str()).is_some_and(|rest| rest.starts_with(['.', '[']))
            });
            if inside || self.is_dropped(&key) || self.is_known(&key) {
                continue;
            }
            let (message, help) = self.stranger(&key);
            self.problem(Place::of(&span), message, help);
            reported.push(key);
        }
    }

    /// Whether `key` was asked for, or is a table in which something was.
    fn is_known(&self, key: &str) -> bool {
        if self.document.entries.contains_key(key) {
            return self.asked.contains(key);
        }
        let starts = |asked: &String| {
            asked.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.asked.iter().any(starts)
    }

    /// What to say about a key that nothing asked for.
    fn stranger(&self, key: &str) -> (String, Option<String>) {
        for kinds in &self.kinds {
            let Some(rest) = key.strip_prefix(kinds.table).and_then(|rest| rest.strip_prefix('.')) else {
                continue;
            };
            let leaf = rest.split(['.', '[']).next().unwrap_or_default();
            let Kinds { table, kind: actual, keys } = kinds;
            let mut theirs = keys.iter().filter(|(_, keys)| keys.contains(&leaf));
            if let Some((kind, _)) = theirs.clone().next()
                && theirs.all(|(kind, _)| kind != actual)
            {
                let message = format!("`{key}` goes with {table}.kind = {kind:?}, but that is {actual:?}");
                return (message, Some(format!("remove it, or set `kind = {kind:?}` in [{table}]")));
            }
        }
        let starts = |asked: &&String| asked.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        if self.asked.iter().any(|asked| starts(&asked)) {
            return (
                format!("`{key}` is a table, not a value"),
                Some(format!("write [{key}] on a line of its own")),
            );
        }
        let help = match self.nearest(key) {
            Some(known) => format!("did you mean `{known}`?"),
            None => format!("known here: {}", self.siblings(key).join(", ")),
        };
        (format!("unknown key `{key}`"), Some(help))
    }

    /// The known key that is most like `key`: written alike in the same table, or the same in another one.
    fn nearest(&self, key: &str) -> Option<&str> {
        /// Below this likeness (Jaro-Winkler, 0 to 1) a suggestion is more confusing than none.
        const ALIKE: f64 = 0.85;
        /// A typing error keeps the table, so a key of another one must be more alike.
        const ELSEWHERE: f64 = 0.05;
        let (table, leaf) = key.rsplit_once('.').unwrap_or(("", key));
        let likeness = |known: &str| {
            let (its_table, its_leaf) = known.rsplit_once('.').unwrap_or(("", known));
            if its_table == table {
                strsim::jaro_winkler(leaf, its_leaf)
            } else if its_leaf == leaf {
                ALIKE
            } else {
                strsim::jaro_winkler(key, known) - ELSEWHERE
            }
        };
        let tables = self.asked.iter().filter_map(|asked| asked.rsplit_once('.').map(|(table, _)| table));
        let keys = self.asked.iter().map(String::as_str).chain(tables);
        let best = keys.map(|known| (likeness(known), known)).max_by(|a, b| a.0.total_cmp(&b.0));
        best.filter(|(likeness, _)| *likeness >= ALIKE).map(|(_, known)| known)
    }

    fn siblings(&self, key: &str) -> Vec<&str> {
        let table = key.rsplit_once('.').map_or("", |(table, _)| table);
        let mut siblings: Vec<&str> = Vec::new();
        for asked in &self.asked {
            let rest = if table.is_empty() {
                Some(asked.as_str())
            } else {
                asked.strip_prefix(table).and_then(|r| r.strip_prefix('.'))
            };
            if let Some(name) = rest.and_then(|rest| rest.split(['.', '[']).next())
                && !siblings.contains(&name)
            {
                siblings.push(name);
            }
        }
        siblings
    }
}
