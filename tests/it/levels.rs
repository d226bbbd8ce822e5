//! Three levels in a line of commits: what the search goes on with, and when it believes them.

use crate::common::engine::{CLAIM, engine};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use sched_bisect::search::{Costs, Decision, Engine, Measure, Narrowing, Scope, Step, Why};

const COMMITS: usize = 41;
const END: usize = COMMITS - 1;

/// A search that is told of boots, whatever it would measure.
struct Told {
    engine: Engine,
    rng: ChaCha8Rng,
    boot: u64,
    /// Of a boot, in effects.
    noise: f64,
}

impl Told {
    /// Both ends are measured, and a change between them is there.
    fn new(seed: u64, noise: f64) -> Self {
        let engine = engine(COMMITS, 0.3 * CLAIM);
        let mut told = Self { engine, rng: ChaCha8Rng::seed_from_u64(seed), boot: 0, noise };
        told.boots(&[(0, 6, 0.0), (END, 6, 1.0)]);
        let step = told.next();
        let Step::Decide(gate @ Decision::Gate(_)) = step else { panic!("{step:?}") };
        told.engine.decide(&gate);
        told
    }

    /// Boots of one run each, in random order, so that no drift looks like a level: kernel, how
    /// many, and its level in effects.
    fn boots(&mut self, all: &[(usize, usize, f64)]) {
        let each = all.iter().flat_map(|&(node, boots, level)| std::iter::repeat_n((node, level), boots));
        let mut order: Vec<(usize, f64)> = each.collect();
        order.shuffle(&mut self.rng);
        for (node, level) in order {
            let z: f64 = StandardNormal.sample(&mut self.rng);
            self.engine.observe(node, self.boot, 0, &[CLAIM * (level + self.noise * z)]);
            self.engine.boot_over();
            self.boot += 1;
        }
    }

    fn next(&mut self) -> Step {
        self.engine.next(Costs { build: 20.0, boot: 3.0, run: 10.0 }, None)
    }

    /// The scope that it goes on with, if it sees three levels now.
    fn narrowed(&mut self) -> Option<Scope> {
        match self.next() {
            Step::Decide(Decision::Narrowed(scope, Narrowing::ThreeLevels(_))) => Some(scope),
            Step::Decide(_) | Step::Measure { .. } | Step::Over => None,
        }
    }

    /// The kernel whose neighbour it wants measured, if it does: the neighbour.
    fn asks(&mut self) -> Option<usize> {
        match self.next() {
            Step::Measure {
                measure: Measure::Build { node, .. } | Measure::Boot { node, .. },
                why: Why::Neighbour,
                ..
            } => Some(node),
            Step::Measure { .. } | Step::Decide(_) | Step::Over => None,
        }
    }
}

#[test]
fn the_whole_middle_level_stays_with_the_larger_step() {
    // The step may be right at the kernel with most boots: with it as the end, no other kernel would lie beside it.
    let of = |seed: u64, middle: f64, most_booted: usize| {
        let mut told = Told::new(seed, 0.25);
        let at = |node: usize| (node, if node == most_booted { 96 } else { 48 }, middle);
        let (before, after) =
            ([(0, 30, 0.0), (6, 24, 0.0), (12, 24, 0.0)], [(30, 24, 1.0), (35, 24, 1.0), (END, 30, 1.0)]);
        told.boots(&[&before[..], &[at(13), at(18), at(24)], &after].concat());
        told.narrowed().unwrap_or_else(|| panic!("{seed}: {:?}", told.next()))
    };
    let (first, second): (Vec<Scope>, Vec<Scope>) =
        (0..10).map(|seed| (of(seed, 0.7, 13), of(seed, 0.3, 24))).unzip();
    assert!(first.iter().all(|s| s.good.is_none() && [18, 24].contains(&s.bad)), "{first:?}");
    assert!(second.iter().all(|s| s.bad == END && [Some(13), Some(18)].contains(&s.good)), "{second:?}");
    // By chance the outermost may not be clear enough.
    let outermost =
        first.iter().filter(|s| s.bad == 24).count() + second.iter().filter(|s| s.good == Some(13)).count();
    assert!(outermost >= 16, "{outermost} of 20");
}

/// A single kernel halfway, and what is around it.
fn one_halfway(seed: u64) -> Told {
    let mut told = Told::new(seed, 0.35);
    told.boots(&[
        (0, 30, 0.0),
        (END, 30, 1.0),
        (10, 24, 0.0),
        (15, 24, 0.0),
        (20, 48, 0.5),
        (25, 24, 1.0),
        (30, 24, 1.0),
    ]);
    told
}

#[test]
fn a_kernel_that_its_neighbours_leave_alone_is_no_level() {
    for seed in 0..10 {
        let mut told = one_halfway(seed);
        assert_eq!((told.narrowed(), told.asks()), (None, Some(19)), "{seed}");
        told.boots(&[(19, 20, 0.0)]);
        assert_eq!((told.narrowed(), told.asks()), (None, Some(21)), "{seed}: the later one too");
        told.boots(&[(21, 20, 1.0)]);
        assert_eq!((told.narrowed(), told.asks()), (None, None), "{seed}");
    }
}

#[test]
fn a_kernel_with_a_neighbour_beside_it_is_a_level() {
    let scope_of = |seed: u64| {
        let mut told = one_halfway(seed);
        assert_eq!(told.asks(), Some(19), "{seed}");
        told.boots(&[(19, 20, 0.5)]);
        if let Some(other) = told.asks() {
            assert_eq!(other, 21, "{seed}: the first was not clear enough");
            told.boots(&[(21, 20, 0.5)]);
        }
        told.narrowed()
    };
    let scopes: Vec<Scope> = (0..10).filter_map(scope_of).collect();
    // Each has to be clear by itself, which 20 boots do not always make it.
    assert!(scopes.len() >= 6, "{scopes:?}");
    let is_middle = |node: usize| (19..=21).contains(&node);
    assert!(scopes.iter().all(|s| s.good.map_or(is_middle(s.bad), is_middle)), "{scopes:?}");
}
