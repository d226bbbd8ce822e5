//! A simulated search as a session: plan, planner, driver and a journal in memory, over the simulated lab.

use crate::cli::CliError;
use crate::driver::{self, Driver, Lab, SessionDir, StateRoot, range_digest};
use crate::journal::{Journal, MemoryStorage, Storage};
use crate::lab::sim::SimLab;
use crate::model::{ConclusionKind, Direction, Find, Metric, Relative};
use crate::search::{Dag, Node};
use crate::session::{
    Attempts, BuilderSpec, Deadlines, Endpoint, Event, Judging, MachineSpec, Plan, Purpose, Recipe, State,
};
use crate::sim::{Costs, Found, Kind, World};
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the simulated metric.
const METRIC: &str = "time";

/// Shares of the claim from which an effect is worth finding: what `search` itself is given in a simulation.
const MINIMUM: f64 = 0.3;

/// Where a simulated session is kept, and under which name.
pub(super) type Kept<'a> = (&'a Path, String);

/// Searches a world as a session does. `unit`: one run-to-run standard deviation of the world, as a fraction of the metric.
/// The session is gone afterwards, unless it is to be `kept`.
pub(super) fn search(
    world: World,
    costs: &Costs,
    unit: f64,
    kept: Option<Kept<'_>>,
) -> Result<Found, CliError> {
    let dag = dag(&world);
    let plan = plan(&world, &dag, costs, unit);
    let lab = SimLab::new(world, *costs, METRIC, unit);
    if let Some((root, session)) = kept {
        let plan = Plan { session, ..plan };
        let root = StateRoot::of(root, Some(root));
        let (driver, _lock) = driver::create(&root, plan, dag, Box::new(lab.clock()))?;
        return work(driver, &lab);
    }
    let dir = tempfile::tempdir()
        .map_err(|source| CliError::Io { what: "make a temporary directory".to_owned(), source })?;
    let dir_of_session = SessionDir::at(dir.path().to_owned());
    let mut journal = Journal::create(MemoryStorage::default()).map_err(crate::driver::DriverError::from)?;
    let planned = Event::Planned { plan: Box::new(plan.clone()) };
    journal.append(0, &planned).map_err(crate::driver::DriverError::from)?;
    work(Driver::new(dag, State::new(plan), dir_of_session, journal, Box::new(lab.clock())), &lab)
}

fn work<S: Storage>(mut driver: Driver<S>, lab: &SimLab) -> Result<Found, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| CliError::Io { what: "start the event loop".to_owned(), source })?;
    let ports = Lab { builder: Box::new(lab.clone()), machines: vec![Box::new(lab.clone())] };
    let (_asks, stop) = tokio::sync::mpsc::channel(1);
    runtime.block_on(driver.run(ports, stop))?;
    Ok(answer(&driver.state, lab))
}

fn answer(state: &State, lab: &SimLab) -> Found {
    let spent = lab.spent();
    let found = |named: Vec<Vec<usize>>, kind, stated| Found {
        named,
        kind,
        stated,
        builds: spent.builds(),
        boots: spent.boots(),
        runs: spent.runs(),
    };
    let Some(end) = &state.conclusion else { return found(Vec::new(), Kind::GaveUp, f64::NAN) };
    let nodes = |commits: &[crate::model::CommitId]| commits.iter().map(SimLab::node).collect::<Vec<_>>();
    match end.kind {
        ConclusionKind::Culprit | ConclusionKind::CulpritSet if !end.culprits.is_empty() => {
            let named: Vec<Vec<usize>> = end.culprits.iter().map(|c| nodes(&c.suspects)).collect();
            let kind = if named.iter().all(|n| n.len() == 1) { Kind::Named } else { Kind::Set };
            found(named, kind, end.culprits.iter().map(|c| c.probability).product())
        }
        ConclusionKind::NoDifference => found(Vec::new(), Kind::NoDifference, f64::NAN),
        ConclusionKind::Culprit
        | ConclusionKind::CulpritSet
        | ConclusionKind::OppositeSign
        | ConclusionKind::NoopChange
        | ConclusionKind::NotMonotonic
        | ConclusionKind::Stopped
        | ConclusionKind::Surveyed
        | ConclusionKind::Restored
        | ConclusionKind::Partial
        | ConclusionKind::NoEffect
        | ConclusionKind::CannotRevert
        | ConclusionKind::AlreadyReverted
        | ConclusionKind::NotMeasurable => found(Vec::new(), Kind::GaveUp, f64::NAN),
    }
}

fn dag(world: &World) -> Dag {
    let graph = world.graph();
    let node = |at: usize| Node {
        commit: SimLab::commit(at),
        subject: format!("c{at}"),
        parents: graph.parents(at).iter().map(|&p| p as usize).collect(),
        boundary: graph.is_root(at),
        on_path: true,
    };
    Dag::new((0..graph.len()).map(node).collect()).expect("a simulated graph is in order")
}

fn plan(world: &World, dag: &Dag, costs: &Costs, unit: f64) -> Plan {
    let end = |at: usize| Endpoint { rev: format!("c{at}"), commit: SimLab::commit(at) };
    let graph = world.graph();
    let claim = world.claim() * unit;
    let seconds = |minutes: f64| minutes * 60.0;
    Plan {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        session: "simulated".to_owned(),
        repository: String::new(),
        purpose: Purpose::Bisect,
        good: end(graph.good()),
        bad: end(graph.tip()),
        merge_bases: Vec::new(),
        paths: Vec::new(),
        skipped: Vec::new(),
        range_digest: range_digest(dag),
        candidates: dag.candidates() as u64,
        seed: 1,
        recipe: Recipe {
            profile: "simulated".to_owned(),
            metric: Metric { name: METRIC.to_owned(), unit: "s".to_owned(), direction: Direction::Lower },
            find: if claim < 0.0 { Find::Improvement } else { Find::Regression },
            expected_effect: Some(Relative(claim.abs().exp_m1())),
            minimum_effect: Relative((MINIMUM * claim.abs()).exp_m1()),
            confidence: 0.99,
            budget_s: None,
            variant: "default".to_owned(),
            suts: 1,
            judging: Judging { boots: 3, max_boots: 0, warmup_runs: 0 },
            costs: crate::session::Costs {
                build_s: seconds(costs.build),
                boot_s: seconds(costs.boot),
                run_s: seconds(costs.run),
                ..crate::session::Costs::default()
            },
            attempts: Attempts { boot: 3, run: 3, infra: 5 },
            deadlines: Deadlines { build_s: 3600, boot_s: 600, run_s: 3600 },
            builder: BuilderSpec::Command { command: "simulated".to_owned() },
            machine: MachineSpec::Command { boot: Some("simulated".to_owned()), run: "simulated".to_owned() },
            reading: crate::session::Reading::default(),
            setup: crate::session::Setup::default(),
        },
        host: BTreeMap::new(),
        command: String::new(),
    }
}
