//! What measurements say about the graph, and which commits they leave.

use super::Dag;

/// What is known of one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Not measured.
    Nothing,
    /// Not measured, but taken for good: an ancestor of the good endpoint.
    Assumed,
    /// Measured: like the good endpoint.
    Good,
    /// Measured: like the bad endpoint.
    Bad,
    /// Not to be measured, as the user asked. Says nothing of its neighbours.
    LeftOut,
    /// Cannot be measured, or stayed undecided with all boots taken.
    Untestable,
}

/// What is known of each node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knowledge(pub Vec<Known>);

/// The commits that may still be the culprit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remaining {
    /// The earliest commit measured bad: the culprit is it or one of its ancestors. A node index.
    pub tip: usize,
    /// Marks of the suspects, `tip` included.
    pub suspects: Vec<bool>,
}

impl Knowledge {
    /// Nothing measured, but the boundary taken for good and the last node for bad.
    pub fn of_endpoints(dag: &Dag) -> Self {
        let mut known: Vec<Known> =
            dag.nodes().iter().map(|n| if n.boundary { Known::Assumed } else { Known::Nothing }).collect();
        if let Some(last) = known.last_mut() {
            *last = Known::Bad;
        }
        Self(known)
    }

    /// The suspects: ancestors of the bad commit that has the fewest, less all ancestors of good ones. `None` when
    /// every bad commit is an ancestor of a good one (see [`Knowledge::contradictions`]).
    pub fn remaining(&self, dag: &Dag) -> Option<Remaining> {
        let cleared = self.ancestors_of_good(dag);
        self.nodes(Known::Bad)
            .filter(|&bad| !cleared[bad])
            .map(|tip| {
                let mut suspects = dag.ancestors(tip);
                for (mark, clear) in suspects.iter_mut().zip(&cleared) {
                    *mark = *mark && !clear;
                }
                Remaining { tip, suspects }
            })
            .min_by_key(|remaining| (remaining.count(), remaining.tip))
    }

    /// Pairs (bad ancestor, good descendant): no single step can explain them. Each bad commit is paired with its
    /// nearest good descendant.
    pub fn contradictions(&self, dag: &Dag) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for good in self.nodes(Known::Good) {
            let ancestors = dag.ancestors(good);
            for bad in self.nodes(Known::Bad).filter(|&b| ancestors[b]) {
                if !pairs.iter().any(|&(b, _)| b == bad) {
                    pairs.push((bad, good));
                }
            }
        }
        pairs
    }

    fn ancestors_of_good(&self, dag: &Dag) -> Vec<bool> {
        // The boundary is made of ancestors of the good endpoint, whatever was measured of it since.
        let cleared = |(at, known): (usize, &Known)| *known == Known::Good || dag.nodes()[at].boundary;
        let mut cleared: Vec<bool> = self.0.iter().enumerate().map(cleared).collect();
        for at in (0..dag.len()).rev() {
            if cleared[at] {
                for &parent in &dag.nodes()[at].parents {
                    cleared[parent] = true;
                }
            }
        }
        cleared
    }

    fn nodes(&self, what: Known) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().filter(move |(_, k)| **k == what).map(|(at, _)| at)
    }
}

impl Remaining {
    /// How many suspects there are.
    pub fn count(&self) -> usize {
        self.suspects.iter().filter(|m| **m).count()
    }

    /// The suspects, parents before children.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.suspects.iter().enumerate().filter(|(_, m)| **m).map(|(at, _)| at)
    }
}
