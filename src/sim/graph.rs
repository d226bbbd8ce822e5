//! The commits of a simulated history: parents by index, cheap to share over many searches.

use crate::search::{self, Dag};
use std::sync::Arc;

/// A history. Node 0 is the good endpoint, the last node the bad one (the tip); nodes without parents are on the good
/// side. Parents stand before children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// Where each node's parents begin in `parents`; one more entry than nodes.
    first: Vec<u32>,
    parents: Vec<u32>,
    /// Nodes that can be the culprit, ascending: ancestors of the tip (and it) that have a parent.
    candidates: Vec<u32>,
    line: bool,
    /// The same, as the search takes it.
    shape: Arc<search::Graph>,
}

impl Graph {
    /// A line of so many candidates, 1 to `candidates`, on the good endpoint 0. At least one candidate.
    pub fn line(candidates: usize) -> Self {
        let parents = (0..=candidates.max(1)).map(|at| if at == 0 { Vec::new() } else { vec![at - 1] });
        Self::of(parents.collect()).expect("a line is in order")
    }

    /// From the parents of each node. Errors name the node.
    pub fn of(parents: Vec<Vec<usize>>) -> Result<Self, String> {
        let nodes =
            u32::try_from(parents.len()).map_err(|_| "more than four thousand million commits".to_owned())?;
        if nodes < 2 {
            return Err("fewer than two commits; nothing lies between good and bad".to_owned());
        }
        let roots = parents.iter().map(Vec::is_empty).collect();
        if let Some(at) = (0..parents.len()).find(|&at| parents[at].iter().any(|&parent| parent >= at)) {
            let parent = parents[at].iter().find(|&&parent| parent >= at).copied().unwrap_or(at);
            return Err(format!("commit {at} stands before its parent {parent}; parents must come first"));
        }
        let mut graph = Self {
            first: vec![0],
            parents: Vec::new(),
            candidates: Vec::new(),
            line: true,
            shape: Arc::new(search::Graph::new(&parents, roots)),
        };
        for (at, own) in parents.iter().enumerate() {
            graph.line &= if at == 0 { own.is_empty() } else { own.as_slice() == [at - 1] };
            graph.parents.extend(own.iter().map(|&parent| parent as u32));
            graph.first.push(graph.parents.len() as u32);
        }
        let reachable = graph.ancestors(graph.tip());
        graph.candidates =
            (0..nodes).filter(|&at| reachable[at as usize] && !graph.is_root(at as usize)).collect();
        if graph.candidates.is_empty() {
            return Err(format!(
                "the last commit ({}) has no parent; it must be the bad endpoint",
                nodes - 1
            ));
        }
        Ok(graph)
    }

    /// Reads a list of parents: line N names the parents of commit N by line number from 0, separated by blanks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parents = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let own: Result<Vec<usize>, _> = line.split_whitespace().map(str::parse).collect();
            parents.push(own.map_err(|_| {
                format!("line {}: {line:?} is not a list of line numbers counted from 0", at + 1)
            })?);
        }
        Self::of(parents)
    }

    /// As the search takes it.
    pub fn shape(&self) -> &Arc<search::Graph> {
        &self.shape
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.first.len() - 1
    }

    /// Never: a graph has a good and a bad endpoint.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The good endpoint.
    pub fn good(&self) -> usize {
        0
    }

    /// The bad endpoint.
    pub fn tip(&self) -> usize {
        self.len() - 1
    }

    /// Parents of a node.
    pub fn parents(&self, at: usize) -> &[u32] {
        &self.parents[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// Whether a node has no parent: it is on the good side.
    pub fn is_root(&self, at: usize) -> bool {
        self.first[at] == self.first[at + 1]
    }

    /// Nodes that can be the culprit, ascending.
    pub fn candidates(&self) -> &[u32] {
        &self.candidates
    }

    /// Whether each node but the first has the one before it as its only parent.
    pub fn is_line(&self) -> bool {
        self.line
    }

    /// Marks of `of` and all its ancestors.
    pub fn ancestors(&self, of: usize) -> Vec<bool> {
        let mut mark = vec![false; self.len()];
        mark[of] = true;
        for at in (0..=of).rev() {
            if mark[at] {
                for &parent in self.parents(at) {
                    mark[parent as usize] = true;
                }
            }
        }
        mark
    }

    /// For each node of `list` (ascending, closed under "between"), its weight with that of its ancestors in the
    /// list, as a share of the whole; in [0, 1]. Sampled: `samples` nodes are drawn systematically along the list, in
    /// proportion to `weight`, and counted for all nodes in one pass. With equal weights and as many samples as nodes
    /// it is exact.
    pub fn shares(&self, list: &[u32], weight: &[f64], samples: usize) -> Vec<f64> {
        let words = samples.div_ceil(64);
        let mut bits = vec![0u64; words * list.len()];
        let step = weight.iter().sum::<f64>() / samples as f64;
        let (mut passed, mut sample) = (0.0, 0);
        for (at, own) in weight.iter().enumerate() {
            passed += own;
            while sample < samples && (sample as f64 + 0.5) * step <= passed {
                bits[at * words + sample / 64] |= 1 << (sample % 64);
                sample += 1;
            }
        }
        let lowest = list[0] as usize;
        let highest = list[list.len() - 1] as usize;
        let mut place = vec![u32::MAX; highest - lowest + 1];
        for (at, &node) in list.iter().enumerate() {
            place[node as usize - lowest] = at as u32;
        }
        let mut share = Vec::with_capacity(list.len());
        for (at, &node) in list.iter().enumerate() {
            let (earlier, own) = bits.split_at_mut(at * words);
            let own = &mut own[..words];
            for &parent in self.parents(node as usize) {
                let there = (parent as usize).checked_sub(lowest).map_or(u32::MAX, |offset| place[offset]);
                if there != u32::MAX {
                    let inherited = &earlier[there as usize * words..][..words];
                    own.iter_mut().zip(inherited).for_each(|(word, more)| *word |= more);
                }
            }
            let count: u32 = own.iter().map(|word| word.count_ones()).sum();
            share.push(f64::from(count) / samples as f64);
        }
        share
    }
}

impl From<&Dag> for Graph {
    /// The same commits. A range's own good endpoint is among its boundary nodes; the first node stands for it.
    fn from(dag: &Dag) -> Self {
        Self::of(dag.nodes().iter().map(|node| node.parents.clone()).collect())
            .expect("a range has its parents first and ends in a candidate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 - 1 - 3 - 4, 0 - 2 - 3.
    fn diamond() -> Graph {
        Graph::parse("\n0\n0\n1 2\n3\n").expect("a graph")
    }

    #[test]
    fn a_list_of_parents_is_read_and_a_bad_one_refused_with_its_line() {
        let graph = diamond();
        assert_eq!((graph.len(), graph.candidates()), (5, &[1, 2, 3, 4][..]));
        assert!(!graph.is_line() && Graph::line(3).is_line());
        assert!(Graph::parse("\n0 x\n").expect_err("refused").contains("line 2"));
        assert!(Graph::parse("\n2\n0\n").expect_err("refused").contains("before its parent 2"));
        assert!(Graph::parse("\n0\n\n").expect_err("refused").contains("no parent"));
    }

    #[test]
    fn shares_count_a_node_with_its_ancestors_once() {
        let shares = diamond().shares(&[1, 2, 3, 4], &[1.0; 4], 4);
        assert_eq!(shares, [0.25, 0.25, 0.75, 1.0]);
    }

    #[test]
    fn shares_follow_the_weights() {
        let shares = diamond().shares(&[1, 2, 3, 4], &[5.0, 1.0, 1.0, 1.0], 8);
        assert_eq!(shares, [0.625, 0.125, 0.875, 1.0]);
    }
}
