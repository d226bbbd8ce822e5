//! Many searches: how often right, at what cost, and is what they state true?

use super::{Costs, Found, Judgement, World, judge};
use std::sync::atomic::{AtomicU64, Ordering};

/// Two-sided 95 % point of the normal distribution.
const Z: f64 = 1.959_964;

/// A share with its interval, all in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The share observed; 0 of none.
    pub share: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Share `count / of` with its 95 % interval (Wilson 1927); of none, the whole range.
pub fn wilson(count: u32, of: u32) -> Interval {
    if of == 0 {
        return Interval { share: 0.0, low: 0.0, high: 1.0 };
    }
    let (n, share) = (f64::from(of), f64::from(count) / f64::from(of));
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt() / (1.0 + Z * Z / n);
    Interval { share, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
}

/// Bands of stated probability: lower ends; each reaches to the next, the last to 1 included.
const BANDS: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// By band of stated probability: lower end, upper end, answers, answers that were right (sets included).
pub type Bands = Vec<(f64, f64, u32, u32)>;

/// A quantity over many searches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Half of the searches need no more.
    pub median: f64,
    /// Nine of ten need no more.
    pub p90: f64,
}

impl Summary {
    /// Of at least one value: order statistics, without interpolation.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at =
            |share: f64| sorted[((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1];
        Self { mean: values.iter().sum::<f64>() / values.len() as f64, median: at(0.5), p90: at(0.9) }
    }
}

/// What one search came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Its answer against the truth.
    pub judgement: Judgement,
    /// The probability it states; NaN if none.
    pub stated: f64,
    /// Builds started.
    pub builds: u32,
    /// Boots.
    pub boots: u32,
    /// Runs.
    pub runs: u32,
    /// Machine minutes.
    pub minutes: f64,
}

impl Outcome {
    /// Judges a search. It may spend `budget` minutes; beyond, it has no answer.
    pub fn of(world: &World, found: &Found, costs: &Costs, budget: Option<f64>) -> Self {
        let mut outcome = Self {
            judgement: judge(world, found),
            stated: found.stated,
            builds: found.builds,
            boots: found.boots,
            runs: found.runs,
            minutes: costs.of(found),
        };
        if let Some(budget) = budget.filter(|&budget| outcome.minutes > budget) {
            outcome.judgement = Judgement::None;
            outcome.minutes = budget;
        }
        outcome
    }
}

/// What many searches came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally {
    /// Searches.
    pub searches: u32,
    /// Answers that are right.
    pub right: u32,
    /// Answers that are wrong.
    pub wrong: u32,
    /// Right sets of suspects.
    pub set: u32,
    /// No answer.
    pub none: u32,
    /// Builds of each search, in the order of the seeds.
    pub builds: Vec<u32>,
    /// Boots of each.
    pub boots: Vec<u32>,
    /// Runs of each.
    pub runs: Vec<u32>,
    /// Minutes of each.
    pub minutes: Vec<f64>,
    /// What was stated and whether it was right, of each answer that states a probability.
    stated: Vec<(f64, bool)>,
}

impl Tally {
    /// Counts one search.
    pub fn add(&mut self, outcome: &Outcome) {
        self.searches += 1;
        match outcome.judgement {
            Judgement::Right => self.right += 1,
            Judgement::Wrong => self.wrong += 1,
            Judgement::Set => self.set += 1,
            Judgement::None => self.none += 1,
        }
        self.builds.push(outcome.builds);
        self.boots.push(outcome.boots);
        self.runs.push(outcome.runs);
        self.minutes.push(outcome.minutes);
        if outcome.stated.is_finite() && outcome.judgement != Judgement::None {
            self.stated.push((outcome.stated, outcome.judgement != Judgement::Wrong));
        }
    }

    /// Is what was stated true? Only bands that were stated.
    pub fn calibration(&self) -> Bands {
        let ends = BANDS.into_iter().skip(1).chain([f64::INFINITY]);
        let bands = BANDS.into_iter().zip(ends).map(|(low, high)| {
            let within = self.stated.iter().filter(|(stated, _)| (low..high).contains(stated));
            let right = within.clone().filter(|(_, right)| *right).count() as u32;
            (low, high.min(1.0), within.count() as u32, right)
        });
        bands.filter(|band| band.2 > 0).collect()
    }
}

/// `work` for 0 to `count`, on `threads` threads; results in order, so that the number of threads changes nothing.
pub fn each<T: Send>(count: u64, threads: usize, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(0);
    let take = || {
        let mut own = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return own;
            }
            own.push((at, work(at)));
        }
    };
    let mut all: Vec<(u64, T)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|t| t.join().expect("a search that panics is a fault of ours")).collect()
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Change, Graph, Kind, Noise, Strategy, search};
    use std::sync::Arc;

    #[test]
    fn wilsons_interval_is_the_published_one() {
        let interval = wilson(81, 263);
        assert!(
            (interval.low - 0.2553).abs() < 5e-4 && (interval.high - 0.3662).abs() < 5e-4,
            "{interval:?}"
        );
        assert!(wilson(200, 200).low > 0.98 && wilson(0, 0).high >= 1.0);
    }

    #[test]
    fn nine_of_ten_values_are_within_their_90_percent_point() {
        let values: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        assert_eq!(Summary::of(&values), Summary { mean: 5.5, median: 5.0, p90: 9.0 });
        assert_eq!(Summary::of(&[3.0]), Summary { mean: 3.0, median: 3.0, p90: 3.0 });
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let graph = Arc::new(Graph::line(64));
        let costs = Costs { build: 20.0, boot: 3.0, run: 10.0 };
        let strategies = [(Strategy::Sprt, costs), (Strategy::Oracle, costs)];
        let instance =
            |seed| World::instance(&graph, Change::One(2.0), Noise { boot: 1.0, ..Noise::default() }, seed);
        let found = |threads| {
            each(12, threads, |seed| {
                strategies.map(|(strategy, costs)| {
                    let found = search(strategy, &instance(seed), &costs);
                    (found.named, found.runs)
                })
            })
        };
        assert_eq!(found(1), found(3));
    }

    #[test]
    fn an_answer_beyond_the_budget_is_none() {
        let graph = Arc::new(Graph::line(16));
        let world = World::new(graph, vec![(5, 2.0)], 2.0, Noise::default(), 1);
        let found =
            Found { named: vec![vec![5]], kind: Kind::Named, stated: 0.995, builds: 2, boots: 1, runs: 1 };
        let costs = Costs { build: 20.0, boot: 3.0, run: 10.0 };
        let mut tally = Tally::default();
        tally.add(&Outcome::of(&world, &found, &costs, Some(60.0)));
        tally.add(&Outcome::of(&world, &found, &costs, Some(50.0)));
        assert_eq!((tally.right, tally.none, &tally.minutes[..]), (1, 1, &[53.0, 50.0][..]));
        assert_eq!(tally.calibration(), [(0.99, 0.999, 1, 1)]);
    }
}
