//! `start --plan`: what the search is expected to cost, from the profile's guesses and without measuring.

use crate::cli::{CliError, exit, print as print_out};
use crate::search::Dag;
use crate::session::{BuilderSpec, MachineSpec, Recipe, duration};
use crate::sim::{Change, Costs, Graph, Noise, Outcome, Strategy, Tally, World, each, search};
use std::fmt::Write;
use std::sync::Arc;

/// Searches that are simulated; fewer in a range of more commits than this.
const SEARCHES: u64 = 200;
const FEW_SEARCHES: u64 = 24;
const LARGE: u64 = 20_000;

/// Seconds below which nothing costs less.
const LEAST: f64 = 1e-3;

/// Two-sided normal quantile sum of an error of 1 % and a power of 99 %.
const POWER: f64 = 2.0 * 2.326;

/// Simulates the search and prints what it came to.
pub(super) fn print(recipe: &Recipe, dag: &Dag, seed: u64) -> Result<u8, CliError> {
    let guess = &recipe.costs;
    let change = recipe.expected_effect.unwrap_or(recipe.minimum_effect).0;
    let size = change.ln_1p() / guess.run_noise;
    let noise = Noise { boot: guess.boot_noise / guess.run_noise, ..Noise::default() };
    let costs = costs(recipe);
    let graph = Arc::new(Graph::from(dag));
    let searches = if dag.candidates() as u64 > LARGE { FEW_SEARCHES } else { SEARCHES };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let budget = recipe.budget_s.map(|s| s as f64 / 60.0);
    let outcomes = each(searches, threads, |at| {
        let world = World::instance(&graph, Change::One(size), noise, seed.wrapping_mul(1_000_003) + at);
        let found = search(Strategy::Posterior, &world, &costs);
        Outcome::of(&world, &found, &costs, budget)
    });
    let mut tally = Tally::default();
    outcomes.iter().for_each(|outcome| tally.add(outcome));
    print_out(&words(recipe, dag, change, &tally))?;
    Ok(exit::DONE)
}

/// Minutes; a run command without a boot pays no boot, and what is not built costs nothing.
fn costs(recipe: &Recipe) -> Costs {
    let guess = &recipe.costs;
    let minutes = |seconds: f64| seconds.max(LEAST) / 60.0;
    let build = match recipe.builder {
        BuilderSpec::None => 0.0,
        BuilderSpec::Command { .. } | BuilderSpec::Kbuild(_) => guess.build_s,
    };
    let boot = match recipe.machine {
        MachineSpec::Command { boot: None, .. } => 0.0,
        MachineSpec::Command { .. } | MachineSpec::Qemu(_) | MachineSpec::Ssh(_) => {
            guess.boot_s + f64::from(recipe.judging.warmup_runs) * guess.run_s
        }
    };
    Costs { build: minutes(build), boot: minutes(boot), run: minutes(guess.run_s) }
}

fn words(recipe: &Recipe, dag: &Dag, change: f64, tally: &Tally) -> String {
    let guess = &recipe.costs;
    let mut out = String::new();
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key:<12}{value}");
    };
    line("range", format!("{} commits", dag.candidates()));
    let origin = if recipe.expected_effect.is_some() { "--expect" } else { "the smallest worth finding" };
    line("change", format!("{:.1} % ({origin})", change * 100.0));
    line(
        "noise",
        format!(
            "{:.1} % from run to run, {:.1} % from boot to boot (guessed: [costs])",
            guess.run_noise * 100.0,
            guess.boot_noise * 100.0
        ),
    );
    line(
        "costs",
        format!(
            "a build {}, a boot {}, a run {} (guessed: [costs])",
            duration(guess.build_s),
            duration(guess.boot_s),
            duration(guess.run_s)
        ),
    );
    let scale = guess.run_noise.hypot(guess.boot_noise);
    let boots = 2.0 * (POWER * scale / change.ln_1p()).powi(2);
    line(
        "endpoints",
        format!("at most {:.0} boots each show it (error 1 %, power 99 %)", boots.ceil().max(8.0)),
    );
    let of = |values: &[u32]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        (sorted[sorted.len() / 2], sorted[sorted.len() * 9 / 10])
    };
    let (builds, boots, runs) = (of(&tally.builds), of(&tally.boots), of(&tally.runs));
    line("median", format!("{} builds, {} boots, {} runs", builds.0, boots.0, runs.0));
    line("90 %", format!("{} builds, {} boots, {} runs", builds.1, boots.1, runs.1));
    let mut minutes = tally.minutes.clone();
    minutes.sort_by(f64::total_cmp);
    line(
        "time",
        format!(
            "{}; 90 % within {}",
            duration(minutes[minutes.len() / 2] * 60.0),
            duration(minutes[minutes.len() * 9 / 10] * 60.0)
        ),
    );
    let budget = recipe.budget_s.map_or_else(String::new, |s| format!(" within {}", duration(s as f64)));
    line(
        "answer",
        format!(
            "{} of {} simulated searches name the culprit{budget}, {} name another",
            tally.right + tally.set,
            tally.searches,
            tally.wrong
        ),
    );
    out
}
