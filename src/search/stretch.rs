//! Lines of development of which nothing can be measured.

use super::{Dag, Knowledge, Known};

/// Untestable commits of a line, none of it measured, from which the line is worth leaving out as a whole.
const WORTH_LEAVING: usize = 3;

/// A line of development: commits with one parent and one child each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Node before it, if there is one in the graph.
    pub after: Option<usize>,
    /// Its last node.
    pub last: usize,
    /// Its commits.
    pub commits: usize,
    /// How many of them were tried, all in vain.
    pub tried: usize,
}

/// The lines of which several commits were tried, none could be measured, and some were not tried yet.
pub fn broken_stretches(dag: &Dag, knowledge: &Knowledge) -> Vec<Stretch> {
    lines(dag)
        .into_iter()
        .filter_map(|line| {
            let count = |wanted: Known| line.iter().filter(|&&at| knowledge.0[at] == wanted).count();
            let tried = count(Known::Untestable);
            let measured = count(Known::Good) + count(Known::Bad);
            let worth = tried >= WORTH_LEAVING && measured == 0 && tried < line.len();
            let (first, last) = (*line.first()?, *line.last()?);
            let after = dag.nodes()[first].parents.first().copied();
            worth.then_some(Stretch { after, last, commits: line.len(), tried })
        })
        .collect()
}

/// The candidates in lines: a line ends before a merge, at a fork, and at the boundary.
fn lines(dag: &Dag) -> Vec<Vec<usize>> {
    let children = dag.children();
    let mut lines: Vec<Vec<usize>> = Vec::new();
    let mut line_of = vec![None; dag.len()];
    for (at, node) in dag.nodes().iter().enumerate().filter(|(_, node)| !node.boundary) {
        let parent = match node.parents.as_slice() {
            [one] if children[*one].len() == 1 => line_of[*one],
            _ => None,
        };
        let line = parent.unwrap_or_else(|| {
            lines.push(Vec::new());
            lines.len() - 1
        });
        lines[line].push(at);
        line_of[at] = Some(line);
    }
    lines
}

/// The candidates in `after..last`: `last` and its ancestors, less `after` and its ancestors.
pub fn between(dag: &Dag, after: Option<usize>, last: usize) -> Vec<usize> {
    let wanted = dag.ancestors(last);
    let cut = after.map(|at| dag.ancestors(at));
    let is_cut = |at: usize| cut.as_ref().is_some_and(|marks| marks[at]);
    (0..dag.len()).filter(|&at| wanted[at] && !is_cut(at) && !dag.nodes()[at].boundary).collect()
}
