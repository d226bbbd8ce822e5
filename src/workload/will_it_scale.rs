//! will-it-scale: a test binary, or runtest.py.
//!
//! A binary prints "testcase:..", "warmup", "measurement" with lines "min:n max:n total:n", and at the end "average:n":
//! operations a second of all tasks. Without `-s` it never ends. runtest.py prints CSV with the columns
//! tasks,processes,processes_idle,threads,threads_idle,linear, its first row all of zeros. A half that crashed, or a test
//! that has only the other half, leaves 0 or -1 in its column.

use super::text::{decimal, leading, lines, lossy, marked, refuse};
use super::{Declared, Invalid, Metrics, Output, excerpt};

pub(super) const METRICS: &[Declared] = &[
    Declared::higher("ops_per_s", "operations/s", "binary: its average, over all tasks"),
    Declared::higher("processes_{N}_ops_per_s", "operations/s", "runtest.py: N processes"),
    Declared::higher("threads_{N}_ops_per_s", "operations/s", "runtest.py: N threads"),
    Declared::neither("processes_{N}_idle_percent", "%", "runtest.py"),
    Declared::neither("threads_{N}_idle_percent", "%", "runtest.py"),
];

const BROKEN: [&str; 2] = ["Assertion", "Segmentation fault"];

pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let (stdout, stderr) = (lines(&output.stdout), lossy(&output.stderr));
    refuse("a test of will-it-scale crashed", &BROKEN, [&stderr, &stdout])?;
    let mut metrics = Metrics::default();
    match stdout.lines().position(|line| line.trim().starts_with("tasks,")) {
        Some(header) => table(&mut metrics, &stdout, header)?,
        None => binary(&mut metrics, &stdout)?,
    }
    if marked(&stdout, &["WARNING"])
        .or_else(|| marked(&stderr, &["WARNING"]))
        .is_some_and(|l| l.contains("ASLR"))
    {
        metrics.note("addresses were random (setarch -R failed): runs differ more than they need to");
    }
    Ok(metrics)
}

fn binary(metrics: &mut Metrics, text: &str) -> Result<(), Invalid> {
    let averages: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("average:")).collect();
    match averages.as_slice() {
        [] => Err(Invalid::because("will-it-scale printed no \"average:\" (without -s it never does)")),
        [average] => match leading(average) {
            Some((value, "")) if value > 0.0 => metrics.put("ops_per_s", value),
            Some((0.0, "")) => Err(Invalid::because("will-it-scale did 0 operations")),
            Some(_) | None => Err(Invalid::because(format!(
                "will-it-scale's average is not a number: {}",
                excerpt(average)
            ))),
        },
        [..] => Err(Invalid::because("more than one \"average:\": one run is one test")),
    }
}

fn table(metrics: &mut Metrics, text: &str, header: usize) -> Result<(), Invalid> {
    let rows: Vec<&str> = text.lines().skip(header).collect();
    let rows = rows.join("\n");
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(rows.as_bytes());
    let broken =
        |error: csv::Error| Invalid::because(format!("will-it-scale's table cannot be read: {error}"));
    let names = reader.headers().map_err(broken)?.clone();
    let mut worked = false;
    for record in reader.records() {
        let record = record.map_err(broken)?;
        if record.len() != names.len() {
            return Err(Invalid::because(format!(
                "a row of will-it-scale's table does not fit its header: {}",
                excerpt(record.as_slice())
            )));
        }
        let at = |name: &str| {
            let column = names.iter().position(|known| known.trim() == name)?;
            decimal(record.get(column)?.trim())
        };
        let Some(tasks) = at("tasks") else { continue };
        if tasks == 0.0 {
            continue;
        }
        for half in ["processes", "threads"] {
            match at(half) {
                Some(rate) if rate > 0.0 => {
                    worked = true;
                    metrics.put(format!("{half}_{tasks}_ops_per_s"), rate)?;
                    if let Some(idle) = at(&format!("{half}_idle")) {
                        metrics.put(format!("{half}_{tasks}_idle_percent"), idle)?;
                    }
                }
                Some(rate) => metrics.note(format!("no {half}_{tasks}: the table says {rate}")),
                None => metrics.note(format!("no {half}_{tasks}: its column is missing or no number")),
            }
        }
    }
    if worked { Ok(()) } else { Err(Invalid::because("no row of will-it-scale's table has an operation")) }
}
