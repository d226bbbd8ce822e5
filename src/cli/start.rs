//! `start` and `revert-test`: from arguments to a plan.

mod preview;

use super::args::{Options, Place, RevertTest, Start, TableFormat};
use super::work::After;
use super::{CliError, command_line, root, work};
use crate::driver::{self, DriverError, StateRoot, SystemClock, is_plain, range_digest};
use crate::history::History;
use crate::model::CommitId;
use crate::profile::{self, Loaded, Overrides};
use crate::report::{counted, say};
use crate::search::{Dag, Node, between};
use crate::session::{Endpoint, Plan, Purpose, Recipe, State};
use std::collections::{BTreeMap, BTreeSet};

/// `start GOOD BAD`.
pub(super) fn bisect(place: &Place, start: Start) -> Result<u8, CliError> {
    let history = History::open(&place.repo)?;
    let mut overrides = start.options.overrides();
    overrides.good.clone_from(&start.good);
    overrides.bad.clone_from(&start.bad);
    let loaded = load(&history, start.options.profile(), &overrides)?;
    let good = history.resolve(loaded.good.as_deref().ok_or_else(|| missing("start", "GOOD"))?)?;
    let bad = history.resolve(loaded.bad.as_deref().ok_or_else(|| missing("start", "BAD"))?)?;
    let root = root(place)?;
    let range = history.range(&good.commit, &bad.commit, &loaded.paths)?;
    if start.plan {
        return preview::print(&loaded.recipe, &range.dag, start.options.seed);
    }
    let name = named_session(&root, start.options.session.as_deref(), &format!("{}..{}", good.rev, bad.rev))?;
    let good_is_ancestor = range.merge_bases.contains(&good.commit) || range.merge_bases.is_empty();
    let plan = Plan {
        merge_bases: if good_is_ancestor { Vec::new() } else { range.merge_bases },
        paths: loaded.paths,
        skipped: skipped(&history, &range.dag, &start.skip)?,
        candidates: range.dag.candidates() as u64,
        command: command_line::start(place, &start),
        ..plan(&history, name, Purpose::Bisect, (good, bad), loaded.recipe, &start.options, &range.dag)
    };
    begin(&root, plan, range.dag, After::of(TableFormat::Text, &start.options))
}

/// The candidates in the ranges "A..B" that are to be left out.
fn skipped(history: &History, dag: &Dag, ranges: &[String]) -> Result<Vec<CommitId>, CliError> {
    let mut left_out = BTreeSet::new();
    for range in ranges {
        let Some((after, last)) = range.split_once("..").filter(|(a, b)| !a.is_empty() && !b.is_empty())
        else {
            return Err(CliError::Usage(format!("use --skip {range:?}: it is no range; write it as A..B")));
        };
        let after = dag.index(&history.resolve(after)?.commit);
        let Some(last) = dag.index(&history.resolve(last)?.commit) else {
            return Err(CliError::Usage(format!("use --skip {range:?}: {last} is not between GOOD and BAD")));
        };
        left_out.extend(between(dag, after, last));
    }
    Ok(left_out.into_iter().map(|at| dag.nodes()[at].commit.clone()).collect())
}

/// `revert-test COMMIT`.
pub(super) fn revert_test(place: &Place, test: RevertTest) -> Result<u8, CliError> {
    let history = History::open(&place.repo)?;
    let commit = history.resolve(&test.commit)?.commit;
    let root = root(place)?;
    let earlier = session_naming(&root, &commit);
    let mut overrides = test.options.overrides();
    let asks_nothing = overrides == Overrides::default() && test.options.profile.is_none();
    overrides.bad.clone_from(&test.on);
    overrides.good.clone_from(&test.against);
    let (recipe, profile_good, profile_bad) = match &earlier {
        Some(plan) if asks_nothing => (under_one_variant(plan.recipe.clone()), None, None),
        Some(plan) if test.options.profile.is_none() && test.options.run.is_none() => {
            return Err(CliError::Usage(format!(
                "revert-test: session {} named this commit and would say how to measure, but other options are given \
                 too; give --profile (or --run) with them, or leave them out",
                plan.session
            )));
        }
        Some(_) | None => {
            let loaded = load(&history, test.options.profile(), &overrides)?;
            refuse_further(&loaded)?;
            (loaded.recipe, loaded.good, loaded.bad)
        }
    };
    let (earlier_good, earlier_bad) = earlier.map(|plan| (plan.good, plan.bad)).unzip();
    let good = end(&history, test.against.clone(), earlier_good, profile_good, "--against GOOD")?;
    let bad = end(&history, test.on.clone(), earlier_bad, profile_bad, "--on BAD")?;
    let revert = history.revert(&commit, &bad.commit, test.mainline)?;
    let name = named_session(&root, test.options.session.as_deref(), &format!("revert-{}", commit.short()))?;
    let dag = ends_only(&history, &good, &bad)?;
    let subject = history.subject(&commit)?;
    let purpose = Purpose::RevertTest { commit, subject, mainline: test.mainline, revert };
    let plan = Plan {
        command: command_line::revert_test(place, &test),
        ..plan(&history, name, purpose, (good, bad), recipe, &test.options, &dag)
    };
    begin(&root, plan, dag, After::of(TableFormat::Text, &test.options))
}

/// A revert test measures what the search judged, under its variant.
fn under_one_variant(mut recipe: Recipe) -> Recipe {
    recipe.setup.also.clear();
    recipe
}

/// An end of a revert test: as given, else of the earlier session (its commit, not what its name stands for by now),
/// else of the profile.
fn end(
    history: &History,
    given: Option<String>,
    earlier: Option<Endpoint>,
    profile: Option<String>,
    what: &str,
) -> Result<Endpoint, CliError> {
    match (given, earlier, profile) {
        (Some(rev), _, _) | (None, None, Some(rev)) => Ok(history.resolve(&rev)?),
        (None, Some(endpoint), _) => Ok(endpoint),
        (None, None, None) => Err(missing("revert-test", what)),
    }
}

pub(super) fn load(history: &History, profile: &str, overrides: &Overrides) -> Result<Loaded, CliError> {
    let resolve = |rev: &str| history.resolve(rev).map(|e| e.commit).map_err(|e| format!("failed to {e}"));
    Ok(profile::load(profile, overrides, &resolve)?)
}

/// Rather than one of them silently left out.
fn refuse_further(loaded: &Loaded) -> Result<(), CliError> {
    let further: Vec<&str> = loaded.recipe.setup.also.iter().map(|also| also.name.as_str()).collect();
    if further.is_empty() {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "measure under {} beside {}: a revert test has one variant; give one --variant, and start one for each",
        further.join(", "),
        loaded.recipe.variant
    )))
}

fn missing(command: &str, what: &str) -> CliError {
    CliError::Usage(format!(
        "{command}: {what} is missing; give it, or put it into the profile (good = / bad = )"
    ))
}

/// The endpoints as a graph: a revert test needs no more of the history than their subjects.
fn ends_only(history: &History, good: &Endpoint, bad: &Endpoint) -> Result<Dag, CliError> {
    let node = |end: &Endpoint, boundary: bool, parents: Vec<usize>| -> Result<Node, CliError> {
        let subject = history.subject(&end.commit)?;
        Ok(Node { commit: end.commit.clone(), subject, parents, boundary, on_path: true })
    };
    let nodes = vec![node(good, true, Vec::new())?, node(bad, false, vec![0])?];
    Dag::new(nodes)
        .map_err(|reason| CliError::Usage(format!("start: GOOD and BAD are the same commit ({reason})")))
}

pub(super) fn plan(
    history: &History,
    session: String,
    purpose: Purpose,
    (good, bad): (Endpoint, Endpoint),
    recipe: Recipe,
    options: &Options,
    dag: &Dag,
) -> Plan {
    Plan {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        session,
        repository: history.common_dir().to_string_lossy().into_owned(),
        purpose,
        good,
        bad,
        merge_bases: Vec::new(),
        paths: Vec::new(),
        skipped: Vec::new(),
        range_digest: range_digest(dag),
        candidates: dag.candidates() as u64,
        seed: options.seed,
        recipe,
        host: host_facts(),
        command: String::new(),
    }
}

/// Starts a session and works on it.
pub(super) fn begin(root: &StateRoot, plan: Plan, dag: Dag, after: After<'_>) -> Result<u8, CliError> {
    let what = match &plan.purpose {
        Purpose::Bisect => format!("{} candidates", plan.candidates),
        Purpose::RevertTest { commit, .. } => format!("{} with {} reverted", plan.bad.rev, commit.short()),
        Purpose::Survey(survey) => format!(
            "{}, {}, {} boots of each, {} a boot",
            counted(survey.kernels.len() as u64, "kernel"),
            counted(plan.recipe.variants().count() as u64, "variant"),
            survey.boots,
            counted(u64::from(survey.runs), "run")
        ),
    };
    let session = plan.session.clone();
    let (driver, lock) = driver::create(root, plan, dag, Box::new(SystemClock))?;
    say(&format!("session {session}: {what}"));
    work::run(driver, lock, after)
}

/// The newest bisection that named this commit.
fn session_naming(root: &StateRoot, commit: &CommitId) -> Option<Plan> {
    // Another's plan holds another's commands: they are run only when they are named.
    let own = |dir: &&driver::SessionDir| !dir.imported().exists();
    root.sessions().ok()?.iter().filter(own).find_map(|dir| {
        let (_, state, _) = driver::load(dir).ok()?;
        let named = state.conclusion.as_ref()?.commit.as_ref() == Some(commit);
        (named && state.plan.purpose == Purpose::Bisect).then_some(state.plan)
    })
}

/// The asked name, or one made from `base`; a concluded session of the same base gets a follower "-2".
pub(super) fn named_session(root: &StateRoot, asked: Option<&str>, base: &str) -> Result<String, CliError> {
    if let Some(name) = asked {
        return if is_plain(name) {
            Ok(name.to_owned())
        } else {
            Err(CliError::Usage(format!(
                "use --session {name:?}: a name is up to 100 letters, digits and . _ + - = @, and begins with none of . -"
            )))
        };
    }
    let plain: String = base
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._+=@".contains(c) { c } else { '-' })
        .take(90)
        .collect();
    let plain = plain.trim_start_matches(['.', '-']).to_owned();
    let names = std::iter::once(plain.clone()).chain((2..).map(|n| format!("{plain}-{n}")));
    for name in names {
        let dir = root.session(&name);
        if !dir.path().exists() {
            return Ok(name);
        }
        // One that has measured nothing is worth nothing: a wrong command in it must not stand in the way.
        let worth = |state: &State| state.conclusion.is_none() && state.spent.runs > 0;
        if driver::load(&dir).is_ok_and(|(_, state, _)| worth(&state)) {
            return Err(DriverError::Exists { name, path: dir.path().to_owned() }.into());
        }
    }
    unreachable!("there are more names than sessions")
}

/// What is worth knowing of this host later.
fn host_facts() -> BTreeMap<String, String> {
    let read = |path: &str| std::fs::read_to_string(path).map(|t| t.trim().to_owned()).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let model = read("/proc/cpuinfo");
    let model = model.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or_default();
    BTreeMap::from([
        ("kernel".to_owned(), read("/proc/sys/kernel/osrelease")),
        ("cpus".to_owned(), cpus.to_string()),
        ("cpu".to_owned(), model.trim_start_matches([' ', '\t', ':']).to_owned()),
    ])
}
