//! The search without a session: what it is told, it is told by the test.

use sched_bisect::search::{Engine, Graph, Options};
use std::sync::Arc;

/// Effect looked for, log units.
pub const CLAIM: f64 = 0.05;

/// A search of a line of `count` commits.
pub fn engine(count: usize, minimum: f64) -> Engine {
    let parents: Vec<Vec<usize>> = (0..count).map(|n| n.checked_sub(1).into_iter().collect()).collect();
    let graph = Arc::new(Graph::new(&parents, (0..count).map(|n| n == 0).collect()));
    let prior = (0..count).map(|n| f64::from(u8::from(n > 0))).collect();
    let options = Options {
        claim: CLAIM,
        minimum,
        sign: Some(1),
        confidence: 0.99,
        boots: 3,
        most_boots: 0,
        most_runs: 3000,
        seed: 1,
    };
    Engine::new(graph, (0, count - 1), prior, vec![false; count], options)
}
