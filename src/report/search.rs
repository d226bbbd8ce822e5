//! Where the search stands: what is believed, what is measured next and why, what the guards did.

use crate::model::CommitId;
use crate::search::{Belief, Dag, Measure, Why};
use crate::session::{Halt, MachineSpec, Narrowing, Outlook, Planner, Purpose, State, choice, duration};
use crate::stats::{FirstRun, FoundModes};
use serde::Serialize;

/// Leaders that are listed.
const LEADERS: usize = 5;

/// Less likely commits are not listed.
const SHOWN: f64 = 5e-4;

/// Plays of the rest of a search; fewer on a graph of this many commits.
const PLAYS: usize = 40;
const FEW_PLAYS: usize = 8;
const LARGE: usize = 5000;

/// Mass of the credible set.
const CREDIBLE: f64 = 0.95;

/// A run this many scales from its kernel's level is told as an outlier.
const OUTLIER: f64 = 6.0;

/// A commit and how likely it is the culprit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Leader {
    /// It.
    pub commit: CommitId,
    /// Its subject.
    pub subject: String,
    /// Posterior probability, in [0, 1].
    pub probability: f64,
}

/// The next measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NextFacts {
    /// The commit measured.
    pub commit: CommitId,
    /// "build", "boot" or "run".
    pub measure: &'static str,
    /// Why, in words.
    pub why: String,
    /// Expected information about the culprit, bits; absent where it is not chosen by that.
    pub bits: Option<f64>,
    /// Expected machine time in seconds, with the boots that are looked ahead.
    pub seconds: Option<f64>,
}

/// A guard that acted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuardFacts {
    /// "drift", "modes", "order", "outliers", "voided", "narrowed", "warm_up", "environment".
    pub guard: &'static str,
    /// What is assumed where it does not act, and was found not to hold; `null` where it only tells a setting.
    pub assumption: Option<&'static str>,
    /// What it saw and did.
    pub words: String,
}

/// The assumption that a guard looks after.
fn assumption(guard: &str) -> Option<&'static str> {
    Some(match guard {
        "drift" => "the machine stays as fast as it was",
        "order" => "the runs of a boot are alike",
        "modes" => "a kernel has one level",
        "outliers" => "runs scatter like a normal distribution",
        "voided" => "a kernel's boots are of the same kernel on the same machine",
        "narrowed" => "one commit makes one step",
        "saturation" => "the workload is limited by what it measures",
        "too_short" => "the metric is fine enough for the wanted effect",
        "failed_work" => "all work that was started succeeded",
        "environment" => "the machine is set up alike in every boot",
        _ => return None,
    })
}

/// Where the search stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchFacts {
    /// Most probable commits.
    pub leaders: Vec<Leader>,
    /// Commits that together hold 95 %.
    pub credible: usize,
    /// Entropy of the posterior over commits, bits.
    pub entropy_bits: f64,
    /// What comes next; absent when nothing does.
    pub next: Option<NextFacts>,
}

/// The facts of a bisection whose endpoints were measured; `None` else.
pub(super) fn facts(dag: &Dag, state: &State, planner: &mut Planner) -> Option<SearchFacts> {
    let searches = state.plan.purpose == Purpose::Bisect && planner.engine().belief().grid().is_some();
    searches.then_some(())?;
    let mass = sorted_mass(planner.engine().belief());
    let (entropy_bits, credible) = (mass.entropy_bits(), mass.credible());
    let leader = |&(node, probability): &(usize, f64)| Leader {
        commit: planner.commit(node).clone(),
        subject: dag.nodes().get(node).map_or_else(String::new, |n| n.subject.clone()),
        probability,
    };
    let leaders = mass.0.iter().take(LEADERS).filter(|(_, p)| *p >= SHOWN).map(leader).collect();
    let next = if state.conclusion.is_some() { None } else { next(state, planner) };
    Some(SearchFacts { leaders, credible, entropy_bits, next })
}

fn next(state: &State, planner: &mut Planner) -> Option<NextFacts> {
    let (measure, why) = planner.reason(state)?;
    let words = reason_words(planner, &why);
    let best = choice(&why).map(|c| c.best);
    Some(NextFacts {
        commit: planner.commit(measure.node()).clone(),
        measure: measure_word(measure),
        why: words,
        bits: best.map(|b| b.bits),
        seconds: best.map(|b| b.cost),
    })
}

fn measure_word(measure: Measure) -> &'static str {
    match measure {
        Measure::Run { .. } => "run",
        Measure::Boot { .. } => "boot",
        Measure::Build { .. } => "build",
    }
}

/// Why something is measured, in words.
pub(super) fn reason_words(planner: &Planner, why: &Why) -> String {
    let said =
        |measure: Measure| format!("{} {}", measure_word(measure), planner.commit(measure.node()).short());
    match why {
        Why::Gate => "the endpoints are compared".to_owned(),
        Why::Neighbour => {
            "whether a kernel between two levels owes that to its build, its neighbour tells".to_owned()
        }
        Why::Doubt => "whether there is a change at all is in doubt".to_owned(),
        Why::Reference => "a reference boot, to follow the machine's drift".to_owned(),
        Why::Confirmation => "the culprit is confirmed by fresh boots of it and its parents".to_owned(),
        Why::Worth(choice) => {
            let best = format!("expected {:.2} bit for {}", choice.best.bits, duration(choice.best.cost));
            match &choice.second {
                Some(second) => format!(
                    "{best}; second best: {}, {:.2} bit for {}",
                    said(second.measure),
                    second.bits,
                    duration(second.cost)
                ),
                None => best,
            }
        }
    }
}

/// Nodes that may be the culprit with their probabilities, the likeliest first.
pub(super) struct Mass(pub(super) Vec<(usize, f64)>);

/// Of a posterior.
pub(super) fn sorted_mass(belief: &Belief) -> Mass {
    let by_node = belief.by_node();
    let mut likely: Vec<(usize, f64)> = by_node.into_iter().enumerate().filter(|(_, p)| *p > 0.0).collect();
    likely.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    Mass(likely)
}

impl Mass {
    /// Entropy, bits.
    pub(super) fn entropy_bits(&self) -> f64 {
        self.0.iter().map(|(_, p)| -p * p.log2()).sum::<f64>() + 0.0
    }

    /// How many of the likeliest hold [`CREDIBLE`].
    pub(super) fn credible(&self) -> usize {
        let mut held = 0.0;
        let within = self.0.iter().take_while(|(_, p)| {
            let more = held < CREDIBLE;
            held += p;
            more
        });
        within.count()
    }
}

/// The guards that acted.
pub(super) fn guards(state: &State, planner: &Planner) -> Vec<GuardFacts> {
    let mut guards = Vec::new();
    let mut tell = |guard, words: String| {
        guards.push(GuardFacts { guard, assumption: assumption(guard), words });
    };
    let warmup = state.plan.recipe.judging.warmup_runs;
    if warmup > 0 {
        tell("warm_up", format!("the first {warmup} run(s) of each boot are not counted"));
    }
    if let Some(steady) = state.plan.recipe.setup.steady {
        let within = steady.within.0 * 100.0;
        let words = format!(
            "runs of a boot count once one differs from the one before by no more than {within:.1} %, or after {}",
            steady.most
        );
        tell("steady_state", words);
    }
    for words in super::saturation::not_saturated(state) {
        tell("saturation", words);
    }
    if let Some(words) = super::doubts::too_short(state) {
        tell("too_short", words);
    }
    for words in super::doubts::failed(state) {
        tell("failed_work", words);
    }
    if let Some(words) = super::environment::cut_short(&state.moved) {
        tell("environment", words);
    }
    for (boots, reason) in &state.voided {
        tell("voided", format!("{} boots do not count: {reason}", boots.len()));
    }
    for (_, _, why) in &state.narrowed {
        match why {
            Narrowing::Rest => {}
            Narrowing::ThreeLevels { .. } | Narrowing::NotMonotonic { .. } => {
                tell("narrowed", super::log::narrowing_words(why));
            }
        }
    }
    let engine = planner.engine();
    let belief = engine.belief();
    if belief.grid().is_none() {
        return guards;
    }
    let drift = engine.drift();
    if drift.step > 0.0 {
        let range = |f: fn(f64, f64) -> f64| drift.path.iter().copied().reduce(f).unwrap_or(0.0);
        let percent = (range(f64::max) - range(f64::min)).exp_m1() * 100.0;
        tell(
            "drift",
            format!("the machine's level moved by {percent:.1} % while measuring; it is taken out"),
        );
    }
    if let Some(first) = engine.first_run() {
        tell("order", order_words(first));
    }
    if let Some(found) = engine.modes() {
        tell("modes", modes_words(found));
    }
    let outliers = outliers(planner);
    if outliers > 0 {
        tell("outliers", format!("{outliers} runs lie far from the others of their kernel and weigh little"));
    }
    guards
}

/// "the first run of a boot is 3.1 % worse than later ones (2.0 to 4.2 %, 24 boots); it is taken out".
fn order_words(first: &FirstRun) -> String {
    let side = if first.effect > 0.0 { "worse" } else { "better" };
    let percent = |log: f64| log.exp_m1() * 100.0;
    let size = first.effect.abs();
    format!(
        "the first run of a boot is {:.1} % {side} than later ones ({:.1} to {:.1} %, {} boots); it is taken out",
        percent(size),
        percent(size - first.within),
        percent(size + first.within),
        first.boots
    )
}

/// "27 % of 41 boots lie in a second mode 12.4 % worse; boots are compared within modes".
fn modes_words(found: &FoundModes) -> String {
    let modes = found.modes;
    let side = if modes.gap > 0.0 { "worse" } else { "better" };
    let done = if found.is_even {
        "boots are compared within modes"
    } else {
        "some kernels have more of them than others, so their means are compared"
    };
    format!(
        "{:.0} % of {} boots lie in a second mode {:.1} % {side}; {done}",
        modes.share * 100.0,
        found.boots,
        modes.gap.abs().exp_m1() * 100.0
    )
}

fn outliers(planner: &Planner) -> usize {
    let belief = planner.engine().belief();
    let levels = belief.levels(belief.leader());
    let reach = OUTLIER * levels.scale;
    belief
        .kernels()
        .iter()
        .map(|kernel| {
            let middle = crate::stats::median(&belief.boot_means(kernel.node));
            let runs = kernel.boots.iter().flat_map(|b| &b.runs);
            runs.filter(|run| (run.0 - middle).abs() > reach).count()
        })
        .sum()
}

/// What is still to come, in words; `None` where nothing can be said.
pub fn outlook_words(state: &State, outlook: &Outlook) -> Option<String> {
    let (half, most) = (outlook.quantile(0.5)?, outlook.quantile(0.9)?);
    let boots = match state.plan.recipe.machine {
        MachineSpec::Command { boot: None, .. } => String::new(),
        MachineSpec::Command { .. } | MachineSpec::Qemu(_) | MachineSpec::Ssh(_) => {
            format!("{} boots, ", half.boots)
        }
    };
    Some(format!(
        "expected: {} builds, {boots}{} runs, {}; 90 % within {}",
        half.builds,
        half.runs,
        duration(half.cost),
        duration(most.cost)
    ))
}

/// What more machine time would buy, for a session whose budget is used up.
pub(super) fn more_time(dag: &Dag, state: &State) -> Option<String> {
    if !matches!(state.halted, Some(Halt::Budget { .. })) || state.plan.purpose != Purpose::Bisect {
        return None;
    }
    let planner = Planner::of(dag, state);
    let plays = if dag.len() > LARGE { FEW_PLAYS } else { PLAYS };
    let outlook = Outlook::of(planner.engine(), planner.costs(state), |played| played < plays);
    let most = outlook.quantile(0.9)?.cost;
    let offer = |share: f64| {
        let cost = outlook.quantile(share)?.cost;
        Some((duration(cost), outlook.answered_within(cost)))
    };
    let (half, whole) = (offer(0.5)?, (duration(most), outlook.answered_within(most)));
    Some(format!(
        "{} more would end it with a probability of {:.0} %, {} with {:.0} %",
        half.0,
        half.1 * 100.0,
        whole.0,
        whole.1 * 100.0
    ))
}
