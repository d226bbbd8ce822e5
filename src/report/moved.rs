//! What moved between two kernels under a variant, of all that was counted beside their runs.
//!
//! For a reader who asks why. Nothing is judged: hundreds of counters are looked at and the largest differences listed, so
//! some will stand out by chance; no part of the search or of a verdict rests on it. Means over boots (of runs, where a
//! kernel has one boot), ordered by difference over its standard error. That is at least what counting by chance leaves
//! (Poisson), and 0.1 % of the mean: a counter that never varied is not infinitely sure.

use super::environment::pair;
use crate::lab::stage::{ELAPSED, PERF, SCHEDSTAT};
use crate::model::{CommitId, Direction};
use crate::session::{Boot, Cell, Run, State};
use serde::Serialize;
use std::collections::BTreeSet;

/// Least standard error, as a part of the mean.
const LEAST: f64 = 1e-3;

/// Differences below this many standard errors are not listed in the text.
const LISTED_FROM: f64 = 3.0;

/// How many are.
const LISTED: usize = 12;

/// What moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MovedFacts {
    /// The culprit, or bad.
    pub commit: CommitId,
    /// Its parent, or good.
    pub against: CommitId,
    /// "run" (the work of a run is fixed) or "second".
    pub per: &'static str,
    /// Boots of both in which something was counted.
    pub boots: (usize, usize),
    /// Where it is from, or why there is none, of each kernel.
    pub from: Vec<String>,
    /// What was counted under both, the largest difference over its error first.
    pub rows: Vec<MovedRow>,
}

/// One counter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MovedRow {
    /// Its name.
    pub name: String,
    /// Mean of the commit.
    pub commit: f64,
    /// Mean of the other.
    pub against: f64,
    /// commit / against - 1; positive = more. `null` where the other counted nothing.
    pub change: Option<f64>,
    /// Difference over its standard error, signed; at least two boots or runs of each.
    pub over_error: f64,
}

/// What one kernel's runs counted.
struct Counted<'s> {
    /// By boot.
    boots: Vec<Vec<&'s Run>>,
}

impl<'s> Counted<'s> {
    fn of(state: &'s State, cell: &Cell) -> Self {
        let runs = |b: &'s Boot| -> Vec<&'s Run> {
            b.runs.iter().skip(state.warmup(b)).filter(|run| !run.evidence.is_empty()).collect()
        };
        Self { boots: cell.boots(state).map(runs).filter(|runs| !runs.is_empty()).collect() }
    }

    fn runs(&self) -> usize {
        self.boots.iter().map(Vec::len).sum()
    }

    /// Values of one counter that are independent of each other, each with the time or runs that it was counted over.
    fn values(&self, name: &str, per_second: bool) -> Vec<(f64, f64)> {
        let value = |run: &&Run| {
            let counted = run.evidence.get(name).copied().unwrap_or(0.0);
            let over = if per_second { run.evidence.get(ELAPSED).copied()? } else { 1.0 };
            (over > 0.0).then_some((counted, over))
        };
        let rate = |pairs: Vec<(f64, f64)>| {
            let (counted, over) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
            (over > 0.0).then_some((counted / over, over))
        };
        if self.boots.len() > 1 {
            return self
                .boots
                .iter()
                .filter_map(|runs| rate(runs.iter().filter_map(value).collect()))
                .collect();
        }
        self.boots.iter().flatten().filter_map(|run| rate(value(run).into_iter().collect())).collect()
    }
}

/// Mean, and the square of its standard error.
fn mean(values: &[(f64, f64)]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().map(|(value, _)| value).sum::<f64>() / n;
    let spread = values.iter().map(|(value, _)| (value - mean).powi(2)).sum::<f64>() / (n - 1.0) / n;
    let over: f64 = values.iter().map(|(_, over)| over).sum();
    (mean, spread.max(mean / over).max((LEAST * mean).powi(2)))
}

/// The facts of a search in which something was counted; `None` else.
pub(super) fn facts(state: &State) -> Option<MovedFacts> {
    let (commit, against) = pair(state);
    // Under the search's own variant.
    let cell = |commit| Cell { commit, variant: String::new() };
    between(state, cell(commit), cell(against))
}

/// What moved from one kernel and variant to another; `None` where nothing was counted.
pub(super) fn between(state: &State, is: Cell, was: Cell) -> Option<MovedFacts> {
    let from = from(state, [&is, &was]);
    let (commit, against) = (is.commit.clone(), was.commit.clone());
    let per_second = state.plan.recipe.metric.direction == Direction::Higher;
    let (is, was) = (Counted::of(state, &is), Counted::of(state, &was));
    let names = |counted: &Counted| -> BTreeSet<String> {
        counted.boots.iter().flatten().flat_map(|run| run.evidence.keys().cloned()).collect()
    };
    let mut rows = Vec::new();
    if is.runs() > 1 && was.runs() > 1 {
        let same_version = from.len() < 2 || !from.iter().all(|words| words.starts_with(SCHEDSTAT));
        for name in names(&is).union(&names(&was)).filter(|name| *name != ELAPSED) {
            if same_version || !is_of_domain(name) {
                rows.extend(row(name, &is.values(name, per_second), &was.values(name, per_second)));
            }
        }
    }
    rows.sort_by(|a, b| b.over_error.abs().total_cmp(&a.over_error.abs()).then(a.name.cmp(&b.name)));
    if rows.is_empty() && from.is_empty() {
        return None;
    }
    let per = if per_second { "second" } else { "run" };
    Some(MovedFacts { commit, against, per, boots: (is.boots.len(), was.boots.len()), from, rows })
}

fn row(name: &str, is: &[(f64, f64)], was: &[(f64, f64)]) -> Option<MovedRow> {
    if is.len() < 2 || was.len() < 2 {
        return None;
    }
    let ((commit, of_commit), (against, of_against)) = (mean(is), mean(was));
    let over_error = (commit - against) / (of_commit + of_against).sqrt();
    let change = Some(commit / against - 1.0).filter(|change| change.is_finite());
    over_error.is_finite().then(|| MovedRow { name: name.to_owned(), commit, against, change, over_error })
}

/// Whether a counter of a scheduling domain: two versions of the format may mean different things by it.
fn is_of_domain(name: &str) -> bool {
    name.strip_prefix(SCHEDSTAT).is_some_and(|rest| rest.matches('.').count() > 1)
}

/// Where the counts are from, each once: "schedstat: version 16". More than one of schedstat: the kernels differ in it.
fn from(state: &State, cells: [&Cell; 2]) -> Vec<String> {
    let runs = cells.into_iter().flat_map(|cell| cell.boots(state)).flat_map(|boot| &boot.runs);
    let told = |run: &Run| [SCHEDSTAT, PERF].map(|name| Some(format!("{name}: {}", run.settings.get(name)?)));
    let from: BTreeSet<String> = runs.flat_map(told).flatten().collect();
    from.into_iter().collect()
}

/// The text: a head and a table; empty where nothing stands out and nothing is to be said.
pub(super) fn lines(facts: &MovedFacts) -> (String, Vec<String>) {
    let rows: Vec<&MovedRow> =
        facts.rows.iter().filter(|row| row.over_error.abs() >= LISTED_FROM).take(LISTED).collect();
    let from = facts.from.join("; ");
    if rows.is_empty() {
        let nothing = if facts.rows.is_empty() { "" } else { "nothing that was counted differs clearly; " };
        return (format!("{nothing}{from}"), Vec::new());
    }
    let head = format!(
        "{} against {}, means per {} over {} and {} boots, not judged; {from}",
        facts.commit.short(),
        facts.against.short(),
        facts.per,
        facts.boots.0,
        facts.boots.1
    );
    let mut table = vec![format!(
        "  {:<34}{:>13}{:>13}{:>9}{:>7}",
        "counter",
        facts.against.short(),
        facts.commit.short(),
        "change",
        "/error"
    )];
    for row in rows {
        let change = row.change.map_or("new".to_owned(), |change| format!("{:+.1} %", change * 100.0));
        let name = row.name.strip_prefix("schedstat.").unwrap_or(&row.name);
        table.push(format!(
            "  {name:<34}{:>13}{:>13}{change:>9}{:>+7.0}",
            figure(row.against),
            figure(row.commit),
            row.over_error
        ));
    }
    (head, table)
}

/// As many digits as a reader can use.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 1e10 => format!("{value:.3e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[f64]) -> Vec<(f64, f64)> {
        of.iter().map(|value| (*value, 1.0)).collect()
    }

    #[test]
    fn a_difference_counts_by_its_error_and_none_is_infinitely_sure() {
        let clear =
            row("a", &values(&[1000.0, 1010.0, 990.0]), &values(&[500.0, 505.0, 495.0])).expect("a row");
        assert!(
            (clear.change.expect("a change") - 1.0).abs() < 1e-12 && clear.over_error > 20.0,
            "{clear:?}"
        );
        let rare = row("b", &values(&[1.0, 1.0]), &values(&[0.0, 0.0])).expect("a row");
        assert!(
            rare.change.is_none() && rare.over_error < LISTED_FROM,
            "one event in two runs is chance: {rare:?}"
        );
        let steady = row("c", &values(&[2e9, 2e9]), &values(&[1e9, 1e9])).expect("a row");
        assert!(steady.over_error.is_finite() && steady.over_error < 1000.0, "{steady:?}");
        assert_eq!(row("d", &values(&[1.0]), &values(&[2.0, 3.0])), None);
        assert_eq!(row("e", &values(&[0.0, 0.0]), &values(&[0.0, 0.0])), None, "nothing was counted");
    }

    #[test]
    fn a_table_fits_a_terminal() {
        let row = MovedRow {
            name: "schedstat.domain0.lb_hot_gained.newly_idle".to_owned(),
            commit: 123_456.0,
            against: 1.5e11,
            change: Some(9.99),
            over_error: -123.0,
        };
        let id = |digit: &str| CommitId::parse(&digit.repeat(40)).expect("40 digits");
        let facts = MovedFacts {
            commit: id("a"),
            against: id("b"),
            per: "run",
            boots: (3, 4),
            from: vec!["schedstat: version 16".to_owned()],
            rows: vec![row],
        };
        let (head, table) = lines(&facts);
        assert_eq!(
            head,
            "aaaaaaaaaaaa against bbbbbbbbbbbb, means per run over 3 and 4 boots, not judged; schedstat: version 16"
        );
        assert!(table.iter().all(|line| line.chars().count() <= 80), "{table:#?}");
        assert_eq!(
            table[1],
            "  domain0.lb_hot_gained.newly_idle       1.500e11       123456 +999.0 %   -123"
        );
    }
}
