//! How long the program thinks between two measurements, late in a long search: 300 boots measured.
//!
//! `cargo bench --bench decision`. A decision is everything between a boot's results and the next measurement: taking the
//! runs in, drift, laying the grid anew where that is due, and the choice. Wanted: 5 ms among 1,024 commits, 50 ms among
//! git's 79,036, and 200 MiB. Memory is the peak of the whole process, the largest search first.

#[path = "strategies/cells.rs"]
#[allow(dead_code)] // the graphs and costs are wanted, the grid is not
mod cells;

use cells::{COSTS, Commits, Graphs};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use sched_bisect::search::{Costs, Engine, Live, Measure, Step};
use sched_bisect::sim::{self, Change, Lab, Noise, World};
use std::hint::black_box;

const BOOTS: u64 = 300;
const SEED: u64 = 7;

/// A search that has measured so many boots, and the next boot's results.
struct Late {
    engine: Engine,
    costs: Costs,
    node: usize,
    stage: u32,
    values: Vec<f64>,
}

fn config() -> Criterion {
    Criterion::default().sample_size(20)
}

/// A change as small as the noise, so that the search is not over before.
fn world(graphs: &mut Graphs, commits: Commits, seed: u64) -> World {
    World::instance(&graphs.of(commits), Change::One(1.0), Noise { boot: 1.0, ..Noise::default() }, seed)
}

/// Searches until [`BOOTS`] boots are measured; `None` if the answer came before.
fn late(world: &World, costs: Costs) -> Option<Late> {
    let mut engine = sim::engine(world);
    let mut lab = Lab::new(world);
    let (mut boot, mut live): (u64, Option<Live>) = (0, None);
    loop {
        let (measure, stage) = match engine.next(costs, live) {
            Step::Decide(decision) => {
                engine.decide(&decision);
                continue;
            }
            Step::Over => return None,
            Step::Measure { measure, stage, .. } => (measure, stage),
        };
        match measure {
            Measure::Run { node } => {
                engine.observe(node, boot, stage, &[lab.run()]);
                live = live.map(|l| Live { runs: l.runs + 1, ..l });
            }
            Measure::Boot { node, runs } | Measure::Build { node, runs } => {
                lab.boot(node);
                let values: Vec<f64> = (0..runs).map(|_| lab.run()).collect();
                if boot == BOOTS {
                    return Some(Late { engine, costs, node, stage, values });
                }
                boot += 1;
                engine.observe(node, boot, stage, &values);
                live = Some(Live { node, runs: runs as usize });
            }
        }
        engine.boot_over();
    }
}

fn decide(mut engine: Engine, late: &Late) -> (Engine, Step) {
    engine.observe(late.node, BOOTS + 1, late.stage, &late.values);
    engine.boot_over();
    let live = Live { node: late.node, runs: late.values.len() };
    loop {
        match engine.next(late.costs, Some(live)) {
            Step::Decide(decision) => engine.decide(&decision),
            step @ (Step::Measure { .. } | Step::Over) => return (engine, step),
        }
    }
}

fn decisions(criterion: &mut Criterion) {
    let mut graphs = Graphs::default();
    for (commits, name) in [(Commits::Git, "79036"), (Commits::Line(1024), "1024")] {
        for (cost, minutes) in COSTS {
            let costs = Costs { build: minutes.build, boot: minutes.boot, run: minutes.run };
            let searches = (SEED..).find_map(|seed| late(&world(&mut graphs, commits, seed), costs));
            let late = searches.expect("a change this small takes long");
            println!("{name} commits, costs {cost}: {} classes, peak memory {} MiB", classes(&late), peak());
            criterion.bench_function(&format!("decision/{name}/{cost}"), |bench| {
                bench.iter_batched(
                    || late.engine.clone(),
                    |engine| black_box(decide(engine, &late)),
                    BatchSize::PerIteration,
                );
            });
        }
    }
}

fn classes(late: &Late) -> usize {
    late.engine.belief().classes().0.len()
}

/// The process's largest resident set so far, MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0) / 1024
}

criterion_group! { name = benches; config = config(); targets = decisions }
criterion_main!(benches);
