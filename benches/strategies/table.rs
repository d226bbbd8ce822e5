//! The records as Markdown.

use super::cells::{COSTS, Cell, Commits, Graphs, Kind};
use super::record::Record;
use sched_bisect::sim::{Costs, Strategy, bounds, wilson};
use std::fmt::Write;

/// Share of right answers from which a peer is reliable.
const RELIABLE: f64 = 0.99;

/// Error probability of the lower bound.
const BOUND_ERROR: f64 = 0.01;

/// The cells' table, then what was stated against what was right. Of several records of the same thing the last of
/// those with most searches counts.
pub fn markdown(cells: &[Cell], records: &[Record]) -> String {
    let strategies: Vec<Strategy> = Strategy::ALL
        .into_iter()
        .filter(|&strategy| {
            cells
                .iter()
                .any(|cell| cell.costs().iter().any(|costs| find(records, cell, strategy, costs).is_some()))
        })
        .collect();
    let mut out =
        String::from("Right in % (sets of suspects included) / wrong in % / mean machine minutes.\n\n");
    let names: Vec<String> = strategies.iter().map(Strategy::to_string).collect();
    let _ = writeln!(
        out,
        "| cell, costs | {} | lower bound | posterior/oracle | reliable peer | posterior/peer |",
        names.join(" | ")
    );
    let _ = writeln!(out, "|---|{}---|---|---|---|", "---|".repeat(names.len()));
    let mut graphs = Graphs::default();
    for cell in cells {
        for name in cell.costs() {
            let Some((_, costs)) = COSTS.iter().find(|(known, _)| known == name) else { continue };
            if let Some(row) = row(cell, name, costs, &strategies, records, &mut graphs) {
                out.push_str(&row);
            }
        }
    }
    out.push_str(&calibration(cells, &strategies, records));
    out
}

fn find<'r>(records: &'r [Record], cell: &Cell, strategy: Strategy, costs: &str) -> Option<&'r Record> {
    records.iter().filter(|record| record.is(cell, strategy, costs)).max_by_key(|record| record.searches)
}

fn row(
    cell: &Cell,
    name: &str,
    costs: &Costs,
    strategies: &[Strategy],
    records: &[Record],
    graphs: &mut Graphs,
) -> Option<String> {
    let found: Vec<Option<&Record>> =
        strategies.iter().map(|&strategy| find(records, cell, strategy, name)).collect();
    if found.iter().all(Option::is_none) {
        return None;
    }
    let of = |wanted: Strategy| find(records, cell, wanted, name).map(|record| record.minutes(costs));
    let (ours, oracle) = (of(Strategy::Posterior), of(Strategy::Oracle));
    let peer = strategies
        .iter()
        .zip(&found)
        .filter(|(strategy, _)| !strategy.weighs_costs())
        .filter_map(|(strategy, record)| {
            record.filter(|r| r.share() >= RELIABLE).map(|r| (strategy, r.minutes(costs)))
        })
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let mut out = format!("| {cell}, {name} |");
    for record in &found {
        match record {
            Some(r) => {
                let wrong = 100.0 * f64::from(r.wrong) / r.searches as f64;
                let _ = write!(out, " {:.1} / {wrong:.1} / {:.0} |", 100.0 * r.share(), r.minutes(costs));
            }
            None => out.push_str(" |"),
        }
    }
    let ratio = |other: Option<f64>| match (ours, other) {
        (Some(ours), Some(other)) => format!("{:.2}", ours / other),
        (Some(_) | None, None) | (None, Some(_)) => String::new(),
    };
    let bound = bound(cell, costs, graphs).map_or(String::new(), |bound| format!("{bound:.0}"));
    let named = peer.map_or(String::from("none"), |(strategy, _)| strategy.to_string());
    let _ = writeln!(out, " {bound} | {} | {named} | {} |", ratio(oracle), ratio(peer.map(|p| p.1)));
    Some(out)
}

/// Only where one culprit is sought in an undisturbed lab.
fn bound(cell: &Cell, costs: &Costs, graphs: &mut Graphs) -> Option<f64> {
    let n = match (cell.kind, cell.commits) {
        (Kind::Base, Commits::Line(n)) => n,
        (Kind::Base, Commits::Git) => graphs.candidates(cell),
        (_, Commits::Line(_) | Commits::Git) => return None,
    };
    Some(bounds::minutes(n, cell.effect, cell.boot, costs, BOUND_ERROR))
}

fn calibration(cells: &[Cell], strategies: &[Strategy], records: &[Record]) -> String {
    let mut rows = String::new();
    for &strategy in strategies {
        let mut bands: Vec<(f64, f64, u32, u32)> = Vec::new();
        for cell in cells {
            for costs in cell.costs().iter().take(if strategy.weighs_costs() { 3 } else { 1 }) {
                for band in find(records, cell, strategy, costs).iter().flat_map(|r| &r.calibration) {
                    match bands.iter_mut().find(|known| known.0 == band.0) {
                        Some(known) => (known.2, known.3) = (known.2 + band.2, known.3 + band.3),
                        None => bands.push(*band),
                    }
                }
            }
        }
        bands.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (low, high, n, right) in bands {
            let share = wilson(right, n);
            let _ = writeln!(
                rows,
                "| {strategy} | {low} to {high} | {n} | {:.2} ({:.2} to {:.2}) |",
                100.0 * share.share,
                100.0 * share.low,
                100.0 * share.high
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "\nStated probability and right answers, all cells above together.\n\n| strategy | stated | answers | right in % (95 % interval) |\n|---|---|---|---|\n{rows}"
    )
}
