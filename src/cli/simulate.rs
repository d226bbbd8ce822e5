//! `simulate`: what a search would find, and cost, in a lab like the user's.

mod lab;
mod session;
mod show;

use super::args::{Format, Simulate};
use super::{CliError, exit, print};
use crate::sim::{Outcome, Strategy, Tally, World, bounds, each, search};
use lab::Setting;
use std::path::Path;

/// Error probability for which the lower bound is given.
const BOUND_ERROR: f64 = 0.01;

/// Multiplies the seed, so that neighbouring seeds share no instance.
const SEED_STRIDE: u64 = 1_000_003;

/// What the searches of one strategy came to.
struct Line {
    strategy: Strategy,
    tally: Tally,
}

/// All that is shown.
struct Findings {
    lines: Vec<Line>,
    /// The oracle's minutes, on average; not without a change.
    oracle: Option<f64>,
    /// Minutes that no strategy can be below, on average; not for two culprits.
    bound: Option<f64>,
}

/// `simulate`.
pub(super) fn run(wanted: &Simulate) -> Result<u8, CliError> {
    let setting = Setting::read(wanted).map_err(CliError::Usage)?;
    let findings = simulate(&setting, wanted.keep.as_deref())?;
    print(&match wanted.format {
        Format::Text => show::text(&setting, &findings),
        Format::Json => show::json(&findings),
    })?;
    Ok(exit::DONE)
}

fn simulate(setting: &Setting, keep: Option<&Path>) -> Result<Findings, CliError> {
    let mut strategies = setting.strategies.clone();
    let with_oracle = !setting.no_change();
    if with_oracle && !strategies.contains(&Strategy::Oracle) {
        strategies.push(Strategy::Oracle);
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let outcomes = each(setting.searches, threads, |at| {
        let seed = setting.seed.wrapping_mul(SEED_STRIDE).wrapping_add(at);
        let world = World::instance(&setting.graph, setting.change, setting.noise, seed);
        let judged = |strategy: &Strategy| {
            let found = match (strategy, setting.driver) {
                (Strategy::Posterior, true) => {
                    let kept = keep.map(|root| (root, format!("simulated-{}", at + 1)));
                    session::search(world.clone(), &setting.costs, setting.run_noise.0, kept)?
                }
                _ => search(*strategy, &world, &setting.costs),
            };
            // The oracle is a measure for the others: it has no budget, unless it is asked for itself.
            let budget = setting.budget.filter(|_| setting.strategies.contains(strategy));
            Ok(Outcome::of(&world, &found, &setting.costs, budget))
        };
        strategies.iter().map(judged).collect::<Result<Vec<_>, CliError>>()
    });
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, CliError>>()?;
    let mut lines: Vec<Line> =
        strategies.iter().map(|&strategy| Line { strategy, tally: Tally::default() }).collect();
    for outcome in &outcomes {
        lines.iter_mut().zip(outcome).for_each(|(line, outcome)| line.tally.add(outcome));
    }
    let oracle = lines.iter().find(|line| line.strategy == Strategy::Oracle && with_oracle);
    let oracle = oracle.map(|line| line.tally.minutes.iter().sum::<f64>() / setting.searches as f64);
    lines.truncate(setting.strategies.len());
    Ok(Findings { lines, oracle, bound: bound(setting) })
}

fn bound(setting: &Setting) -> Option<f64> {
    let size = setting.only_change()?;
    let candidates = setting.graph.candidates().len() as f64 * (1.0 - setting.noise.unbuildable);
    Some(bounds::minutes(candidates as usize, size.abs(), setting.noise.boot, &setting.costs, BOUND_ERROR))
}
