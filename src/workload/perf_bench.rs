//! perf bench: sched messaging, sched pipe, sched all, and `-f simple`.
//!
//! Each benchmark has a title, "# Running 'sched/pipe' benchmark:" or, under `all`, "# Running sched/pipe
//! benchmark...", and under it a "Total time:"; pipe also "usecs/op" (lower is better) and "ops/sec" (higher): three
//! numbers, two directions. `-f simple` prints a bare number of seconds and nothing else, which says neither what was
//! run nor where a number belongs when there are two.

use super::text::{decimal, leading, lines};
use super::{Declared, Invalid, Metrics, Output, excerpt};

pub(super) const METRICS: &[Declared] = &[
    Declared::lower("{bench}_time_s", "s", "\"Total time\" (messaging_time_s, pipe_time_s), resolution 1 ms")
        .in_steps_of(0.001),
    Declared::lower("{bench}_usecs_per_op", "us/op", "pipe_usecs_per_op"),
    Declared::higher("{bench}_ops_per_s", "operations/s", "pipe_ops_per_s, a whole number"),
    Declared::lower("simple_time_s", "s", "-f simple: the number it prints"),
];

pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let text = lines(&output.stdout);
    let mut metrics = Metrics::default();
    let mut bench: Option<String> = None;
    for line in text.lines().map(str::trim) {
        if let Some(title) = line.strip_prefix("# Running ") {
            bench = Some(name(title)?);
        } else if let Some(bench) = &bench {
            figure(&mut metrics, bench, line)?;
        }
    }
    if bench.is_none() {
        simple(&mut metrics, &text)?;
    } else if metrics.is_empty() {
        return Err(Invalid::because("perf bench printed no \"Total time:\": it did not end"));
    }
    Ok(metrics)
}

/// "'sched/messaging' benchmark:" is "messaging".
fn name(title: &str) -> Result<String, Invalid> {
    let path = title.split_whitespace().next().unwrap_or_default().trim_matches('\'');
    let leaf = path.rsplit('/').next().unwrap_or_default();
    let plain = !leaf.is_empty() && leaf.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if plain {
        Ok(leaf.to_owned())
    } else {
        Err(Invalid::because(format!("no benchmark at {}", excerpt(title))))
    }
}

fn figure(metrics: &mut Metrics, bench: &str, line: &str) -> Result<(), Invalid> {
    let (name, value) = match line.strip_prefix("Total time:") {
        Some(rest) => match leading(rest) {
            Some((value, unit)) if unit.starts_with("[sec]") => ("time_s", value),
            Some(_) | None => {
                return Err(Invalid::because(format!("perf bench's time cannot be read: {}", excerpt(line))));
            }
        },
        None => match leading(line) {
            Some((value, "usecs/op")) => ("usecs_per_op", value),
            Some((value, "ops/sec")) => ("ops_per_s", value),
            Some(_) | None => return Ok(()),
        },
    };
    if value <= 0.0 {
        return Err(Invalid::because(format!(
            "perf bench's {bench}_{name} is {value}, below its resolution: give it more to do (-l)"
        )));
    }
    let name = format!("{bench}_{name}");
    match metrics.get(&name) {
        None => metrics.put(name, value),
        Some(_) => Err(Invalid::because(format!("{name} is there twice: one run is one perf bench"))),
    }
}

fn simple(metrics: &mut Metrics, text: &str) -> Result<(), Invalid> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let (Some(line), rest) = (lines.next(), lines.next()) else {
        return Err(Invalid::because("perf bench printed nothing on standard output"));
    };
    match (decimal(line), rest) {
        (Some(value), None) if value > 0.0 => metrics.put("simple_time_s", value),
        (Some(_), None) => {
            Err(Invalid::because(format!("perf bench's time {} is not a time", excerpt(line))))
        }
        (Some(_), Some(_)) => Err(Invalid::because(
            "more than one number and no title: run one benchmark at a time, or without -f simple",
        )),
        (None, _) => {
            Err(Invalid::because(format!("no title of a benchmark and no number: {}", excerpt(line))))
        }
    }
}
