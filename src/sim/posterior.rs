//! The program's own search, in the simulated lab: the same engine as a session's, without the session.

use super::{Costs, Found, Kind, Lab, MAX_RUNS, World};
use crate::search::{self, Ending, Engine, Live, Measure, Options, Step};

/// Searches a world.
pub fn search(world: &World, costs: &Costs) -> Found {
    let mut engine = engine(world);
    let costs = search::Costs { build: costs.build, boot: costs.boot, run: costs.run };
    let mut lab = Lab::new(world);
    let mut boot = 0;
    let mut live: Option<Live> = None;
    loop {
        match engine.next(costs, live) {
            Step::Decide(decision) => engine.decide(&decision),
            Step::Over => break,
            Step::Measure { measure: Measure::Run { node }, stage, .. } => {
                let value = lab.run();
                engine.observe(node, boot, stage, &[value]);
                engine.boot_over();
                live = live.map(|l| Live { runs: l.runs + 1, ..l });
            }
            Step::Measure {
                measure: Measure::Boot { node, runs } | Measure::Build { node, runs },
                stage,
                ..
            } => {
                if !lab.boot(node) {
                    engine.untestable(node);
                    continue;
                }
                boot += 1;
                let values: Vec<f64> = (0..runs).map(|_| lab.run()).collect();
                engine.observe(node, boot, stage, &values);
                engine.boot_over();
                live = Some(Live { node, runs: runs as usize });
            }
        }
    }
    answer(&engine, &lab)
}

/// The search of a world before its first measurement.
pub fn engine(world: &World) -> Engine {
    let graph = world.graph();
    let shape = std::sync::Arc::clone(graph.shape());
    let mut prior = vec![0.0; graph.len()];
    graph.candidates().iter().for_each(|&at| prior[at as usize] = 1.0);
    let left_out = vec![false; graph.len()];
    let options = Options {
        claim: world.claim(),
        minimum: 0.3 * world.claim().abs(),
        sign: Some(if world.claim() < 0.0 { -1 } else { 1 }),
        confidence: 0.99,
        boots: 3,
        most_boots: 0,
        most_runs: u64::from(MAX_RUNS),
        seed: 1,
    };
    Engine::new(shape, (graph.good(), graph.tip()), prior, left_out, options)
}

fn answer(engine: &Engine, lab: &Lab) -> Found {
    let found = engine.found();
    match engine.ending() {
        Some(Ending::Found) => {
            let stated = found.iter().map(|f| f.probability).product();
            Found::culprits(lab, found.iter().map(|f| f.suspects.clone()).collect(), stated)
        }
        Some(Ending::NoChange) => Found::without(lab, Kind::NoDifference, f64::NAN),
        Some(
            Ending::Opposite | Ending::NotReproduced | Ending::Unconfirmed | Ending::Stuck | Ending::Spent,
        )
        | None => Found::without(lab, Kind::GaveUp, f64::NAN),
    }
}
