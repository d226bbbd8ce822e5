//! The grid: which labs are compared in.

use flate2::read::GzDecoder;
use sched_bisect::sim::{Change, Costs, Graph, Noise, Strategy};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

/// Minutes of a build, a boot, a run. A is a kernel on a server, B a small one in a guest, C a program.
pub const COSTS: [(&str, Costs); 3] = [
    ("A", Costs { build: 20.0, boot: 3.0, run: 10.0 }),
    ("B", Costs { build: 3.0, boot: 1.0, run: 1.0 }),
    ("C", Costs { build: 1.0, boot: 0.2, run: 0.5 }),
];

/// git's own history from v1.0.0, 79,036 commits with 21,044 merges: the parents of each, without further content.
const GIT: &[u8] = include_bytes!("../data/git-v1.0.0.parents.gz");

/// What a cell changes of the plain lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Base,
    /// 5 % of runs are 5 sd too high.
    Outliers,
    /// 0.03 sd a run.
    DriftLinear,
    /// A walk of 0.15 sd a run.
    DriftWalk,
    /// 30 % of boots are 3 sd higher.
    Bimodal,
    /// 10 % of commits do not build.
    Unbuildable,
    /// 0.3 sd from build to build.
    BuildNoise,
    /// Nothing changes.
    Null,
    /// Twice the change one way, once the other way.
    Opposite,
    /// Half the change twice.
    Same,
}

/// Commits: a line of so many, or git's graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Commits {
    Line(usize),
    Git,
}

/// One lab.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    pub kind: Kind,
    pub commits: Commits,
    /// Change, in standard deviations of a run.
    pub effect: f64,
    /// Boot-to-boot standard deviation in the same unit.
    pub boot: f64,
    /// Names of [`COSTS`].
    costs: &'static [&'static str],
}

impl Cell {
    pub fn costs(&self) -> &'static [&'static str] {
        self.costs
    }

    /// Whether a strategy can be asked here. An oracle has nothing to know where nothing changes.
    pub fn suits(&self, strategy: Strategy) -> bool {
        let line = matches!(self.commits, Commits::Line(_));
        (line || !strategy.needs_line()) && (strategy != Strategy::Oracle || self.kind != Kind::Null)
    }

    pub fn change(&self) -> Change {
        match self.kind {
            Kind::Null => Change::None(self.effect),
            Kind::Opposite => Change::Two(2.0 * self.effect, -self.effect),
            Kind::Same => Change::Two(self.effect / 2.0, self.effect / 2.0),
            Kind::Base
            | Kind::Outliers
            | Kind::DriftLinear
            | Kind::DriftWalk
            | Kind::Bimodal
            | Kind::Unbuildable
            | Kind::BuildNoise => Change::One(self.effect),
        }
    }

    pub fn noise(&self) -> Noise {
        let base = Noise { boot: self.boot, ..Noise::default() };
        match self.kind {
            Kind::Base | Kind::Null | Kind::Opposite | Kind::Same => base,
            Kind::Outliers => Noise { outliers: 0.05, ..base },
            Kind::DriftLinear => Noise { drift_linear: 0.03, ..base },
            Kind::DriftWalk => Noise { drift_walk: 0.15, ..base },
            Kind::Bimodal => Noise { bimodal: 0.3, ..base },
            Kind::Unbuildable => Noise { unbuildable: 0.1, ..base },
            Kind::BuildNoise => Noise { build: 0.3, ..base },
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Base => "base",
            Kind::Outliers => "outliers",
            Kind::DriftLinear => "drift-linear",
            Kind::DriftWalk => "drift-walk",
            Kind::Bimodal => "bimodal",
            Kind::Unbuildable => "unbuildable",
            Kind::BuildNoise => "build-noise",
            Kind::Null => "null",
            Kind::Opposite => "opposite",
            Kind::Same => "same",
        };
        match self.commits {
            Commits::Line(n) => write!(f, "{kind} n={n} d={} boot={}", self.effect, self.boot),
            Commits::Git => write!(f, "{kind} n=git d={} boot={}", self.effect, self.boot),
        }
    }
}

const VARIANTS: [Kind; 9] = [
    Kind::Outliers,
    Kind::DriftLinear,
    Kind::DriftWalk,
    Kind::Bimodal,
    Kind::Unbuildable,
    Kind::BuildNoise,
    Kind::Null,
    Kind::Opposite,
    Kind::Same,
];

/// The cells of a name: `base` (the grid), `variants` (one thing disturbed), `calibration` (where stated probabilities
/// are looked at: the middle of the grid and all variants), `null` or `all`.
pub fn all(name: &str) -> Result<Vec<Cell>, String> {
    let mut base = Vec::new();
    for commits in [16, 128, 1024, 8192].map(Commits::Line).into_iter().chain([Commits::Git]) {
        for effect in [1.0, 2.0, 4.0, 8.0] {
            for boot in [0.0, 1.0] {
                base.push(Cell { kind: Kind::Base, commits, effect, boot, costs: &["A", "B", "C"] });
            }
        }
    }
    let middle = Commits::Line(1024);
    let variant = |kind| Cell { kind, commits: middle, effect: 2.0, boot: 0.0, costs: &["A"] };
    let variants: Vec<Cell> = VARIANTS.map(variant).to_vec();
    Ok(match name {
        "base" => base,
        "variants" => variants,
        "null" => vec![variant(Kind::Null)],
        "calibration" => {
            let middle = |cell: &Cell| cell.commits == middle && (1.0..=2.0).contains(&cell.effect);
            base.into_iter().filter(middle).chain(variants).collect()
        }
        "all" => base.into_iter().chain(variants).collect(),
        other => {
            return Err(format!(
                "use --cells {other:?}: there are base, variants, calibration, null and all"
            ));
        }
    })
}

/// The graphs, each made once.
#[derive(Default)]
pub struct Graphs(BTreeMap<Commits, Arc<Graph>>);

impl Graphs {
    pub fn get(&mut self, cell: &Cell) -> Arc<Graph> {
        self.of(cell.commits)
    }

    pub fn of(&mut self, commits: Commits) -> Arc<Graph> {
        let make = || {
            Arc::new(match commits {
                Commits::Line(n) => Graph::line(n),
                Commits::Git => git(),
            })
        };
        Arc::clone(self.0.entry(commits).or_insert_with(make))
    }

    /// Candidates of a cell.
    pub fn candidates(&mut self, cell: &Cell) -> usize {
        self.get(cell).candidates().len()
    }
}

fn git() -> Graph {
    let mut text = String::new();
    GzDecoder::new(GIT).read_to_string(&mut text).expect("the file in the repository is whole");
    Graph::parse(&text).expect("it is a graph")
}
