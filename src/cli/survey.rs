//! `survey REV... --baseline REV`: from arguments to a plan.

use super::args::{Options, Place, Survey as Asked, TableFormat};
use super::start::{begin, load, named_session, plan};
use super::work::After;
use super::{CliError, command_line, print, root};
use crate::history::History;
use crate::model::CommitId;
use crate::profile::Overrides;
use crate::report::SurveyReport;
use crate::search::{Dag, Node};
use crate::session::{Endpoint, Kernel, Lineage, Plan, Purpose, Recipe, Survey, amounts};
use crate::workload::{Reader, parser_of};

/// Level of the intervals where nobody says; a profile's is that of a search's answer.
const LEVEL: &str = "0.95";

/// Bounds of what can be asked for.
const FEWEST_BOOTS: u32 = 2;
const MOST: u32 = 10_000;

/// `survey`.
pub(super) fn run(place: &Place, asked: &Asked) -> Result<u8, CliError> {
    refuse_searching(&asked.options)?;
    let history = History::open(&place.repo)?;
    let kernels = kernels(&history, asked)?;
    let baseline = baseline(&history, asked, &kernels)?;
    let recipe = recipe(&history, asked)?;
    let (boots, runs) = amounts(&recipe);
    let survey = Survey {
        boots: amount("--boots", asked.boots.as_deref(), FEWEST_BOOTS, boots)?,
        runs: amount("--runs", asked.runs.as_deref(), 1, runs)?,
        own_baseline: asked.own_baseline,
        also: also(&recipe, &asked.also)?,
        arguments: command_line::arguments(place, &asked.options),
        kernels,
    };
    let others: Vec<&Kernel> = survey.kernels.iter().filter(|k| k.commit != baseline.commit).collect();
    let last = others.last().ok_or_else(alone)?;
    let end = Endpoint { rev: last.rev.clone(), commit: last.commit.clone() };
    let dag = graph(&history, &baseline, &others)?;
    let root = root(place)?;
    let name = named_session(&root, asked.options.session.as_deref(), &format!("survey-{}", baseline.rev))?;
    let purpose = Purpose::Survey(Box::new(survey));
    let plan = Plan {
        command: command_line::survey(place, asked),
        ..plan(&history, name, purpose, (baseline, end), recipe, &asked.options, &dag)
    };
    begin(&root, plan, dag, After::of(asked.format, &asked.options))
}

/// What only a search has.
fn refuse_searching(options: &Options) -> Result<(), CliError> {
    let given = [
        ("--path", !options.paths.is_empty(), "it measures the kernels that it is given"),
        ("--find", options.find.is_some(), "it tells each difference with its sign"),
        ("--expect", options.expect.is_some(), "its boots are fixed by --boots"),
    ];
    match given.into_iter().find(|(_, is_given, _)| *is_given) {
        Some((flag, _, why)) => Err(CliError::Usage(format!(
            "survey: {flag} is for a search; leave it out: a survey searches nothing, {why}"
        ))),
        None => Ok(()),
    }
}

fn alone() -> CliError {
    CliError::Usage(
        "survey: one kernel alone has nothing to be compared with; name another REV, or a --baseline beside it".to_owned(),
    )
}

/// The kernels in the order given; a baseline that is not among them stands before them.
fn kernels(history: &History, asked: &Asked) -> Result<Vec<Kernel>, CliError> {
    let mut ends: Vec<Endpoint> = Vec::new();
    for rev in &asked.revs {
        let end = history.resolve(rev)?;
        if let Some(same) = ends.iter().find(|e| e.commit == end.commit) {
            let (first, commit) = (&same.rev, end.commit.short());
            return Err(CliError::Usage(format!(
                "survey: {first} and {rev} are the same commit ({commit}); name it once"
            )));
        }
        ends.push(end);
    }
    if let Some(rev) = &asked.baseline {
        let end =
            history.resolve(rev).map_err(|e| CliError::Usage(format!("use --baseline: failed to {e}")))?;
        if ends.iter().all(|e| e.commit != end.commit) {
            ends.insert(0, end);
        }
    }
    if ends.len() < 2 {
        return Err(alone());
    }
    let mut kernels: Vec<Kernel> = Vec::new();
    for Endpoint { rev, commit } in ends {
        let lineage = lineage(history, &commit, &kernels)?;
        kernels.push(Kernel { rev, commit, lineage });
    }
    Ok(kernels)
}

/// How a commit stands to each kernel before it. Git is asked of the last; of the others only where that leaves it open, as
/// each answer is a walk through the history.
fn lineage(history: &History, commit: &CommitId, before: &[Kernel]) -> Result<Vec<Lineage>, CliError> {
    let Some((last, others)) = before.split_last() else { return Ok(Vec::new()) };
    let to_last = history.lineage(commit, &last.commit)?;
    let mut all = Vec::new();
    for (other, of_last) in others.iter().zip(&last.lineage) {
        let follows = to_last == *of_last && matches!(to_last, Lineage::Descendant | Lineage::Ancestor);
        all.push(if follows { to_last } else { history.lineage(commit, &other.commit)? });
    }
    all.push(to_last);
    Ok(all)
}

/// The given one, else the first kernel; under the name that it has among the kernels.
fn baseline(history: &History, asked: &Asked, kernels: &[Kernel]) -> Result<Endpoint, CliError> {
    let first = kernels.first().ok_or_else(alone)?;
    let commit = match &asked.baseline {
        Some(rev) => history.resolve(rev)?.commit,
        None => first.commit.clone(),
    };
    let kernel = kernels.iter().find(|k| k.commit == commit).unwrap_or(first);
    Ok(Endpoint { rev: kernel.rev.clone(), commit: kernel.commit.clone() })
}

fn recipe(history: &History, asked: &Asked) -> Result<Recipe, CliError> {
    let mut overrides: Overrides = asked.options.overrides();
    overrides.confidence.get_or_insert_with(|| LEVEL.to_owned());
    Ok(load(history, asked.options.profile(), &overrides)?.recipe)
}

fn amount(flag: &str, asked: Option<&str>, least: u32, default: u32) -> Result<u32, CliError> {
    let Some(text) = asked else { return Ok(default) };
    text.trim().parse::<u32>().ok().filter(|n| (least..=MOST).contains(n)).ok_or_else(|| {
        let why = if flag == "--boots" { "; one boot has no spread, so no interval" } else { "" };
        CliError::Usage(format!("use {flag} {text:?}: it must be a number from {least} to {MOST}{why}"))
    })
}

/// Columns that no run could fill are a slip.
fn also(recipe: &Recipe, asked: &[String]) -> Result<Vec<String>, CliError> {
    let parser = parser_of(&recipe.reading, &recipe.machine);
    let reader = Reader::of(&recipe.reading)
        .map_err(|reason| CliError::Lab(format!("read the workload's output: {reason}")))?;
    for name in asked {
        if *name == recipe.metric.name {
            return Err(CliError::Usage(format!(
                "survey: --also {name} is the judged metric, which has its column; name another, or leave it out"
            )));
        }
        let is_reported = match (&reader, parser) {
            (Some(reader), _) => reader.reports(name),
            (None, Some(parser)) => parser.reports(name),
            (None, None) => false,
        };
        if !is_reported {
            let (what, next) = match parser {
                Some(parser) => (
                    format!("the parser {}", parser.name()),
                    format!("`sched-bisect parse {}` lists what it reads", parser.name()),
                ),
                None => {
                    ("a run that prints one number".to_owned(), "name a --parser that reads more".to_owned())
                }
            };
            return Err(CliError::Usage(format!("survey: --also {name}: {what} does not report it; {next}")));
        }
    }
    Ok(asked.to_vec())
}

/// A graph of the kernels alone: a survey needs no more of the history than their subjects.
fn graph(history: &History, baseline: &Endpoint, others: &[&Kernel]) -> Result<Dag, CliError> {
    let node = |commit: &CommitId, at: usize| -> Result<Node, CliError> {
        let subject = history.subject(commit)?;
        let parents = at.checked_sub(1).into_iter().collect();
        Ok(Node { commit: commit.clone(), subject, parents, boundary: at == 0, on_path: true })
    };
    let mut nodes = vec![node(&baseline.commit, 0)?];
    for (at, kernel) in others.iter().enumerate() {
        nodes.push(node(&kernel.commit, at + 1)?);
    }
    Dag::new(nodes).map_err(|reason| CliError::Usage(format!("survey: use these kernels: {reason}")))
}

/// Prints the table in a form.
pub(super) fn print_table(report: &SurveyReport, format: TableFormat) -> Result<(), CliError> {
    print(&match format {
        TableFormat::Text => report.text(),
        TableFormat::Markdown => report.markdown(),
        TableFormat::Csv => report.csv(),
        TableFormat::Json => report.json(),
    })
}
