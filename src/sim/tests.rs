//! The judge, and the peers and the oracle against the figures of the numerical prototype of this search, which was written
//! apart from them, on instances of its own.

use super::*;
use std::sync::Arc;

fn world(steps: &[(usize, f64)]) -> World {
    World::new(Arc::new(Graph::line(16)), steps.to_vec(), 2.0, Noise::default(), 1)
}

fn answer(named: &[&[usize]], kind: Kind) -> Found {
    let named = named.iter().map(|set| set.to_vec()).collect();
    Found { named, kind, stated: 0.99, builds: 0, boots: 0, runs: 0 }
}

#[test]
fn a_strategy_reads_back_from_its_name() {
    for strategy in Strategy::ALL.into_iter().chain([Strategy::Halving { boots: 3 }]) {
        assert_eq!(strategy.to_string().parse(), Ok(strategy));
    }
    assert!("halving-0".parse::<Strategy>().expect_err("refused").contains("from 1"));
    assert!("hlaving".parse::<Strategy>().expect_err("refused").contains("git-bayesect"));
}

#[test]
fn an_answer_is_judged_by_the_truth() {
    let one = world(&[(5, 2.0)]);
    assert_eq!(judge(&one, &answer(&[&[5]], Kind::Named)), Judgement::Right);
    assert_eq!(judge(&one, &answer(&[&[6]], Kind::Named)), Judgement::Wrong);
    assert_eq!(judge(&one, &answer(&[&[5], &[6]], Kind::Named)), Judgement::Wrong);
    assert_eq!(judge(&one, &answer(&[&[4, 5]], Kind::Set)), Judgement::Set);
    assert_eq!(judge(&one, &answer(&[&[6, 7]], Kind::Set)), Judgement::Wrong);
    assert_eq!(judge(&one, &answer(&[], Kind::NoDifference)), Judgement::None);
    assert_eq!(judge(&one, &answer(&[], Kind::GaveUp)), Judgement::None);
    let two = world(&[(5, 4.0), (9, -2.0)]);
    assert_eq!(judge(&two, &answer(&[&[5], &[9]], Kind::Named)), Judgement::Right);
    assert_eq!(judge(&two, &answer(&[&[9]], Kind::Named)), Judgement::Wrong);
    let none = world(&[]);
    assert_eq!(judge(&none, &answer(&[], Kind::NoDifference)), Judgement::Right);
    assert_eq!(judge(&none, &answer(&[&[5]], Kind::Named)), Judgement::Wrong);
    assert_eq!(judge(&none, &answer(&[], Kind::GaveUp)), Judgement::None);
}

const COSTS: Costs = Costs { build: 20.0, boot: 3.0, run: 10.0 };

/// Right answers, mean minutes and their standard error over so many searches.
fn rates(n: usize, boot: f64, searches: u64, find: impl Fn(&World) -> Found) -> (u32, f64, f64) {
    let graph = Arc::new(Graph::line(n));
    let mut tally = Tally::default();
    for seed in 0..searches {
        let world = World::instance(&graph, Change::One(2.0), Noise { boot, ..Noise::default() }, seed);
        tally.add(&Outcome::of(&world, &find(&world), &COSTS, None));
    }
    let count = searches as f64;
    let mean = tally.minutes.iter().sum::<f64>() / count;
    let variance = tally.minutes.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / count;
    (tally.right, mean, (variance / count).sqrt())
}

/// Strategy, candidates, boot-to-boot deviation, searches here; of the prototype: right in percent, minutes, searches.
/// Effect 2, costs (20, 3, 10).
const PROTOTYPE: [(Strategy, usize, f64, u64, f64, f64, f64); 13] = [
    (Strategy::Halving { boots: 10 }, 16, 1.0, 400, 0.80, 770.0, 400.0),
    (Strategy::Halving { boots: 10 }, 1024, 0.0, 400, 0.91, 1670.0, 1500.0),
    (Strategy::Halving { boots: 10 }, 1024, 1.0, 400, 0.63, 1670.0, 400.0),
    (Strategy::Halving { boots: 10 }, 8192, 1.0, 400, 0.60, 2120.0, 400.0),
    (Strategy::Sprt, 16, 1.0, 400, 0.96, 878.0, 400.0),
    (Strategy::Sprt, 1024, 0.0, 400, 0.95, 1125.0, 1500.0),
    (Strategy::Sprt, 1024, 1.0, 400, 0.90, 1926.0, 400.0),
    (Strategy::Sprt, 8192, 1.0, 400, 0.92, 2624.0, 400.0),
    (Strategy::Pinpoint, 128, 0.0, 200, 0.94, 2183.0, 400.0),
    (Strategy::Pinpoint, 1024, 0.0, 200, 0.92, 3130.0, 400.0),
    (Strategy::Pinpoint, 1024, 1.0, 200, 0.81, 5024.0, 400.0),
    (Strategy::Bayesect, 128, 0.0, 40, 1.00, 1132.0, 60.0),
    (Strategy::Bayesect, 1024, 0.0, 40, 1.00, 1425.0, 100.0),
];

#[test]
fn the_peers_do_as_well_as_in_the_prototype() {
    for (strategy, n, boot, searches, share, minutes, theirs) in PROTOTYPE {
        let (right, mean, error) = rates(n, boot, searches, |world| search(strategy, world, &COSTS));
        agrees(&format!("{strategy} {n} {boot}"), (right, searches), (share, theirs));
        // Their mean has a standard error too, by the same spread of single searches.
        let error = error * (1.0 + searches as f64 / theirs).sqrt();
        assert!((mean - minutes).abs() <= 3.5 * error + 1.0, "{strategy} {n} {boot}: {mean} for {minutes}");
    }
}

#[test]
fn the_oracle_with_one_run_a_boot_does_as_well_as_in_the_prototype() {
    for (n, boot, minutes) in [(16, 1.0, 386.0), (128, 1.0, 629.0), (1024, 0.0, 583.0), (1024, 1.0, 846.0)] {
        let (right, mean, error) = rates(n, boot, 200, |world| oracle::play(world, &COSTS, false));
        agrees(&format!("oracle {n} {boot}"), (right, 200), (0.995, 200.0));
        assert!((mean - minutes).abs() <= 3.5 * 1.42 * error, "{n} {boot}: {mean} for {minutes}");
    }
}

/// Two shares of right answers differ by no more than 3.5 standard errors and a little for the rounding of the figures.
fn agrees(what: &str, (right, of): (u32, u64), (share, theirs): (f64, f64)) {
    let ours = f64::from(right) / of as f64;
    let both = (ours * of as f64 + share * theirs) / (of as f64 + theirs);
    let error = (both * (1.0 - both) * (1.0 / of as f64 + 1.0 / theirs)).sqrt();
    assert!((ours - share).abs() <= 3.5 * error + 0.005, "{what}: {ours} for {share}");
}

#[test]
fn further_runs_in_a_boot_save_the_oracle_minutes() {
    let (_, one, _) = rates(1024, 0.0, 100, |world| oracle::play(world, &COSTS, false));
    let (right, more, _) = rates(1024, 0.0, 100, |world| search(Strategy::Oracle, world, &COSTS));
    assert!(right >= 96 && more < one, "{right} {more} {one}");
}

/// A line with a side branch of three on every fourth commit.
fn ladder(rungs: usize) -> Graph {
    let mut parents = vec![vec![]];
    for _ in 0..rungs {
        let base = parents.len() - 1;
        parents.extend([vec![base], vec![base + 1], vec![base], vec![base + 3], vec![base + 2, base + 4]]);
    }
    Graph::of(parents).expect("a graph")
}

#[test]
fn on_a_graph_a_clear_step_is_found_by_all_who_can_search_one() {
    let graph = Arc::new(ladder(20));
    for seed in 0..30 {
        let world = World::instance(&graph, Change::One(12.0), Noise::default(), seed);
        for strategy in Strategy::ALL.into_iter().filter(|strategy| !strategy.needs_line()) {
            let found = search(strategy, &world, &COSTS);
            assert_eq!(judge(&world, &found), Judgement::Right, "{strategy}, seed {seed}: {found:?}");
        }
    }
}

#[test]
fn a_line_given_as_a_graph_costs_the_oracle_what_the_line_does() {
    let line = Arc::new(Graph::line(200));
    // The same commits, and one beside them that is no suspect, so that it is not seen as a line.
    let mut parents: Vec<Vec<usize>> =
        (0..=200).map(|at: usize| at.checked_sub(1).into_iter().collect()).collect();
    parents.insert(1, Vec::new());
    for own in parents.iter_mut().skip(2) {
        own.iter_mut().for_each(|parent| *parent += usize::from(*parent > 0));
    }
    let graph = Arc::new(Graph::of(parents).expect("a graph"));
    assert!(!graph.is_line() && graph.candidates().len() == 200);
    let minutes = |graph: &Arc<Graph>| -> f64 {
        let one = |seed| {
            let world = World::instance(graph, Change::One(2.0), Noise::default(), seed);
            let found = search(Strategy::Oracle, &world, &COSTS);
            COSTS.of(&found)
        };
        (0..100).map(one).sum::<f64>() / 100.0
    };
    let (line, graph) = (minutes(&line), minutes(&graph));
    assert!((line / graph - 1.0).abs() < 0.08, "{line} {graph}");
}

#[test]
fn what_cannot_be_told_apart_is_named_as_a_set_that_holds_the_culprit() {
    let noise = Noise { unbuildable: 0.4, ..Noise::default() };
    let line = Arc::new(Graph::line(100));
    let graph = Arc::new(ladder(20));
    for strategy in Strategy::ALL {
        let mut sets = 0;
        for (seed, graph) in (0..20).flat_map(|seed| [(seed, &line), (seed, &graph)]) {
            if strategy.needs_line() && !graph.is_line() {
                continue;
            }
            let world = World::instance(graph, Change::One(12.0), noise, seed);
            let found = search(strategy, &world, &COSTS);
            let judged = judge(&world, &found);
            // Pinpoint compares many pairs, each at 1 %.
            let forgiven = strategy == Strategy::Pinpoint && judged == Judgement::Wrong;
            let holds = matches!(judged, Judgement::Right | Judgement::Set);
            assert!(holds || forgiven, "{strategy}, seed {seed}: {found:?}");
            sets += u32::from(judged == Judgement::Set);
        }
        assert!(sets > 3, "{strategy}: {sets}");
    }
}

#[test]
fn with_no_change_pinpoint_says_so_and_halving_cannot() {
    let graph = Arc::new(Graph::line(64));
    let right = |strategy: Strategy| {
        let judged = (0..20).map(|seed| {
            let world = World::instance(&graph, Change::None(2.0), Noise::default(), seed);
            judge(&world, &search(strategy, &world, &COSTS))
        });
        judged.filter(|judged| *judged == Judgement::Right).count()
    };
    assert!(right(Strategy::Pinpoint) >= 17 && right(Strategy::Halving { boots: 10 }) == 0);
}
