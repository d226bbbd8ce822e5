//! The lab that is to be simulated, as the arguments describe it.

use crate::cli::args::Simulate;
use crate::model::Relative;
use crate::profile::parse_duration;
use crate::sim::{Change, Costs, Graph, Noise, Strategy};
use flate2::read::MultiGzDecoder;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

/// Candidates of a line when none is said.
const COMMITS: usize = 400;

/// The largest line: the graph is in memory once, an instance's levels are not.
const MOST_COMMITS: u64 = 10_000_000;

/// First bytes of a gzipped file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What is simulated. Sizes in units of the run-to-run standard deviation, costs in minutes.
pub(super) struct Setting {
    pub graph: Arc<Graph>,
    pub change: Change,
    pub noise: Noise,
    pub costs: Costs,
    /// Minutes.
    pub budget: Option<f64>,
    pub searches: u64,
    pub seed: u64,
    pub strategies: Vec<Strategy>,
    /// Whether the program's own search runs as a session, driver and all.
    pub driver: bool,
    /// As written by the user, for reports.
    pub effect: Relative,
    /// One run-to-run standard deviation.
    pub run_noise: Relative,
}

impl Setting {
    /// Reads the arguments. An error names the argument and its value, what is wrong and what would be right.
    pub fn read(wanted: &Simulate) -> Result<Self, String> {
        let run_noise = named("run-noise", &wanted.run_noise, |text| size(text, 1e-6..=10.0))?;
        let effect = named("effect", &wanted.effect, |text| size(text, 1e-6..=10.0))?;
        let runs =
            |name, text: &str| named(name, text, |text| size(text, 0.0..=10.0)).map(|s| s.0 / run_noise.0);
        let noise = Noise {
            boot: runs("boot-noise", &wanted.boot_noise)?,
            build: runs("build-noise", &wanted.build_noise)?,
            outliers: named("outliers", &wanted.outliers, share)?,
            bimodal: named("bimodal", &wanted.bimodal, share)?,
            unbuildable: named("unbuildable", &wanted.unbuildable, share)?,
            ..named("drift", &wanted.drift, |text| drift(text, run_noise))?
        };
        let setting = Self {
            graph: Arc::new(graph(wanted)?),
            change: change(wanted, effect, run_noise)?,
            noise,
            costs: named("costs", &wanted.costs, costs)?,
            budget: wanted.budget.as_deref().map(|text| named("budget", text, minutes)).transpose()?,
            searches: named("searches", &wanted.searches, |text| count(text, 1..=1_000_000))?,
            seed: wanted.seed,
            strategies: strategies(wanted)?,
            driver: wanted.driver,
            effect,
            run_noise,
        };
        match setting.strategies.iter().find(|strategy| strategy.needs_line() && !setting.graph.is_line()) {
            Some(strategy) => Err(format!(
                "use --strategy {strategy}: its rule is for a line of commits, and the graph branches; leave it out, or \
                 use --commits instead of --dag"
            )),
            None => Ok(setting),
        }
    }

    /// Whether nothing changes.
    pub fn no_change(&self) -> bool {
        matches!(self.change, Change::None(_))
    }

    /// The change, if there is one and no other.
    pub fn only_change(&self) -> Option<f64> {
        match self.change {
            Change::One(size) => Some(size),
            Change::None(_) | Change::Two(..) => None,
        }
    }
}

/// Reads the value of an argument; the error names both.
fn named<T>(name: &str, text: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<T, String> {
    read(text).map_err(|reason| format!("use --{name} {text:?}: {reason}"))
}

/// A relative size in a range; 1 and more only in percent, since "5" was hardly meant as 500 %.
fn size(text: &str, range: RangeInclusive<f64>) -> Result<Relative, String> {
    let size: Relative = text.parse()?;
    if size.0.abs() >= 1.0 && !text.contains('%') {
        return Err(format!(
            "is {:.0} % as it stands; write \"{}%\" or a fraction below 1",
            size.0 * 100.0,
            text.trim()
        ));
    }
    if range.contains(&size.0) {
        return Ok(size);
    }
    let least = if *range.start() > 0.0 {
        "more than 0".to_owned()
    } else {
        format!("at least {}", percent(*range.start()))
    };
    Err(format!("must be {least} and at most {}; write it like 2%", percent(*range.end())))
}

fn percent(size: f64) -> String {
    format!("{:.0}%", size * 100.0)
}

/// A share below one.
fn share(text: &str) -> Result<f64, String> {
    size(text, 0.0..=0.99).map(|share| share.0)
}

fn count(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| range.contains(count));
    count.ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
}

fn drift(text: &str, run_noise: Relative) -> Result<Noise, String> {
    let step = |text: &str| size(text, 0.0..=10.0).map(|size| size.0 / run_noise.0);
    match text.split_once(':') {
        None if text == "none" => Ok(Noise::default()),
        Some(("linear", size)) => Ok(Noise { drift_linear: step(size)?, ..Noise::default() }),
        Some(("walk", size)) => Ok(Noise { drift_walk: step(size)?, ..Noise::default() }),
        None | Some(_) => Err("is no drift; write none, linear:0.1% or walk:0.1% (a run)".to_owned()),
    }
}

fn change(wanted: &Simulate, effect: Relative, run_noise: Relative) -> Result<Change, String> {
    let effect = effect.0 / run_noise.0;
    if wanted.no_change {
        return Ok(Change::None(effect));
    }
    let Some(text) = &wanted.second_culprit else { return Ok(Change::One(effect)) };
    named("second-culprit", text, |text| {
        let second = size(text, -10.0..=10.0)?.0 / run_noise.0;
        if (effect + second).abs() < 0.01 * effect {
            return Err(
                "cancels --effect, so that good and bad do not differ; choose another size".to_owned()
            );
        }
        if second.abs() < 1e-6 {
            return Err("is no change; leave it out, or choose another size".to_owned());
        }
        Ok(Change::Two(effect, second))
    })
}

/// A time in minutes; nothing as "0".
fn minutes(text: &str) -> Result<f64, String> {
    parse_duration(text).map(|seconds| seconds as f64 / 60.0)
}

fn costs(text: &str) -> Result<Costs, String> {
    let mut costs = Costs { build: 20.0, boot: 3.0, run: 10.0 };
    for part in text.split(',') {
        let Some((name, time)) = part.split_once('=') else {
            return Err(format!("{part:?} is no cost; write build=20m,boot=3m,run=10m"));
        };
        let place = match name.trim() {
            "build" => &mut costs.build,
            "boot" => &mut costs.boot,
            "run" => &mut costs.run,
            other => return Err(format!("{other:?} costs nothing here; there are build, boot and run")),
        };
        *place = if time.trim() == "0" { 0.0 } else { minutes(time)? };
    }
    if costs.run <= 0.0 {
        return Err(
            "a run that costs nothing could be repeated for ever; give it a time, like run=1s".to_owned()
        );
    }
    Ok(costs)
}

fn strategies(wanted: &Simulate) -> Result<Vec<Strategy>, String> {
    let mut strategies: Vec<Strategy> = Vec::new();
    for name in &wanted.strategies {
        let strategy = named("strategy", name, str::parse)?;
        if !strategies.contains(&strategy) {
            strategies.push(strategy);
        }
    }
    Ok(if strategies.is_empty() { vec![Strategy::Posterior] } else { strategies })
}

fn graph(wanted: &Simulate) -> Result<Graph, String> {
    match &wanted.dag {
        Some(path) => {
            let text = text_of(path).map_err(|error| format!("read --dag {}: {error}", path.display()))?;
            Graph::parse(&text).map_err(|reason| format!("read --dag {}: {reason}", path.display()))
        }
        None => {
            let commits = wanted.commits.as_deref().map_or(Ok(COMMITS as u64), |text| {
                named("commits", text, |text| count(text, 1..=MOST_COMMITS))
            })?;
            Ok(Graph::line(commits as usize))
        }
    }
}

fn text_of(path: &Path) -> std::io::Result<String> {
    let bytes = std::fs::read(path)?;
    let mut text = String::new();
    if bytes.starts_with(&GZIP) {
        MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text)?;
    } else {
        (&bytes[..]).read_to_string(&mut text)?;
    }
    Ok(text)
}
