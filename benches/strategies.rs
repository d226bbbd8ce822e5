//! Strategies compared on the same simulated instances.
//!
//! ```text
//! cargo bench --bench strategies -- run [--cells base|variants|calibration|null|all] [--only SUBSTR]
//!     [--strategy NAME]... [--searches N] [--out FILE]     measures what FILE does not have yet, and appends
//! cargo bench --bench strategies -- table [--cells ..] [--only SUBSTR] [--in FILE]     prints FILE as Markdown
//! ```
//!
//! Each line of FILE is one cell searched by one strategy; it is written when the cell is done, so that a run may be
//! stopped and gone on with, or strategies be measured apart. Without `run` or `table`: `run`, then `table`.

#[path = "strategies/cells.rs"]
mod cells;
#[path = "strategies/record.rs"]
mod record;
#[path = "strategies/table.rs"]
mod table;

use cells::{COSTS, Cell, Graphs};
use record::Record;
use sched_bisect::sim::{Outcome, Strategy, World, each, search};
use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;

const THREADS: usize = 2;
const SEED: u64 = 20_260_101;

/// What is asked.
struct Asked {
    run: bool,
    table: bool,
    cells: String,
    only: String,
    strategies: Vec<Strategy>,
    searches: u64,
    file: String,
}

fn main() -> ExitCode {
    match read(std::env::args().skip(1)).and_then(|asked| work(&asked)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("error: failed to {reason}");
            ExitCode::from(2)
        }
    }
}

fn read(mut arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked {
        run: false,
        table: false,
        cells: "all".to_owned(),
        only: String::new(),
        strategies: Vec::new(),
        searches: 200,
        file: "target/strategies.jsonl".to_owned(),
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("use {argument}: it needs a value"));
        match argument.as_str() {
            "run" => asked.run = true,
            "table" => asked.table = true,
            // Given by cargo.
            "--bench" => {}
            "--cells" => asked.cells = value()?,
            "--only" => asked.only = value()?,
            "--strategy" => {
                asked.strategies.push(value()?.parse().map_err(|e| format!("use --strategy: {e}"))?)
            }
            "--searches" => {
                asked.searches =
                    value()?.parse().ok().filter(|&n| n > 0).ok_or("use --searches: give a number")?;
            }
            "--out" | "--in" => asked.file = value()?,
            other => {
                return Err(format!(
                    "use {other:?}: there are run, table and the options of the head comment"
                ));
            }
        }
    }
    if !asked.run && !asked.table {
        (asked.run, asked.table) = (true, true);
    }
    if asked.strategies.is_empty() {
        asked.strategies = Strategy::ALL.to_vec();
    }
    Ok(asked)
}

fn work(asked: &Asked) -> Result<(), String> {
    let cells: Vec<Cell> =
        cells::all(&asked.cells)?.into_iter().filter(|cell| cell.to_string().contains(&asked.only)).collect();
    if asked.run {
        measure(asked, &cells)?;
    }
    if asked.table {
        print!("{}", table::markdown(&cells, &Record::read(&asked.file)?));
    }
    Ok(())
}

fn measure(asked: &Asked, cells: &[Cell]) -> Result<(), String> {
    let known = Record::read(&asked.file)?;
    let said = |error: std::io::Error| format!("write {}: {error}", asked.file);
    let mut file = OpenOptions::new().create(true).append(true).open(&asked.file).map_err(said)?;
    let mut graphs = Graphs::default();
    for (at, cell) in cells.iter().enumerate() {
        for &strategy in asked.strategies.iter().filter(|&&strategy| cell.suits(strategy)) {
            // What is chosen without regard to costs is measured once and costed as often as wanted.
            let costs: Vec<&str> = match strategy.weighs_costs() {
                true => cell.costs().to_vec(),
                false => vec![cell.costs()[0]],
            };
            for name in costs {
                if known.iter().any(|r| r.is(cell, strategy, name) && r.searches >= asked.searches) {
                    continue;
                }
                let record = one(cell, strategy, name, asked.searches, &mut graphs);
                writeln!(file, "{}", record.line()).map_err(said)?;
                eprintln!("{}/{} {cell}, costs {name}, {strategy}: {record}", at + 1, cells.len());
            }
        }
    }
    Ok(())
}

fn one(cell: &Cell, strategy: Strategy, name: &str, searches: u64, graphs: &mut Graphs) -> Record {
    let graph = graphs.get(cell);
    let costs = COSTS.iter().find(|(known, _)| *known == name).expect("a cell's costs are among them").1;
    let start = std::time::Instant::now();
    let outcomes = each(searches, THREADS, |at| {
        let world = World::instance(&graph, cell.change(), cell.noise(), SEED + at);
        Outcome::of(&world, &search(strategy, &world, &costs), &costs, None)
    });
    Record::of(cell, strategy, name, &outcomes, start.elapsed())
}
